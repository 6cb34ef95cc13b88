// Pass: a chosen candidate, written as a Plan. Nothing is decided here.
//
// Buffers come in this order: blocks of activations, transforms, workspaces (one a step), targets of loads (one a load). Invariant: the
// same candidate gives the same plan, field by field.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/plan/plan.h"
#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/stream/expect.h"

namespace sluice::planner {

namespace detail {

inline constexpr double kMilliseconds = 1e3;

class Emitter {
 public:
  Emitter(const Problem& problem, const Candidate& candidate)
      : graph_(*problem.graph), problem_(problem), candidate_(candidate), schedule_(candidate.schedule) {}

  plan::Plan emit() {
    plan_.policy = std::string(name_of(candidate_.policy));
    plan_.threads = static_cast<std::uint32_t>(problem_.threads);
    plan_.block = kBlockBytes;
    plan_.repeat = problem_.repeat;
    plan_.arena_bytes = Bytes(candidate_.arena_bytes);
    plan_.tensors = problem_.views.tensors;
    reserve();
    add_blocks();
    add_derived();
    add_steps();
    add_passing();
    add_loads();
    return std::move(plan_);
  }

 private:
  /// Reserves no more than TableCosts counts: spare capacity of vectors is memory, too.
  void reserve() {
    plan_.buffers.reserve(problem_.views.blocks.size() + schedule_.derived.size() + schedule_.steps.size() + schedule_.loads.size());
    plan_.steps.reserve(schedule_.steps.size());
    plan_.operands.reserve(schedule_.operands.size());
    plan_.loads.reserve(schedule_.loads.size());
  }

  plan::StepRange steps_of(Interval<std::int64_t> positions) const {
    return {schedule_.steps_of[static_cast<std::size_t>(positions.begin)].begin,
            schedule_.steps_of[static_cast<std::size_t>(positions.end - 1)].end};
  }

  void add_blocks() {
    for (std::size_t b = 0; b < problem_.views.blocks.size(); ++b) {
      const Rectangle& item = candidate_.layout.items[b];
      const Block& block = problem_.views.blocks[b];
      plan_.buffers.push_back({block.kind, Bytes(item.size), kBufferAlignment, Bytes(candidate_.base + candidate_.layout.offsets[b]),
                               steps_of(item.time), block.whole_period});
    }
  }

  void add_derived() {
    for (std::size_t d = 0; d < schedule_.derived.size(); ++d) {
      plan_.buffers.push_back({plan::BufferKind::kDerived,
                               Bytes(schedule_.derived[d].bytes),
                               kBufferAlignment,
                               Bytes(candidate_.derived_offsets[d]),
                               {0, schedule_.step_count()},
                               true});
      plan_.resident_bytes += Bytes(schedule_.derived[d].bytes);
    }
  }

  /// Weights of a small net that runs again and again lie in a core's own cache, which no price that is assumed says: caches of 2 MiB or so give
  /// some 150 GB/s, where memory is assumed to give 12. (Steps of 2 us of Silero's detector were shared, which took a fifth longer.)
  bool runs_alone(NodeId id, const StepSpec& spec) const {
    constexpr std::uint64_t kArenaInCache = 2560 * 1024, kCacheSpeed = 12;
    const profiler::DeviceProfile& profile = *problem_.profile;
    const bool near = problem_.repeat && profile.kernels.empty() && candidate_.arena_bytes <= kArenaInCache;
    bool alone = false;
    const auto ask = [&](const profiler::UsedKernel& kernel, const model::Node& node, profiler::StepWork work) {
      if (near) work.cost.weight_bytes /= kCacheSpeed;
      alone = profiler::runs_alone(profile, kernel, node, work);
      return 0.0;
    };
    price_computing(graph_, *problem_.kernels[id.index()], problem_.kernels.run(), id, spec, profile, problem_.threads, ask);
    return alone;
  }

