// The one kernel of all plain operators: it finds the operator's line and hands it dense tensors.
#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels::plain {

bool supports(const model::Graph& graph, const model::Node& node) noexcept;
Bytes workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
void run(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::plain
