// Copies whose sources lie evenly only in parts: padding, cropping, repeating. Each axis is cut into pieces within which the source moves
// by one step, and each combination of pieces is a region, which is one strided copy.
//
//     reflect by 2      axis:   2 1 | 0 1 2 3 | 2 1       three pieces, so a map padded on two axes has nine regions
//     constant          axis:   - - | 0 1 2 3 | - -       a region with a piece outside is filled with one value
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/kernels/movement/strided_copy.h"

namespace sluice::kernels::movement {

/// Places [first, first + count) of the target take those of the source at `source`, `source` + `step` and so on; outside: none.
struct Piece {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t source = 0;
  std::int64_t step = 0;
  bool outside = false;
};

/// The pieces of one axis. There are at most `kMost`; what has more (a mirror folded often) is not for this engine.
class Pieces {
 public:
  static constexpr int kMost = 16;

  /// place(i) is the source's place for place i of `extent`, or less than 0 or `source_extent` and more outside. From one place to the next
  /// it moves by one at most, or far back, and never back and forth by one within what begins and ends as far apart as its length: so what
  /// lies between two places of a piece need not be asked for. False: too many pieces.
  template <class Place>
  bool find(std::int64_t extent, std::int64_t source_extent, const Place& place) noexcept {
    count_ = 0;
    const auto is_outside = [&](std::int64_t at) { return at < 0 || at >= source_extent; };
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t at = place(i);
      const bool outside = is_outside(at);
      if (count_ > 0 && joins(pieces_[static_cast<std::size_t>(count_ - 1)], outside, at)) {
        Piece& piece = pieces_[static_cast<std::size_t>(count_ - 1)];
        for (std::int64_t leap = 1; i + leap < extent; leap *= 2) {
          const std::int64_t there = place(i + leap);
          if (outside ? !(is_outside(there) && (there < 0) == (at < 0)) : is_outside(there) || there != at_end(piece, leap)) break;
          piece.count += leap;
          i += leap;
        }
        continue;
      }
      if (count_ == kMost) return false;
      pieces_[static_cast<std::size_t>(count_++)] = {i, 1, outside ? 0 : at, 0, outside};
    }
    return true;
  }
  int count() const noexcept { return count_; }
  const Piece& operator[](int i) const noexcept { return pieces_[static_cast<std::size_t>(i)]; }

 private:
  /// Where the piece would be `more` places behind its last.
  static std::int64_t at_end(const Piece& piece, std::int64_t more) noexcept {
    return piece.source + (piece.count - 1 + more) * piece.step;
  }

  static bool joins(Piece& piece, bool outside, std::int64_t at) noexcept {
    if (piece.outside != outside) return false;
    if (!outside) {
      if (piece.count == 1) piece.step = at - piece.source;
      if (at != piece.source + piece.count * piece.step) return false;
    }
    ++piece.count;
    return true;
  }

  std::array<Piece, kMost> pieces_;
  int count_ = 0;
};

/// Calls body(region) for each region of `whole`, whose axes have the target's extents and one step of the source each. Elements outside
/// are copies of the one at `outside`.
template <class Body>
void for_each_region(const StridedCopy& whole, std::span<const Pieces> pieces, const std::byte* outside, const Body& body) noexcept {
  std::array<int, kMaxAxes> at{};
  for (int i = 0; i < whole.rank; ++i)
    if (pieces[static_cast<std::size_t>(i)].count() == 0) return;
  for (;;) {
    StridedCopy region = whole;
    bool inside = true;
    for (int i = 0; i < whole.rank; ++i) {
      const auto a = static_cast<std::size_t>(i);
      const Piece& piece = pieces[a][at[a]];
      const CopyAxis& axis = whole.axes[a];
      inside = inside && !piece.outside;
      region.axes[a] = {piece.count, axis.from * piece.step, axis.to};
      region.from += axis.from * piece.source;
      region.to += axis.to * piece.first;
    }
    if (!inside) {
      region.from = outside;
      for (int i = 0; i < whole.rank; ++i) region.axes[static_cast<std::size_t>(i)].from = 0;
    }
    body(region);
    int i = whole.rank - 1;
    for (; i >= 0; --i) {
      const auto a = static_cast<std::size_t>(i);
      if (++at[a] < pieces[a].count()) break;
      at[a] = 0;
    }
    if (i < 0) return;
  }
}

}  // namespace sluice::kernels::movement