  void add_steps() {
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const StepSpec& spec = schedule_.steps[i];
      const NodeId id = problem_.views.order[spec.position];
      plan::Step step;
      step.node = id;
      step.kernel = problem_.kernels[id.index()]->id;
      step.rows = rows_of(graph_, graph_.node(id), spec);
      step.channels = spec.channels;
      step.first_operand = spec.first_operand;
      step.operand_count = spec.operand_count;
      step.loads_needed = spec.loads_needed;
      step.prepare = spec.prepare;
      step.alone = runs_alone(id, spec);
      if (spec.derived != kNotDerived)
        step.derived = {BufferId(problem_.views.blocks.size() + spec.derived), schedule_.derived[spec.derived].panels};
      if (const Interval<std::uint64_t> workspace = workspace_of(spec); workspace.size() > 0) {
        const auto index = static_cast<std::int64_t>(i);
        step.workspace = BufferId(plan_.buffers.size());
        plan_.buffers.push_back({plan::BufferKind::kWorkspace,
                                 Bytes(workspace.size()),
                                 kBufferAlignment,
                                 Bytes(candidate_.base + workspace.begin),
                                 {index, index + 1},
                                 false});
      }
      plan_.steps.push_back(step);
    }
    for (const OperandSpec& operand : schedule_.operands)
      plan_.operands.push_back({operand.weight, operand.panels, operand.load == kReadInStep ? LoadId::invalid() : LoadId(operand.load)});
  }

  /// From the base on; empty: none.
  Interval<std::uint64_t> workspace_of(const StepSpec& step) const {
    const std::uint64_t own = workspace_bytes(graph_, problem_.kernels, problem_.views.order[step.position], step, problem_.threads);
    if (own == 0) return {};
    if (lies_between_rows(step, own)) {
      const Chain& chain = *chain_of(problem_.views.chains, step.position);
      const std::uint64_t rings = candidate_.layout.offsets[chain.rings.index()];
      return {rings + step.inside.begin, rings + step.inside.end};
    }
    const std::size_t home = workspace_home(problem_.views, step.position);
    const std::uint64_t at = candidate_.layout.workspace_offset(home);
    return {at, at + candidate_.layout.workspace(home).size};
  }

  /// Tensors that pass, and their blocks from the ends of the workspaces on.
  void add_passing() {
    const Passing* passing = problem_.kernels.passing();
    if (passing == nullptr) return;
    Bytes in_file;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!passing->passes(TensorId(t))) continue;
      const bool spilled = passing->kind(TensorId(t)) == Passing::Kind::kSpilled;
      plan_.passing.push_back({TensorId(t), spilled, spilled ? in_file : Bytes()});
      if (spilled) in_file = align_up(in_file + graph_.tensors[t].bytes(), kBlockBytes);
    }
    std::size_t count = 0;
    for (const plan::Step& step : plan_.steps) count += step.prepare ? 0 : passing->touched(step.node);
    plan_.blocks.reserve(count);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const plan::Step& step = plan_.steps[i];
      if (step.prepare || passing->touched(step.node) == 0) continue;
      std::uint64_t at = plan_.buffer(step.workspace).size.count();
      for (const Passing::Beside& block :
           passing->beside(step.node, problem_.kernels[step.node.index()]->row_granule, step.rows, step.channels)) {
        at -= block.room(graph_);
        plan_.blocks.push_back({static_cast<std::uint32_t>(i), block.tensor, block.rows, block.channels, Bytes(at),
                                passage_of(block, i, passing->kind(block.tensor))});
      }
    }
  }

  plan::Passage passage_of(const Passing::Beside& block, std::size_t i, Passing::Kind kind) const {
    if (kind == Passing::Kind::kHandedOver) return plan::Passage::kHandedOver;
    if (block.made) return i + 1 < plan_.steps.size() && slices_one_band(i, i + 1) ? plan::Passage::kMade : plan::Passage::kStored;
    return i > 0 && slices_one_band(i - 1, i) ? plan::Passage::kStillThere : plan::Passage::kFetched;
  }

  bool slices_one_band(std::size_t a, std::size_t b) const {
    const plan::Step &first = plan_.steps[a], &second = plan_.steps[b];
    return first.node == second.node && first.rows == second.rows && !first.prepare && !second.prepare;
  }

  void add_loads() {
    for (std::size_t k = 0; k < schedule_.loads.size(); ++k) {
      const LoadSpec& spec = schedule_.loads[k];
      const std::int64_t gate = candidate_.placement.gates[k];
      plan::Load load;
      load.file = {Bytes(spec.payload.file_begin()), Bytes(spec.payload.read_bytes())};  // model files end on a whole block
      load.target = BufferId(plan_.buffers.size());
      load.first_stretch = spec.first_stretch;
      load.stretch_count = spec.stretch_count;
      load.resident = spec.resident;
      load.prologue_only = spec.prologue_only;
      load.gate = gate;
      load.form = spec.payload.form;
      load.uses = spec.uses;
      const plan::StepRange lifetime = spec.resident ? plan::StepRange{0, schedule_.step_count()} : plan::StepRange{gate, spec.uses.end};
      plan_.buffers.push_back({plan::BufferKind::kWeight, Bytes(spec.region_bytes()), kBlockBytes, Bytes(candidate_.placement.offsets[k]),
                               lifetime, spec.resident});
      if (!spec.prologue_only) (spec.resident ? plan_.resident_bytes : plan_.streamed_bytes) += load.file.size;
      plan_.loads.push_back(load);
    }
  }

  const model::Graph& graph_;
  const Problem& problem_;
  const Candidate& candidate_;
  const Schedule& schedule_;
  plan::Plan plan_;
};

}  // namespace detail

