#include "sluice/engine/timeline.h"

#include <algorithm>

#include "sluice/planner/stream/expect.h"
#include "src/core/out_of_memory.h"
#include "src/engine/plan_costs.h"
#include "src/engine/planning.h"

namespace sluice {

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
    const planner::ExpectedRun run = planner::expect(plan, costs, gates, kind);
    const planner::Timeline& timeline = run.steps;
    ExpectedTimes times;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      times.steps.push_back({timeline.step_start[i] * engine::kMilliseconds, timeline.step_end[i + 1] * engine::kMilliseconds});
    for (std::size_t k = 0; k < plan.loads.size(); ++k)
      times.loads.push_back({run.load_begin[k] * engine::kMilliseconds, run.load_end[k] * engine::kMilliseconds});
    return times;
  });
}

}  // namespace sluice
