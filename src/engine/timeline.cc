#include "sluice/engine/timeline.h"

#include <algorithm>

#include "src/core/out_of_memory.h"
#include "src/engine/plan_costs.h"
#include "src/engine/planning.h"

namespace sluice {
namespace {

/// Replays the reading and decoding of planner/stream/simulate.h for steps whose times are known already.
class LoadLanes {
 public:
  LoadLanes(const plan::Plan& plan, const planner::Costs& costs, const planner::Timeline& timeline, planner::Run kind)
      : plan_(plan), costs_(costs), timeline_(timeline), prologue_(kind == planner::Run::kPrologue) {}

  std::vector<ExpectedTime> times() {
    std::vector<ExpectedTime> times = pass();
    if (prologue_ || std::none_of(plan_.loads.begin(), plan_.loads.end(), [](const plan::Load& load) { return load.gate < 0; }))
      return times;
    // The run before was like this one: its loads end where the first pass of ours did.
    read_end_ -= timeline_.seconds();
    decode_end_ -= timeline_.seconds();
    return pass();
  }

 private:
  std::vector<ExpectedTime> pass() {
    std::vector<ExpectedTime> times(plan_.loads.size());
    for (std::size_t k = 0; k < plan_.loads.size(); ++k) {
      if (!prologue_ && !plan_.loads[k].streamed()) continue;
      const double open = opening_of(plan_.loads[k]);
      const double begin = open > read_end_ ? open + costs_.load_start : read_end_;
      read_end_ = begin + costs_.load[k];
      decode_end_ = std::max(read_end_, decode_end_) + costs_.decode[k];
      times[k] = {begin * engine::kMilliseconds, decode_end_ * engine::kMilliseconds};
    }
    return times;
  }

  double opening_of(const plan::Load& load) const {
    if (load.gate >= 0) return timeline_.step_end[static_cast<std::size_t>(load.gate)];
    if (prologue_) return 0;
    const auto steps = static_cast<std::int64_t>(plan_.steps.size());
    return timeline_.step_end[static_cast<std::size_t>(load.gate + steps)] - timeline_.seconds();
  }

  const plan::Plan& plan_;
  const planner::Costs& costs_;
  const planner::Timeline& timeline_;
  const bool prologue_;
  double read_end_ = 0;
  double decode_end_ = 0;
};

}  // namespace

Result<ExpectedTimes> expected_times(const Model& model, const plan::Plan& plan, const SessionOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  return or_out_of_memory(model.file().path(), [&]() -> Result<ExpectedTimes> {
    const planner::Run kind = plan.repeat ? planner::Run::kPeriod : planner::Run::kPrologue;
    profiler::WorkPrices prices(engine::profile_for(options));
    engine::KnownCosts known;
    SLUICE_ASSIGN_OR_RETURN(const planner::Costs costs, engine::costs_of(model.graph(), plan, prices, known));
    planner::Gates gates;
    for (const plan::Load& load : plan.loads)
      gates.push_back(kind == planner::Run::kPrologue ? std::max<std::int64_t>(load.gate, 0) : load.gate);
    const planner::Timeline timeline = planner::simulate(plan, costs, gates, kind);
    ExpectedTimes times;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      times.steps.push_back({timeline.step_start[i] * engine::kMilliseconds, timeline.step_end[i + 1] * engine::kMilliseconds});
    times.loads = LoadLanes(plan, costs, timeline, kind).times();
    return times;
  });
}

}  // namespace sluice