inline plan::Plan emit(const Problem& problem, const Candidate& candidate) { return detail::Emitter(problem, candidate).emit(); }

namespace detail {

/// What all nodes without steps take beside the plan.
inline double copying_seconds(const Problem& problem, const Schedule& schedule) {
  std::vector<bool> has_steps(problem.graph->nodes.size(), false);
  for (const StepSpec& step : schedule.steps) has_steps[problem.views.order[step.position].index()] = true;
  double seconds = 0;
  for (const NodeCopy& copy : copies_of(*problem.graph, problem.kernels, has_steps, *problem.profile)) seconds += copy.seconds;
  return seconds;
}

}  // namespace detail

/// `bound`: the least fluid bound, in seconds, of all drafts that were looked at.
inline plan::Prediction predict(const Problem& problem, const Candidate& candidate, double bound) {
  const Schedule& schedule = candidate.schedule;
  Costs costs = price(problem, schedule);
  set_reads(
      *problem.profile, schedule.loads.size(), [&](std::size_t k) { return schedule.loads[k].payload.read_bytes(); }, costs);
  const auto seconds = [&](Run run) { return expect(schedule, costs, candidate.placement.gates, run).seconds(); };
  const bool prologue = problem.objective_run() == Run::kPrologue;
  plan::Prediction prediction;
  prediction.cold_ms = seconds(Run::kPrologue) * detail::kMilliseconds;
  prediction.period_ms = seconds(Run::kPeriod) * detail::kMilliseconds;
  prediction.compute_ms = costs.compute * detail::kMilliseconds;
  // Bounds are simulated, each load alone on the disk: of what is expected they are the share that they are of the simulated plan.
  const double expected_ms = prologue ? prediction.cold_ms : prediction.period_ms;
  const auto as_expected = [&](double simulated) {
    return candidate.seconds > 0 ? expected_ms * std::min(simulated / candidate.seconds, 1.0) : expected_ms;
  };
  const std::vector<std::uint64_t> nothing(schedule.steps.size(), 0);
  const Gates free = fluid_gates(schedule, nothing, kUnlimitedBytes.count() / 4, problem.objective_run(), problem.wraps()).gates;
  prediction.bound_ms = as_expected(bound);
  prediction.unbounded_ms = as_expected(simulate(schedule, costs, free, problem.objective_run()).seconds());
  const double reading = reading_seconds(schedule, costs, problem.objective_run());
  prediction.pipe_bound_ms = as_expected(std::max(costs.compute, reading));
  const double copying_ms = detail::copying_seconds(problem, schedule) * detail::kMilliseconds;
  for (double plan::Prediction::*ms : {&plan::Prediction::cold_ms, &plan::Prediction::period_ms, &plan::Prediction::bound_ms,
                                       &plan::Prediction::pipe_bound_ms, &plan::Prediction::compute_ms, &plan::Prediction::unbounded_ms})
    prediction.*ms += copying_ms;
  return prediction;
}

}  // namespace sluice::planner
