// The two-ended rule: in order of time, by turns at the lower and at the upper end of the arena, so that what is free stays in one piece.
//
//     capacity +-+---+-----+-----+
//              | | B |     |  D  |       A, B, C, D begin in this order
//              | +---+     +-----+
//              |        free     |
//              +----+  +-----+   |
//              | A  |  |  C  |   |
//              +----+--+-----+---+--> time
//
// It suits chains, where only neighbours overlap, and leaves the middle to weights that stream.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/best_fit.h"

namespace sluice::planner {

namespace detail {

/// The highest offset below `capacity` that is free, or nothing. `taken` is sorted by end, and its ranges may overlap.
inline std::optional<std::uint64_t> highest_gap(const std::vector<Interval<std::uint64_t>>& taken, const Rectangle& rectangle,
                                                std::uint64_t capacity) {
  std::uint64_t end = capacity;
  const auto fits_above = [&](std::uint64_t begin) -> std::optional<std::uint64_t> {
    if (end < rectangle.size) return std::nullopt;
    const std::uint64_t at = (end - rectangle.size) / rectangle.alignment * rectangle.alignment;
    return at >= begin ? std::optional(at) : std::nullopt;
  };
  for (auto bytes = taken.rbegin(); bytes != taken.rend(); ++bytes) {
    if (bytes->end <= end)
      if (const auto at = fits_above(bytes->end)) return at;
    end = std::min(end, bytes->begin);
  }
  return fits_above(0);
}

}  // namespace detail

/// Nothing when the rule does not fit the capacity. O(pairs log n).
inline std::optional<Placement> place_two_ended(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps,
                                                std::uint64_t capacity) {
  GrowingPlacement growing(rectangles, overlaps);
  bool upper = false;
  for (std::uint32_t item : order_by(rectangles, [](const Rectangle& r) { return -r.time.begin; })) {
    if (growing.has(item)) continue;
    auto& taken = growing.taken_beside(item);
    sluice::sort(taken.begin(), taken.end(), [&](const auto& a, const auto& b) { return upper ? a.end < b.end : a.begin < b.begin; });
    const std::optional<std::uint64_t> at =
        upper ? detail::highest_gap(taken, rectangles[item], capacity) : find_gap(taken, rectangles[item], GapRule::kLowest);
    if (!at || *at + rectangles[item].size > capacity) return std::nullopt;
    growing.put(item, *at);
    upper = !upper;
  }
  Placement placement = std::move(growing).finish();
  return placement.height <= capacity ? std::optional(std::move(placement)) : std::nullopt;
}

}  // namespace sluice::planner
