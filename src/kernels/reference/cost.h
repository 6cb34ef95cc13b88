// How much work a step of any operator is, from shapes alone: what every family's `cost` answers.
#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels {

CostFeatures cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels
