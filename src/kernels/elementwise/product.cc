// Compiled once for each target of targets.h by including itself; start reading at `block`.
#include "src/kernels/elementwise/product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/elementwise/product.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"
#include "src/kernels/elementwise/subnormal-inl.h"
#include "src/kernels/elementwise/turned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::elementwise {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;
namespace subnormal = kernels::HWY_NAMESPACE::subnormal;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

// Vectors of columns in a block: six rows of them fill the accumulator registers (24 of 32, 12 of 16, 18 of 32).
#if HWY_TARGET == HWY_AVX3
inline constexpr int kVectors = 4;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kVectors = 3;
#else
inline constexpr int kVectors = 2;
#endif

/// Columns [column, + kColumns * kLanes) of kRows rows; only `last` lanes of the last vector, if partial.
template <int kRows, int kColumns, bool partial>
HWY_INLINE void block(const ProductTile& tile, std::int64_t column, std::size_t last) {
  const D d;
  V acc[kRows][kColumns];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kColumns; ++v) acc[r][v] = hn::Zero(d);
  }
  if (tile.adds) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (int v = 0; v < kColumns; ++v) {
        const float* from = tile.out[r] + column + v * kLanes;
        acc[r][v] = partial && v == kColumns - 1 ? lanes::load_first(d, from, last) : hn::LoadU(d, from);
      }
    }
  }
  const float* right = tile.right + column;
  for (std::int64_t k = 0; k < tile.depth; ++k, right += tile.right_pitch) {
    V b[kColumns];
    HWY_UNROLL(4)
    for (int v = 0; v < kColumns; ++v)
      b[v] = partial && v == kColumns - 1 ? lanes::load_first(d, right + v * kLanes, last) : hn::LoadU(d, right + v * kLanes);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const V a = hn::Set(d, tile.left[r][k]);
      HWY_UNROLL(4)
      for (int v = 0; v < kColumns; ++v) acc[r][v] = fn::fused(a, b[v], acc[r][v]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kColumns; ++v) {
      float* to = tile.out[r] + column + v * kLanes;
      partial&& v == kColumns - 1 ? lanes::store_first(acc[r][v], d, to, last) : hn::StoreU(acc[r][v], d, to);
    }
  }
}

/// What is left from `column` on, kColumns vectors of columns or fewer, in one block: the last vector counts as partial also where it is whole.
template <int kRows, int kColumns = kVectors>
HWY_INLINE void rest(const ProductTile& tile, std::int64_t column) {
  const std::int64_t left = tile.n - column, whole = (kColumns - 1) * kLanes;
  if (left > whole) return block<kRows, kColumns, true>(tile, column, static_cast<std::size_t>(left - whole));
  if constexpr (kColumns > 1) rest<kRows, kColumns - 1>(tile, column);
}

template <int kRows>
void rows(const ProductTile& tile) noexcept {
  std::int64_t column = 0;
  for (; column + kVectors * kLanes <= tile.n; column += kVectors * kLanes) block<kRows, kVectors, false>(tile, column, 0);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // Parts of vectors are loaded as fast as whole ones.
  if (column < tile.n) rest<kRows>(tile, column);
  return;
#endif
  for (; column + kLanes <= tile.n; column += kLanes) block<kRows, 1, false>(tile, column, 0);
  if (column < tile.n) block<kRows, 1, true>(tile, column, static_cast<std::size_t>(tile.n - column));
}

/// Columns [column, + kColumns * kLanes) of a row whose factors may be subnormal; only `last` lanes of the last vector.
template <int kColumns>
HWY_NOINLINE void subnormal_block(const ProductTile& tile, int row, std::int64_t column, std::size_t last) {
  const D d;
  subnormal::Chains<D, kColumns> chains;
  const float* right = tile.right + column;
  const auto there = hn::FirstN(d, last);
  for (std::int64_t k = 0; k < tile.depth; ++k, right += tile.right_pitch) {
    V b[kColumns];
    for (int v = 0; v + 1 < kColumns; ++v) b[v] = hn::LoadU(d, right + v * kLanes);
    // What is not there takes part as a number that is no trouble.
    const float* const of_last = right + (kColumns - 1) * kLanes;
    b[kColumns - 1] = last == static_cast<std::size_t>(kLanes)
                          ? hn::LoadU(d, of_last)
                          : hn::IfThenElse(there, lanes::load_first(d, of_last, last), hn::Set(d, 1.0f));
    chains.add(tile.left[row][k], b);
  }
  const auto& sums = chains.sums();
  float* const to = tile.out[row] + column;
  for (int v = 0; v + 1 < kColumns; ++v) hn::StoreU(sums[v], d, to + v * kLanes);
  lanes::store_first(sums[kColumns - 1], d, to + (kColumns - 1) * kLanes, last);
}

