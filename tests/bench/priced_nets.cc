#include "tests/bench/priced_nets.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sluice/engine/predictor.h"
#include "sluice/profiler/latency.h"
#include "tests/bench/must.h"
#include "tests/bench/step_work.h"

namespace sluice::bench {
namespace {

void add(const model::Node& node, const UsedWork& used, const profiler::DeviceProfile& profile, Parts& to) {
  const profiler::KernelRates* rates = profiler::detail::rates_of(profile, used.kernel, used.work.variant);
  if (rates == nullptr) {
    to.other_seconds += profiler::step_seconds(profile, used.kernel, node, used.work);
    return;
  }
  const auto samples = profiler::detail::placed_samples(profile, *rates);
  const double seconds = profiler::detail::measured_seconds(*rates, samples, used.work, profiler::detail::tile_of(profile));
  to.parts.push_back({rates->kernel, used.work, seconds});
}

plan::Step whole(const model::Graph& graph, plan::Step step) {
  const RowExtents extents = row_extents(graph.tensor(graph.node(step.node).outputs[0]).shape);
  step.rows = {0, extents.rows};
  step.channels = {0, extents.channels};
  return step;
}

PricedNet priced(const test::RecordedNet& recorded, const profiler::DeviceProfile& profile) {
  const std::shared_ptr<const Model> model = must(test::open_variant(recorded.family, recorded.number));
  SessionOptions options{.budget = kUnlimitedBytes, .repeat = true, .profile = &profile};
  options.tuning.policy = planner::Policy::kResident;
  const plan::Plan plan = must(plan_session(*model, options)).plan;
  PricedNet net{recorded, {}, {}};
  const model::Graph& graph = model->graph();
  const profiler::RunWork run = profiler::run_work_of(graph);
  std::set<std::size_t> seen;
  for (const plan::Step& step : plan.steps) {
    if (step.prepare) continue;
    const model::Node& node = graph.node(step.node);
    add(node, work_of(graph, step, 1, profile, run), profile, net.steps);
    if (seen.insert(step.node.index()).second) add(node, work_of(graph, whole(graph, step), 1, profile, run), profile, net.layers);
  }
  std::vector<double> seconds;
  for (const profiler::KernelSample& step : net.steps.parts) seconds.push_back(step.seconds);
  const double predicted_ms = must(Predictor(model, options).at(kUnlimitedBytes)).latency_ms;
  net.steps.other_ms = predicted_ms - milliseconds_of(net.steps, seconds, profile);
  constexpr double kMostOther = 0.08;  // by bands, whose weights stay near; else the sum is not what `predict` does
  if (std::abs(net.steps.other_ms) > kMostOther * predicted_ms)
    must(Status(fail(ErrorCode::kInternal, recorded.family + " " + std::to_string(recorded.number),
                     "its steps add up to another time than it is predicted to take")));
  return net;
}

}  // namespace

std::vector<PricedNet> priced_nets(const std::string& measured, const profiler::DeviceProfile& profile) {
  std::vector<PricedNet> nets;
  for (const test::RecordedNet& recorded : test::recorded_nets(measured)) nets.push_back(priced(recorded, profile));
  return nets;
}

double milliseconds_of(const Parts& parts, const std::vector<double>& seconds, const profiler::DeviceProfile& profile) {
  double sum = parts.other_seconds;
  for (const double part : seconds)
    sum += std::max(part, profiler::detail::kLeastSeconds) * (1 + profile.interruptions.share) + profile.step_overhead_seconds;
  return parts.other_ms + 1e3 * sum * profiler::of_a_short_run(profile, sum);
}

}  // namespace sluice::bench
