// The placement problem: rectangles of time x bytes that need addresses. What the planner packs, as a problem of its own, so that it can be
// solved, validated and kept in a file without a network (sluice-pack).
//
//     bytes ^                                     rectangle   a buffer: [begin, end) of time, `size` bytes
//       cap +- - - - - - - - - - - -+             offset      its lowest byte: what is sought
//           |   +---------+         |             height      the highest offset + size: what the arena must have
//           |   |    B    |  +---+  |             live sum    the bytes of all rectangles that live at one time; the largest is the
//           | +-+---+-----+  | D |  |                         `bound`: no placement is lower
//           | |  A  |  C     |   |  |             capacity    the height that may not be exceeded
//           +-+-----+--------+---+--+--> time     ratio       height / bound: 1.000 is perfect
//
// Read on in this order: columns.h (time made small), dive.h, best_fit.h, two_ended.h (one pass each, never go back on a decision),
// exact_search.h (goes back), place.h (which of them when). validate_placement.h judges results and shares no code with them.
//
// Invariants of a placement: (P1) one offset a rectangle; (P2) offsets are multiples of the alignment; (P3) a rectangle with a fixed offset
// lies there; (P4) offset + size <= capacity; (P5) rectangles that overlap in time do not overlap in bytes. A rectangle without time or
// without bytes disturbs nobody.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"

namespace sluice::planner {

struct Rectangle {
  Interval<std::int64_t> time;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;           // of the offset; any number >= 1
  std::optional<std::uint64_t> fixed{};  // the offset, where it is already decided

  bool matters() const noexcept { return size > 0 && !time.empty(); }
};

struct PlacementProblem {
  std::vector<Rectangle> rectangles;
  std::uint64_t capacity = kUnlimitedBytes.count();
};

struct Placement {
  std::vector<std::uint64_t> offsets;  // by rectangle
  std::uint64_t height = 0;
};

/// The least multiple of `alignment` that is not below `offset`; alignments need not be powers of two here.
inline std::uint64_t round_up_to(std::uint64_t offset, std::uint64_t alignment) noexcept {
  const std::uint64_t beyond = offset % alignment;
  return beyond == 0 ? offset : offset + (alignment - beyond);
}

inline std::uint64_t height_of(const std::vector<Rectangle>& rectangles, const std::vector<std::uint64_t>& offsets) noexcept {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < rectangles.size(); ++i)
    if (rectangles[i].matters()) height = std::max(height, offsets[i] + rectangles[i].size);
  return height;
}

}  // namespace sluice::planner