/// All columns from `column` on, kColumns vectors at a time.
template <int kColumns = kVectors>
void subnormal_row(const ProductTile& tile, int row, std::int64_t column = 0) {
  for (; column + kColumns * kLanes <= tile.n; column += kColumns * kLanes) subnormal_block<kColumns>(tile, row, column, kLanes);
  if (column == tile.n) return;
  if constexpr (kColumns > 1) {
    subnormal_row<kColumns - 1>(tile, row, column);
  } else {
    subnormal_block<1>(tile, row, column, static_cast<std::size_t>(tile.n - column));
  }
}

bool has_subnormals(const ProductTile& tile) {
  for (int r = 0; r < tile.rows; ++r)
    if (subnormal::is_among(D(), tile.left[r], tile.depth)) return true;
  return false;
}

template <int... r>
constexpr std::array<ProductRun, sizeof...(r)> rows_runs(std::integer_sequence<int, r...>) {
  return {rows<r + 1>...};
}

void product(const ProductTile& tile) noexcept {
  if constexpr (subnormal::kAreSlow) {
    if (tile.may_be_subnormal && has_subnormals(tile)) {
      for (int r = 0; r < tile.rows; ++r) subnormal_row(tile, r);
      return;
    }
  }
  static constexpr auto kRuns = rows_runs(std::make_integer_sequence<int, kMaxProductRows>());
  kRuns[static_cast<std::size_t>(tile.rows - 1)](tile);
}

namespace turned = kernels::HWY_NAMESPACE::turned;

#if HWY_TARGET != HWY_SCALAR

/// kGroups vectors of lines from `row` on.
template <int kGroups, int kColumns>
HWY_INLINE void line_group(const ColumnsTile& tile, std::int64_t row) {
  V acc[kGroups][kColumns];
  HWY_UNROLL(2)
  for (int g = 0; g < kGroups; ++g) {
    HWY_UNROLL(8)
    for (int c = 0; c < kColumns; ++c) acc[g][c] = hn::Zero(D());
  }
  turned::add_products<kGroups, kColumns>({tile.left + row * tile.left_step, tile.left_step, tile.depth, tile.right, tile.right_pitch},
                                          acc);
  HWY_UNROLL(2)
  for (int g = 0; g < kGroups; ++g) turned::put<kColumns>(acc[g], tile.out + (row + g * kLanes) * tile.out_step, tile.out_step);
}

/// Whole vectors of lines; returns how many lines that were.
template <int kColumns>
std::int64_t whole_lines(const ColumnsTile& tile) {
  std::int64_t row = 0;
  for (; row + 2 * kLanes <= tile.rows; row += 2 * kLanes) line_group<2, kColumns>(tile, row);
  for (; row + kLanes <= tile.rows; row += kLanes) line_group<1, kColumns>(tile, row);
  return row;
}

template <int... c>
constexpr std::array<std::int64_t (*)(const ColumnsTile&), sizeof...(c)> lines_runs(std::integer_sequence<int, c...>) {
  return {whole_lines<c + 1>...};
}

#endif

void columns(const ColumnsTile& tile) noexcept {
  std::int64_t row = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (turned::kMostOutputs > 0) {
    static constexpr auto kRuns = lines_runs(std::make_integer_sequence<int, turned::kMostOutputs>());
    row = kRuns[static_cast<std::size_t>(tile.n - 1)](tile);
  }
#endif
  while (row < tile.rows) {
    ProductTile rest{.right = tile.right, .right_pitch = tile.right_pitch, .depth = tile.depth, .n = tile.n};
    for (; row < tile.rows && rest.rows < kMaxProductRows; ++row, ++rest.rows) {
      rest.left[rest.rows] = tile.left + row * tile.left_step;
      rest.out[rest.rows] = tile.out + row * tile.out_step;
    }
    product(rest);
  }
}

const ProductTable& table() noexcept {
  static constexpr ProductTable kTable{product, columns, turned::kMostOutputs, kLanes};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::elementwise
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::elementwise {

const ProductTable& product_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, table()) }

}  // namespace sluice::kernels::elementwise
#endif  // HWY_ONCE
