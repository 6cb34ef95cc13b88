// How much work a step of any operator is, from shapes alone: what kernels answer to the planner, and what the profiler's rates turn into
// time.
#pragma once

#include <cstdint>

#include "sluice/core/work.h"
#include "sluice/model/graph.h"

namespace sluice::operators {

using sluice::CostFeatures;
using sluice::StepExtent;

/// `part` of `all` parts of a whole.
std::uint64_t share_of(std::uint64_t whole, std::int64_t part, std::int64_t all) noexcept;

/// Flops by the output's elements, and bytes of inputs and weights by the share of rows and channels.
CostFeatures usual_cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

/// The operator's own cost, where it has one, or the usual one.
CostFeatures cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

}  // namespace sluice::operators
