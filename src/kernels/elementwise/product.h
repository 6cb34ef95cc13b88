// The inner loop of the product of two activations: rows of the left matrix times all of the right one, which is not packed.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::elementwise {

inline constexpr int kMaxProductRows = 6;

/// out[r][0, n) = sum over k < depth of left[r][k] * right[k * right_pitch + 0, n): one chain of fused multiply-adds from 0, or, when the
/// tile adds, from what `out` holds.
struct ProductTile {
  int rows = 0;  // at most kMaxProductRows
  const float* left[kMaxProductRows];
  float* out[kMaxProductRows];
  const float* right = nullptr;
  std::int64_t right_pitch = 0;  // floats
  std::int64_t depth = 0;
  std::int64_t n = 0;
  bool adds = false;
};

/// The loop for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
using ProductRun = void (*)(const ProductTile& tile) noexcept;
ProductRun product_run(Isa isa) noexcept;

}  // namespace sluice::kernels::elementwise
