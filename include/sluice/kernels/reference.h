// The readable reference: every operator, one value at a time, on the same views and packed weights as the fast kernels.
//
// The place to start: src/kernels/reference/dense.cc is ten lines and shows all of it, a sum in k order, bias, residual, activation.
// convolution.cc adds a window, pool.cc a fold, movement.cc indices; walk.h is how they walk memory. What the fast kernels compute is
// defined here: kernels of the exact class give the same bits (tests/differential), because each result comes from the same
// sequence of operations, and no compiler may fuse or reorder them (-ffp-contract=off).
//
// The reference needs no workspace, takes any pitch and ring, and shares rows among the threads. Operators that only move elements take
// any element type; for several of them it is the only kernel.
#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels {

/// The reference for `op`. Its id is kernel_id::kReferenceBase + op. Convolutions have one for each numeric class.
const KernelDescriptor& reference_kernel(model::OpKind op, model::NumericClass numeric = model::NumericClass::kExact) noexcept;

/// y = f(x): the scalar truth of every activation, bit for bit what the SIMD kernels compute. Within 3 units in the last place of the
/// exact value, subnormal results apart (gelu: of |x|).
float reference_apply(const model::Activation& activation, float x) noexcept;

/// Bit i: input i has the output's shape and type and is no constant, so the output may replace it.
std::uint32_t full_shape_inputs(const model::Graph& graph, const model::Node& node) noexcept;

}  // namespace sluice::kernels
