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
  bool may_be_subnormal = false;  // factors on the left, as weights of a softmax may; without `adds`
};

/// The same for lines at one distance and a right matrix of few columns: lines are the lanes (turned-inl.h).
struct ColumnsTile {
  const float* left = nullptr;
  std::int64_t left_step = 0;  // floats
  float* out = nullptr;
  std::int64_t out_step = 0;
  std::int64_t rows = 0;
  const float* right = nullptr;
  std::int64_t right_pitch = 0;
  std::int64_t depth = 0;
  std::int64_t n = 0;
};

using ProductRun = void (*)(const ProductTile& tile) noexcept;

struct ProductTable {
  ProductRun tile = nullptr;
  void (*columns)(const ColumnsTile& tile) noexcept = nullptr;
  std::int64_t most_columns = 0;  // of `columns`; 0: there is none
  std::int64_t least_lines = 0;   // below which `tile` is better
};

/// The loops for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const ProductTable& product_table(Isa isa) noexcept;
inline ProductRun product_run(Isa isa) noexcept { return product_table(isa).tile; }

}  // namespace sluice::kernels::elementwise
