// The run functions of the elementwise kernels, one an operator: they walk rows and hand runs to the inner loops of an
// instruction set (runs.h, product.h).
#pragma once

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/movement.h"
#include "src/kernels/elementwise/product.h"
#include "src/kernels/elementwise/runs.h"

namespace sluice::kernels::elementwise {

void unary_step(const KernelCall& call, const RunTable& runs) noexcept;
void affine_step(const KernelCall& call, const RunTable& runs) noexcept;
void binary_step(const KernelCall& call, const RunTable& runs) noexcept;
void softmax_step(const KernelCall& call, const RunTable& runs) noexcept;
void pool_step(const KernelCall& call, const RunTable& runs) noexcept;
void lrn_step(const KernelCall& call, const RunTable& runs) noexcept;
void resize_step(const KernelCall& call, const RunTable& runs) noexcept;
void matmul_step(const KernelCall& call, const ProductTable& table) noexcept;

/// The columns' sources, the same for all rows.
Bytes resize_workspace(const operators::ResizeParameters& parameters, const StepExtent& extent) noexcept;

/// Can an operand of that shape be walked beside `out`: by rows, one step a pixel?
bool walks_beside(const Shape& operand, const Shape& out) noexcept;

}  // namespace sluice::kernels::elementwise
