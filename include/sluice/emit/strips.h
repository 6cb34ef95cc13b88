// Strips: a region may run several times, each time for some columns of what it makes for good, so that its rings are as narrow as a strip.
//
//     made for good   |=====|=====|=====|      each column belongs to one strip
//     inside          |======|                 what windows read beyond it belongs to two, and both compute it: multiply-adds for memory
//                         |=======|
//                               |=====|
//
// Inside a strip rows stay in rings, as they do without strips, so only columns are ever computed twice.
//
// Invariants: (S1) what a stage makes in a strip covers all that its readers of the region read in it; (S2) of what outlives the region the
// strips make each column at least once; (S3) a row of a ring is as long as the widest strip, so that pixels of all strips lie in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/emit/network.h"

namespace sluice::emit {

/// Stages [first, last), how many pixels each makes at a time (0: a row), and in how many strips they run.
struct Region {
  std::size_t first = 0, last = 0;
  std::int64_t granule = 0;
  std::int64_t strips = 1;

  bool contains(std::size_t stage) const noexcept { return stage >= first && stage < last; }
};

/// Whether a storage that the region makes is read after it.
inline bool outlives(const Network& network, const Region& region, std::size_t storage) {
  const Storage& s = network.storages[storage];
  return s.is_output || (!s.readers.empty() && s.readers.back() >= region.last);
}

class Strips {
 public:
  /// The cost of a region that may run in so many strips (`possible`).
  Strips(const Network& network, const Region& region) : network_(network), region_(region) {
    const std::size_t count = region.last - region.first;
    columns_.resize(static_cast<std::size_t>(region.strips) * count);
    for (std::int64_t strip = 0; strip < region.strips; ++strip)
      for (std::size_t i = region.last; i-- > region.first;) at(strip, i) = made_in(strip, i);
  }

  /// Every stage finds its pixels by row and column, in rows that are as long as their maker's, and somebody reads what it makes. Folds
  /// count on seeing each pixel once.
  static bool possible(const Network& network, const Region& region) {
    if (region.strips == 1) return true;
    for (std::size_t i = region.first; i < region.last; ++i) {
      const Stage& stage = network.stages[i];
      const bool kept = outlives(network, region, stage.storage);
      if (stage.folds || !by_columns(stage.kernel)) return false;
      if (kept ? !stage.whole_rows && stage.out.pixels < region.strips : network.storages[stage.storage].readers.empty()) return false;
      for (const StageInput& input : stage.inputs) {
        const auto maker = network.storages[input.storage].maker;
        if (!maker || !region.contains(*maker)) continue;
        const RowExtents& made = network.stages[*maker].out;
        if (!same(input.view, made) || (!input.reach && !same_pixels(made, stage.walked))) return false;
      }
    }
    return true;
  }

  Interval<std::int64_t> columns(std::int64_t strip, std::size_t stage) const { return columns_[index(strip, stage)]; }

  /// Pixels from one row to the next of what a stage makes: of a ring in strips, those of the widest one.
  std::int64_t row_pixels(std::size_t stage) const {
    if (region_.strips == 1 || outlives(network_, region_, network_.stages[stage].storage)) return network_.stages[stage].out.pixels;
    std::int64_t widest = 0;
    for (std::int64_t strip = 0; strip < region_.strips; ++strip) widest = std::max(widest, columns(strip, stage).size());
    return widest;
  }

  /// Multiply-adds of all strips.
  std::uint64_t macs() const {
    std::uint64_t sum = 0;
    for (std::size_t i = region_.first; i < region_.last; ++i) {
      std::int64_t made = 0;
      for (std::int64_t strip = 0; strip < region_.strips; ++strip) made += columns(strip, i).size();
      sum += network_.stages[i].macs * static_cast<std::uint64_t>(made) / static_cast<std::uint64_t>(network_.stages[i].walked.pixels);
    }
    return sum;
  }

 private:
  static bool by_columns(Kernel kernel) {
    return kernel != Kernel::kCopy && kernel != Kernel::kJoin && kernel != Kernel::kMatMul && kernel != Kernel::kMatMulU8 &&
           kernel != Kernel::kAttention;
  }
  static bool same_pixels(const RowExtents& a, const RowExtents& b) { return a.rows == b.rows && a.pixels == b.pixels; }
  static bool same(const RowExtents& a, const RowExtents& b) { return same_pixels(a, b) && a.channels == b.channels; }

  Interval<std::int64_t> made_in(std::int64_t strip, std::size_t i) const {
    const Stage& stage = network_.stages[i];
    const std::int64_t pixels = stage.walked.pixels;
    if (region_.strips == 1 || stage.whole_rows) return {0, pixels};
    Interval<std::int64_t> made{pixels, 0};
    if (outlives(network_, region_, stage.storage)) made = {pixels * strip / region_.strips, pixels * (strip + 1) / region_.strips};
    for (const std::size_t reader : network_.storages[stage.storage].readers) {
      if (!region_.contains(reader)) continue;
      const Interval<std::int64_t> wanted = columns(strip, reader);
      for (const StageInput& input : network_.stages[reader].inputs)
        if (input.storage == stage.storage)
          made = made.hull(input.reach
                               ? Interval<std::int64_t>{input.reach->pixel.first(wanted.begin), input.reach->pixel.last(wanted.end - 1) + 1}
                               : wanted);
    }
    return made;
  }

  std::size_t index(std::int64_t strip, std::size_t stage) const {
    return static_cast<std::size_t>(strip) * (region_.last - region_.first) + stage - region_.first;
  }
  Interval<std::int64_t>& at(std::int64_t strip, std::size_t stage) { return columns_[index(strip, stage)]; }

  const Network& network_;
  Region region_;
  std::vector<Interval<std::int64_t>> columns_;
};

}  // namespace sluice::emit
