// The generic kernels of the long tail, each family a file of this folder. What the operators are: src/operators/generic.
#pragma once

#include <span>

#include "sluice/kernels/plain.h"

namespace sluice::kernels::plain {

std::span<const GenericKernel> unary_kernels() noexcept;
std::span<const GenericKernel> binary_kernels() noexcept;
std::span<const GenericKernel> cast_kernels() noexcept;
std::span<const GenericKernel> reduce_kernels() noexcept;
std::span<const GenericKernel> select_kernels() noexcept;
std::span<const GenericKernel> gather_kernels() noexcept;
std::span<const GenericKernel> scatter_kernels() noexcept;
std::span<const GenericKernel> normalize_kernels() noexcept;
std::span<const GenericKernel> loss_kernels() noexcept;
std::span<const GenericKernel> quantize_kernels() noexcept;
std::span<const GenericKernel> pool_kernels() noexcept;
std::span<const GenericKernel> convolve_kernels() noexcept;
std::span<const GenericKernel> recurrent_kernels() noexcept;
std::span<const GenericKernel> attention_kernels() noexcept;
std::span<const GenericKernel> resize_kernels() noexcept;
std::span<const GenericKernel> image_kernels() noexcept;
std::span<const GenericKernel> signal_kernels() noexcept;
std::span<const GenericKernel> matrix_kernels() noexcept;
std::span<const GenericKernel> extents_kernels() noexcept;
std::span<const GenericKernel> sized_kernels() noexcept;
std::span<const GenericKernel> suppress_kernels() noexcept;
std::span<const GenericKernel> control_kernels() noexcept;
std::span<const GenericKernel> scan_kernels() noexcept;

}  // namespace sluice::kernels::plain
