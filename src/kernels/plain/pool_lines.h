// The inner loops of pools along rows of values, one copy an instruction set.
//
// A row of outputs meets some rows of the input; a pool walks over these (pool.cc) and hands them over, a few at a time:
//
//     output i: taps k of each row r at rows[r][first + i * step + k * dilation]
//
// Invariants: the same bits on every instruction set, those of generic/folds.h: the greatest keeps its value where the other is equal or no
// number; a sum is that of each row's taps from zero on, one row after the other. Nothing outside the taps named is read.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::plain {

/// Rows that are handed over at once, at most.
inline constexpr std::int64_t kMostPoolRows = 32;

struct PoolRows {
  const float* const* rows = nullptr;
  std::int64_t count = 0;
  std::int64_t first = 0;
  std::int64_t taps = 1;  // of each row
  std::int64_t step = 1;
  std::int64_t dilation = 1;
  bool begins = true;  // what was there before is not looked at
};

struct PoolTable {
  /// to[i] = the greatest of its taps, and of to[i] unless it begins, i < n
  void (*keep_greatest)(const PoolRows& rows, float* to, std::int64_t n) noexcept;
  /// to[i], or zero, + the sum of its taps of each row
  void (*add_sums)(const PoolRows& rows, float* to, std::int64_t n) noexcept;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const PoolTable& pool_table(Isa isa) noexcept;

}  // namespace sluice::kernels::plain
