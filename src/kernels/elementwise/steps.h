// The run functions of the elementwise kernels, one an operator: they walk rows and hand runs to the inner loops of runs.h.
#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels::elementwise {

void unary_step(const KernelCall& call) noexcept;
void affine_step(const KernelCall& call) noexcept;
void binary_step(const KernelCall& call) noexcept;
void softmax_step(const KernelCall& call) noexcept;
void pool_step(const KernelCall& call) noexcept;
void resize_step(const KernelCall& call) noexcept;
void matmul_step(const KernelCall& call) noexcept;

/// The columns' sources, the same for all rows.
Bytes resize_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

/// Can an operand of that shape be walked beside `out`: by rows, one step a pixel?
bool walks_beside(const Shape& operand, const Shape& out) noexcept;

}  // namespace sluice::kernels::elementwise
