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

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/columns.h"

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

/// For each rectangle, the fixed ones that it overlaps in time, sorted by offset: they never move out of its way.
class Islands {
 public:
  Islands(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps) : rectangles_(rectangles) {
    for (std::uint32_t i = 0; i < rectangles.size(); ++i)
      if (rectangles[i].fixed && rectangles[i].matters()) by_offset_.push_back(i);
    if (by_offset_.empty()) return;
    sluice::stable_sort(by_offset_.begin(), by_offset_.end(),
                        [&](std::uint32_t a, std::uint32_t b) { return *rectangles[a].fixed < *rectangles[b].fixed; });
    beside_.resize(rectangles.size());
    for (std::uint32_t island : by_offset_)
      for (std::uint32_t other : overlaps.of(island)) beside_[other].push_back(island);
  }

  /// The least offset >= `floor` at which `item` clears them. One pass: what lies lower than an island in the way was cleared before it.
  /// `passed`: how many of them lie below a floor of the item that was asked for before.
  std::uint64_t clear(std::size_t item, std::uint64_t floor, std::uint32_t& passed) const {
    std::uint64_t at = round_up_to(floor, rectangles_[item].alignment);
    if (beside_.empty()) return at;
    for (; passed < beside_[item].size(); ++passed) {
      const Rectangle& island = rectangles_[beside_[item][passed]];
      if (at + rectangles_[item].size <= *island.fixed) break;
      at = std::max(at, round_up_to(*island.fixed + island.size, rectangles_[item].alignment));
    }
    return at;
  }

 private:
  const std::vector<Rectangle>& rectangles_;
  std::vector<std::uint32_t> by_offset_;
  std::vector<std::vector<std::uint32_t>> beside_;  // by rectangle; empty: there are none
};

/// O(pairs + n log n) where few floors are passed twice. Each rectangle is once in the queue, at a floor that may have risen since: floors
/// only rise, so who comes to its head at the floor that still holds is the lowest of all.
inline Placement dive(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps, const Islands& islands,
                      const std::vector<Measures>& measures, DiveRule rule) {
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
  std::vector<std::uint32_t> passed(rectangles.size(), 0);  // islands
  std::priority_queue<Entry> queue;
  for (std::uint32_t i = 0; i < rectangles.size(); ++i) {
    if (rectangles[i].fixed) offsets[i] = *rectangles[i].fixed;
    placed[i] = rectangles[i].fixed || !rectangles[i].matters();
    if (!placed[i]) queue.push({offsets[i] = islands.clear(i, 0, passed[i]), keys_in_order(rule, measures[i]), i});
  }
  while (!queue.empty()) {
    Entry entry = queue.top();
    queue.pop();
    if (entry.offset != offsets[entry.item]) {
      entry.offset = offsets[entry.item];
      queue.push(entry);
      continue;
    }
    placed[entry.item] = true;
    const std::uint64_t top = entry.offset + rectangles[entry.item].size;
    for (std::uint32_t other : overlaps.of(entry.item))
      if (!placed[other] && offsets[other] < top) offsets[other] = islands.clear(other, top, passed[other]);
  }
  placement.height = height_of(rectangles, offsets);
  return placement;
}

}  // namespace sluice::planner
