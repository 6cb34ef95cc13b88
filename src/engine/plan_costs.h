// Prices of a finished plan, by the code that the planner chooses it with (timeline.cc, predictor.cc).
#pragma once

#include <optional>
#include <vector>

#include "sluice/plan/plan.h"
#include "sluice/planner/stream/simulate.h"
#include "sluice/profiler/work_prices.h"

namespace sluice::engine {

/// What is known of a graph and of the steps of its plan that was priced last: who asks about it again waits for no price.
struct KnownCosts {
  struct Step {
    NodeId node;
    KernelId kernel = KernelId::kNone;
    RowRange rows;
    ChannelRange channels;
    std::uint32_t threads = 1;
    bool prepare = false, derived = false;
    friend bool operator==(const Step&, const Step&) noexcept = default;
  };
  std::optional<profiler::RunWork> run;
  std::vector<Step> steps;  // in a plan's order
  std::vector<double> seconds;
};

/// Seconds of each step and load, by the profile of `prices`, which is the same whenever `known` is. Errors: kInvalidPlan for a kernel that
/// this build does not have.
Result<planner::Costs> costs_of(const model::Graph& graph, const plan::Plan& plan, profiler::WorkPrices& prices, KnownCosts& known);

/// The time of nodes without steps on a device that copies them. Errors: as above.
Result<std::vector<planner::NodeCopy>> copies_of(const model::Graph& graph, const plan::Plan& plan, const profiler::DeviceProfile& profile);

}  // namespace sluice::engine
