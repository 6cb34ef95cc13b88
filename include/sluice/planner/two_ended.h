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

#include "sluice/planner/best_fit.h"

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
  Placement placement{std::vector<std::uint64_t>(rectangles.size(), 0), 0};
  std::vector<bool> placed(rectangles.size(), false);
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    placed[i] = rectangles[i].fixed.has_value();
    placement.offsets[i] = rectangles[i].fixed.value_or(0);
  }
  std::vector<Interval<std::uint64_t>> taken;
  bool upper = false;
  for (std::uint32_t item : order_by(rectangles, [](const Rectangle& r) { return -r.time.begin; })) {
    if (placed[item]) continue;
    placed[item] = true;
    taken.clear();
    for (std::uint32_t other : overlaps.of(item))
      if (placed[other]) taken.push_back({placement.offsets[other], placement.offsets[other] + rectangles[other].size});
    std::sort(taken.begin(), taken.end(), [&](const auto& a, const auto& b) { return upper ? a.end < b.end : a.begin < b.begin; });
    const std::optional<std::uint64_t> at =
        upper ? detail::highest_gap(taken, rectangles[item], capacity) : find_gap(taken, rectangles[item], GapRule::kLowest);
    if (!at || *at + rectangles[item].size > capacity) return std::nullopt;
    placement.offsets[item] = *at;
    upper = !upper;
  }
  placement.height = height_of(rectangles, placement.offsets);
  return placement.height <= capacity ? std::optional(placement) : std::nullopt;
}

}  // namespace sluice::planner
