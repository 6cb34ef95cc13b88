// The skyline dive: always the unplaced rectangle that can lie lowest, so that gaps are filled before anything is stacked.
//
//     bytes ^             +---+         floors after A and B: C 2, D 0 -> D goes next, then C
//           |  +---+      | C |
//           |  | B +---+  +---+         ties go by a rule, in the order of its letters:
//           |  +---+ A |  | D |           T  the largest live sum while it lives (what is crowded comes first)
//           +--+---+---+--+---+--> time   W  its width in time, A its area
//
// On network graphs a dive nearly always reaches the bound. Fixed rectangles are islands: a rectangle goes below one only if it fits there.
#pragma once

#include <array>
#include <queue>
#include <tuple>
#include <vector>

#include "sluice/planner/columns.h"

namespace sluice::planner {

enum class DiveRule : std::uint8_t { kTwa, kTaw, kWat };
inline constexpr std::array<DiveRule, 3> kDiveRules = {DiveRule::kTwa, DiveRule::kTaw, DiveRule::kWat};

struct Measures {
  double total = 0, width = 0, area = 0;
};

/// More comes first.
inline std::array<double, 3> keys_in_order(DiveRule rule, const Measures& m) noexcept {
  if (rule == DiveRule::kTwa) return {m.total, m.width, m.area};
  if (rule == DiveRule::kTaw) return {m.total, m.area, m.width};
  return {m.width, m.area, m.total};
}

/// By rectangle.
inline std::vector<Measures> measures_of(const std::vector<Rectangle>& rectangles, const Columns& columns) {
  const std::vector<std::uint64_t> sums = live_sums(rectangles, columns);
  std::vector<Measures> measures(rectangles.size());
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    const Interval<std::uint32_t>& run = columns.runs[i];
    if (run.empty()) continue;
    measures[i].total = static_cast<double>(*std::max_element(sums.begin() + run.begin, sums.begin() + run.end));
    measures[i].width = static_cast<double>(rectangles[i].time.size());
    measures[i].area = measures[i].width * static_cast<double>(rectangles[i].size);
  }
  return measures;
}

/// The least offset >= `floor` at which `item` clears the fixed rectangles that it overlaps.
inline std::uint64_t clear_of_islands(const std::vector<Rectangle>& rectangles, std::span<const std::uint32_t> overlapping,
                                      std::size_t item, std::uint64_t floor) {
  std::uint64_t at = round_up_to(floor, rectangles[item].alignment);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t other : overlapping) {
      const Rectangle& island = rectangles[other];
      if (!island.fixed || at + rectangles[item].size <= *island.fixed || at >= *island.fixed + island.size) continue;
      at = round_up_to(*island.fixed + island.size, rectangles[item].alignment);
      moved = true;
    }
  }
  return at;
}

/// O(pairs log n).
inline Placement dive(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps, const std::vector<Measures>& measures,
                      DiveRule rule) {
  struct Entry {
    std::uint64_t offset;
    std::array<double, 3> keys;
    std::uint32_t item;
    bool operator<(const Entry& other) const noexcept {  // the queue gives the greatest first
      return std::tie(other.offset, keys, other.item) < std::tie(offset, other.keys, item);
    }
  };
  Placement placement{std::vector<std::uint64_t>(rectangles.size(), 0), 0};
  std::vector<std::uint64_t>& offsets = placement.offsets;
  std::vector<bool> placed(rectangles.size(), false);
  std::priority_queue<Entry> queue;
  const bool islands = std::any_of(rectangles.begin(), rectangles.end(), [](const Rectangle& r) { return r.fixed && r.matters(); });
  const auto settle = [&](std::uint32_t i, std::uint64_t floor) {
    return islands ? clear_of_islands(rectangles, overlaps.of(i), i, floor) : round_up_to(floor, rectangles[i].alignment);
  };
  for (std::uint32_t i = 0; i < rectangles.size(); ++i) {
    if (rectangles[i].fixed) offsets[i] = *rectangles[i].fixed;
    placed[i] = rectangles[i].fixed || !rectangles[i].matters();
    if (!placed[i]) queue.push({offsets[i] = settle(i, 0), keys_in_order(rule, measures[i]), i});
  }
  while (!queue.empty()) {
    const std::uint32_t item = queue.top().item;
    const bool current = !placed[item] && queue.top().offset == offsets[item];
    queue.pop();
    if (!current) continue;
    placed[item] = true;
    const std::uint64_t top = offsets[item] + rectangles[item].size;
    for (std::uint32_t other : overlaps.of(item)) {
      if (placed[other] || offsets[other] >= top) continue;
      offsets[other] = settle(other, top);
      queue.push({offsets[other], keys_in_order(rule, measures[other]), other});
    }
  }
  placement.height = height_of(rectangles, offsets);
  return placement;
}

}  // namespace sluice::planner
