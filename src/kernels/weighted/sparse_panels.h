// Sparse panels, read: which blocks a panel has, and where.
//
//     panel:  bitmap, a bit for each of its values | blocks of 16 lanes, one for each bit that is set, in their order
//
// The bitmap came from a file. A panel whose bits promise more blocks than it has bytes for counts those that it has: nothing is read
// behind its end, and the sums of such a panel mean nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/panels.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/weighted.h"

namespace sluice::kernels::weighted {

/// One panel in memory.
class SparsePanel {
 public:
  SparsePanel(const std::byte* data, std::int64_t bytes, std::int64_t values, DType dtype) noexcept
      : bitmap_(data), values_(values), block_bytes_(kPanelLanes * static_cast<std::int64_t>(size_of(dtype))) {
    const std::int64_t bitmap_bytes = bitmap_bytes_of(values);
    blocks_ = data + bitmap_bytes;
    capacity_ = bytes < bitmap_bytes ? 0 : (bytes - bitmap_bytes) / block_bytes_;
    if (bytes < bitmap_bytes) values_ = 0;
  }

  static std::int64_t bitmap_bytes_of(std::int64_t values) noexcept {
    return static_cast<std::int64_t>(align_up(static_cast<std::uint64_t>(values + 7) / 8, kWeightAlignment));
  }

  /// Blocks before value `end`, as far as the panel has them.
  std::int64_t count_before(std::int64_t end) const noexcept {
    std::int64_t count = 0;
    for (std::int64_t word = 0; word * 64 < end; ++word) count += std::popcount(bits(word, {0, end}));
    return std::min(count, capacity_);
  }
  const std::byte* block(std::int64_t i) const noexcept { return blocks_ + i * block_bytes_; }

  /// Calls visit(value) for the values of `range` that have a block, `before` being the count of those before it; returns how many.
  template <class Visit>
  std::int64_t for_each(Interval<std::int64_t> range, std::int64_t before, const Visit& visit) const noexcept {
    return for_each_word(range, before, [&](std::int64_t first, std::uint64_t left) {
      for (; left != 0; left &= left - 1) visit(first + std::countr_zero(left));
    });
  }

  /// The same 64 values at a time: visit(first, bits), bit i being that of value first + i.
  template <class Visit>
  std::int64_t for_each_word(Interval<std::int64_t> range, std::int64_t before, const Visit& visit) const noexcept {
    const std::int64_t most = capacity_ - before;
    std::int64_t count = 0;
    for (std::int64_t word = range.begin / 64; word * 64 < range.end && count < most; ++word) {
      std::uint64_t found = bits(word, range);
      while (count + std::popcount(found) > most) found &= ~(std::uint64_t{1} << (63 - std::countl_zero(found)));
      visit(word * 64, found);
      count += std::popcount(found);
    }
    return count;
  }

 private:
  /// The bits of a word that belong to the panel's values and lie in `range`.
  std::uint64_t bits(std::int64_t word, Interval<std::int64_t> range) const noexcept {
    const std::int64_t begin = std::max<std::int64_t>(0, range.begin - word * 64), end = std::min(range.end, values_) - word * 64;
    if (end <= begin) return 0;
    std::uint64_t found;
    std::memcpy(&found, bitmap_ + word * 8, sizeof found);
    if (end < 64) found &= (std::uint64_t{1} << end) - 1;
    return found & ~std::uint64_t{0} << begin;
  }

  const std::byte* bitmap_;
  const std::byte* blocks_;
  std::int64_t values_;
  std::int64_t block_bytes_;
  std::int64_t capacity_;  // blocks that its bytes hold
};

/// Panel `p` of a step's weight. `ends`: of all panels of the weight.
inline SparsePanel sparse_panel(const WeightOperand& weight, const operators::PanelGeometry& geometry, const std::uint32_t* ends,
                                std::int64_t p) noexcept {
  constexpr auto kUnit = static_cast<std::int64_t>(kWeightAlignment);
  const auto end_of = [&](std::int64_t panel) { return panel == 0 ? 0 : std::int64_t{ends[panel - 1]} * kUnit; };
  return {weight.data + end_of(p) - end_of(weight.panels.begin), end_of(p + 1) - end_of(p), geometry.values, geometry.layout.dtype};
}

}  // namespace sluice::kernels::weighted
