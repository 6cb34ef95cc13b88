// Outputs that a program takes as they are made (SessionOptions::outputs), so that they need no place in the budget:
//
//     output   |  block 0: rows 0-63, channels 0-511  |  block 1: channels 512-1023  | ...      each as soon as a step has made it
//
// Blocks tile the output: every element comes once. Which blocks there are follows from the plan: all rows of some channels where weights
// come in slices, some rows of all channels where activations go in bands. An output that cannot be taken apart (views of other tensors,
// values that later nodes read, extents known at run only) comes whole, when the run is over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/core/dtype.h"
#include "sluice/core/error.h"
#include "sluice/core/shape.h"

namespace sluice {

/// A box of an output in ONNX's order of axes: the element at begin + (i, j, ...) is at data + i * strides[0] + j * strides[1] + ...
struct OutputBlock {
  std::size_t port = 0;
  const std::byte* data = nullptr;  // until the hook returns
  DType dtype = DType::kF32;        // the type in memory: f32 if the port is f16, bf16 or f64
  DType port_dtype = DType::kF32;
  Shape shape;                                          // of the box
  std::array<std::int64_t, Shape::kMaxRank> begin{};    // of its first element in the output
  std::array<std::int64_t, Shape::kMaxRank> strides{};  // bytes

  /// Copies as many of its elements as `out` holds, in the port's type and ONNX order, from the `first` on.
  void copy(std::int64_t first, std::span<std::byte> out) const noexcept;
};

/// Called in the thread that runs, which rests meanwhile. Does not throw; what it allocates no budget counts. An error ends the run, and is
/// what it returns.
struct OutputHook {
  Status (*take)(void* context, const OutputBlock& block) noexcept = nullptr;
  void* context = nullptr;
};

}  // namespace sluice
