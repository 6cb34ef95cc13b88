#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels::transformer {

void attention_step(const KernelCall& call) noexcept;
Bytes attention_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels::transformer
