// Converts a finished plan to the planner's own types, so that the code that made it also prices it (timeline.cc, predictor.cc).
#pragma once

#include "sluice/plan/plan.h"
#include "sluice/planner/stream/simulate.h"
#include "sluice/profiler/work_prices.h"

namespace sluice::engine {

/// A plan as the simulator reads it: what it does not ask for is left out.
planner::Schedule schedule_of(const plan::Plan& plan);

/// Seconds of each step and load, by the profile of `prices`. Errors: kInvalidPlan for a kernel that this build does not have.
Result<planner::Costs> costs_of(const model::Graph& graph, const plan::Plan& plan, const planner::Schedule& schedule,
                                profiler::WorkPrices& prices);

/// The time of nodes without steps on a device that copies them. Errors: as above.
Result<std::vector<planner::NodeCopy>> copies_of(const model::Graph& graph, const plan::Plan& plan, const profiler::DeviceProfile& profile);

}  // namespace sluice::engine
