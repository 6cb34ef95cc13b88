// The families of kernels, each in a folder of its own; `registry.cc` lists them in order of preference.
#pragma once

#include <span>

#include "sluice/kernels/kernel.h"

namespace sluice::kernels {

/// weighted/: what multiplies by panels: convolutions and dense layers, ours, with Highway.
std::span<const KernelDescriptor> weighted_kernels() noexcept;
/// The weighted kernels over sparse panels.
std::span<const KernelDescriptor> sparse_kernels() noexcept;
/// elementwise/: pooling, binary, unary, affine, softmax: what runs in bands and in place, with Highway.
std::span<const KernelDescriptor> elementwise_kernels() noexcept;
/// transformer/: layer norms and attention, with Highway.
std::span<const KernelDescriptor> transformer_kernels() noexcept;
/// movement/: what moves elements and computes nothing, as strided copies, with Highway.
std::span<const KernelDescriptor> movement_kernels() noexcept;
/// integer/: the numeric class int8, generic kernels included, with intrinsics.
std::span<const KernelDescriptor> integer_kernels() noexcept;
/// Its generic kernel of an operator; nullptr: the operator is none of integers.
const KernelDescriptor* generic_integer_kernel(model::OpKind op) noexcept;
/// reference/: every operator, scalar, made to be read.
std::span<const KernelDescriptor> reference_kernels() noexcept;

}  // namespace sluice::kernels
