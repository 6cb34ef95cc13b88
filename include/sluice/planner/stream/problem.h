// The data that all candidates of one request share, and the costs of a schedule: seconds for each step and load, and bytes of tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/planner/cut/slice.h"
#include "sluice/planner/planner.h"
#include "sluice/planner/stream/residency.h"
#include "sluice/planner/stream/shared_prices.h"
#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

/// The data that all candidates of a request share.
struct Problem {
  const model::Graph* graph = nullptr;
  const profiler::DeviceProfile* profile = nullptr;
  int threads = 1;
  bool repeat = false;
  bool read_ahead = true;
  KernelChoice kernels;
  Views views;
  std::vector<DeriveOption> options;  // transforms that could be kept
  Pieces pieces;
  /// Orders of pieces, those to keep first at the front. The model's own order is the first.
  std::vector<std::vector<std::uint32_t>> residency{1};
  std::shared_ptr<SharedPrices> shared = std::make_shared<SharedPrices>();
  TableCosts tables;
  SearchParameters search;

  /// May loads of a period go in the tail of the run before?
  bool wraps() const noexcept { return repeat && read_ahead; }
  Run objective_run() const noexcept { return repeat ? Run::kPeriod : Run::kPrologue; }
};

/// The reads of a step by itself: bytes of one iteration, and the number of iterations.
struct StepReading {
  std::uint64_t bytes = 0;
  std::int64_t turns = 0;
};
inline StepReading reading_of(const Problem& problem, const Schedule& schedule, const StepSpec& step) {
  if (step.window == 0) return {};
  const NodeId id = problem.views.order[step.position];
  const model::Node& node = problem.graph->node(id);
  const kernels::KernelDescriptor& kernel = *problem.kernels[id.index()];
  StepReading reading{0, weight_turns(*problem.graph, node, kernel)};
  if (kernel.pieces_wanted != nullptr) return {lookup_bytes(*problem.graph, node, kernel), reading.turns};
  for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o)
    if (schedule.operands[o].load == kReadInStep) reading.bytes += problem.graph->weight(schedule.operands[o].weight).bytes.count();
  // One slot that holds all of it reads it once.
  if (reading.bytes + 2 * kBlockBytes <= step.window / 2) reading.turns = 1;
  return reading;
}

/// The time that reading adds to such a step: with one slot nothing is read while it computes.
inline double rereading_seconds(const Problem& problem, const Schedule& schedule, const StepSpec& step, double computing) {
  const StepReading reading = reading_of(problem, schedule, step);
  if (reading.bytes == 0) return 0;
  const std::uint64_t slot = std::max<std::uint64_t>(step.window / 2, kBlockBytes);
  const double starts = static_cast<double>((reading.bytes + slot - 1) / slot) * problem.profile->load_start_seconds;
  const double seconds =
      static_cast<double>(reading.turns) * (starts + problem.shared->load_seconds(*problem.profile, align_up(reading.bytes, kBlockBytes)));
  const bool beside = step.window > 2 * kBlockBytes;
  return beside ? std::max(seconds - computing, 0.0) : seconds;
}

inline Costs price(const Problem& problem, const Schedule& schedule) {
  Costs costs;
  costs.load_start = problem.profile->load_start_seconds;
  costs.wake = problem.profile->wake_seconds;
  costs.beside_reads = problem.profile->step_time_beside_reads;
  costs.step.reserve(schedule.steps.size());
  for (const StepSpec& step : schedule.steps) {
    costs.step.push_back(problem.shared->step_seconds(step, [&] {
      return price_step(*problem.graph, problem.kernels, problem.views.order[step.position], step, *problem.profile, problem.threads);
    }));
    costs.step.back() += problem.kernels.body(problem.views.order[step.position]).seconds;
    costs.step.back() += rereading_seconds(problem, schedule, step, costs.step.back());
    if (!step.prepare) costs.compute += step.alike * costs.step.back();
  }
  costs.load.reserve(schedule.loads.size());
  costs.decode.reserve(schedule.loads.size());
  for (const LoadSpec& load : schedule.loads) {
    const double reading = problem.shared->load_seconds(*problem.profile, load.payload.read_bytes());
    const LoadSeconds seconds = load_seconds(*problem.profile, load.payload, reading);
    costs.load.push_back(seconds.load);
    costs.decode.push_back(seconds.decode);
  }
  return costs;
}

/// Tables of a plan with this schedule beyond what is set aside for them. Steps of one node share the places of its tensors.
inline std::uint64_t table_bytes(const Problem& problem, const Schedule& schedule) {
  const TableCosts& cost = problem.tables;
  if (cost.set_aside >= kUnlimitedBytes.count()) return 0;
  std::uint64_t bytes = cost.any_plan + cost.buffer * (problem.views.blocks.size() + schedule.derived.size()) +
                        (cost.load + cost.buffer) * (schedule.loads.size() + schedule.unlisted_loads);
  const StepSpec* before = nullptr;
  for (const StepSpec& step : schedule.steps) {
    const model::Node& node = problem.graph->node(problem.views.order[step.position]);
    bytes += step.alike * (cost.step + cost.buffer + cost.operand * step.operand_count + cost.weight * node.weights.size());
    const auto constant = [&](TensorId id) { return problem.graph->tensor(id).weight.valid(); };
    const Passing* passing = problem.kernels.passing();
    const std::uint32_t beside = passing == nullptr || step.prepare ? 0 : passing->touched(problem.views.order[step.position]);
    bytes += step.alike * cost.block * beside;
    const bool each_anew = beside > 0 || std::any_of(node.inputs.begin(), node.inputs.end(), constant);
    const bool shared = before != nullptr && before->position == step.position && before->prepare == step.prepare && !each_anew;
    if (!shared) bytes += (each_anew ? step.alike : 1) * cost.tensor * (node.inputs.size() + node.outputs.size());
    before = &step;
  }
  return align_up(bytes - std::min(bytes, cost.set_aside), kBlockBytes);
}

}  // namespace sluice::planner
