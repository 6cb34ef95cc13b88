// Rectangles are placed in a stated order, each into a gap between those that lie already and overlap it in time.
//
//     bytes ^  |  C   |          D must go round A, B and C, which live while it lives:
//           |  +------+            lowest gap   between A and B
//           |  |::::::|  <- best   best fit     the smallest gap that holds it: between B and C
//           |  |  B   |
//           |  |      |          above all of them there is always room
//           |  |::::::|  <- lowest
//           |  |  A   |
//           +--+------+--> time
//
// Large ones first is the rule of most runtimes; long-lived ones first suits graphs with few large weights. Fixed rectangles are placed
// before all others.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/columns.h"

namespace sluice::planner {

enum class GapRule : std::uint8_t { kLowest, kSmallest };

/// The gap for `rectangle` among byte ranges sorted by their begin. O(taken).
inline std::uint64_t find_gap(const std::vector<Interval<std::uint64_t>>& taken, const Rectangle& rectangle, GapRule rule) {
  std::uint64_t at = 0;
  std::optional<Interval<std::uint64_t>> best;
  for (const Interval<std::uint64_t>& bytes : taken) {
    if (at + rectangle.size <= bytes.begin && (!best || bytes.begin - at < best->size())) {
      best = Interval<std::uint64_t>{at, bytes.begin};
      if (rule == GapRule::kLowest) break;
    }
    if (bytes.end > at) at = round_up_to(bytes.end, rectangle.alignment);
  }
  return best ? best->begin : at;
}

/// A placement that grows by one rectangle after the other; the fixed ones are there from the start.
class GrowingPlacement {
 public:
  GrowingPlacement(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps)
      : rectangles_(rectangles), overlaps_(overlaps), offsets_(rectangles.size(), 0), placed_(rectangles.size(), false) {
    for (std::size_t i = 0; i < rectangles.size(); ++i) {
      placed_[i] = rectangles[i].fixed.has_value();
      offsets_[i] = rectangles[i].fixed.value_or(0);
    }
  }

  bool has(std::uint32_t item) const noexcept { return placed_[item]; }
  void put(std::uint32_t item, std::uint64_t offset) {
    placed_[item] = true;
    offsets_[item] = offset;
  }

  /// Bytes of the placed ones that overlap `item` in time, in no order. Holds until the next call.
  std::vector<Interval<std::uint64_t>>& taken_beside(std::uint32_t item) {
    taken_.clear();
    for (std::uint32_t other : overlaps_.of(item))
      if (placed_[other]) taken_.push_back({offsets_[other], offsets_[other] + rectangles_[other].size});
    return taken_;
  }

  Placement finish() && {
    const std::uint64_t height = height_of(rectangles_, offsets_);
    return {std::move(offsets_), height};
  }

 private:
  const std::vector<Rectangle>& rectangles_;
  const Overlaps& overlaps_;
  std::vector<std::uint64_t> offsets_;
  std::vector<bool> placed_;
  std::vector<Interval<std::uint64_t>> taken_;
};

/// Places all in `order`; `order` need not name the fixed ones. O(pairs log n).
inline Placement place_in_order(const std::vector<Rectangle>& rectangles, const Overlaps& overlaps, const std::vector<std::uint32_t>& order,
                                GapRule rule) {
  GrowingPlacement placement(rectangles, overlaps);
  for (std::uint32_t item : order) {
    if (placement.has(item)) continue;
    auto& taken = placement.taken_beside(item);
    sluice::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    placement.put(item, find_gap(taken, rectangles[item], rule));
  }
  return std::move(placement).finish();
}

/// All that matter, those with more of `measure(rectangle)` first.
template <class Measure>
std::vector<std::uint32_t> order_by(const std::vector<Rectangle>& rectangles, const Measure& measure) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < rectangles.size(); ++i)
    if (rectangles[i].matters()) order.push_back(i);
  sluice::stable_sort(order.begin(), order.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return measure(rectangles[a]) > measure(rectangles[b]); });
  return order;
}

/// Each when its time comes, in the lowest gap, without a list of who overlaps whom: for problems too entangled for one.
/// O(n * rectangles that live at once).
inline Placement place_as_time_passes(const std::vector<Rectangle>& rectangles) {
  Placement placement{std::vector<std::uint64_t>(rectangles.size(), 0), 0};
  std::vector<std::uint32_t> live;  // by offset
  std::vector<std::uint32_t> fixed;
  for (std::uint32_t i = 0; i < rectangles.size(); ++i) {
    placement.offsets[i] = rectangles[i].fixed.value_or(0);
    if (rectangles[i].fixed && rectangles[i].matters()) fixed.push_back(i);
  }
  std::vector<Interval<std::uint64_t>> taken;
  const auto take = [&](std::uint32_t i) { taken.push_back({placement.offsets[i], placement.offsets[i] + rectangles[i].size}); };
  const auto begins_earlier = [](const Rectangle& r) { return -r.time.begin; };
  for (std::uint32_t item : order_by(rectangles, begins_earlier)) {
    if (rectangles[item].fixed) continue;
    std::erase_if(live, [&](std::uint32_t other) { return rectangles[other].time.end <= rectangles[item].time.begin; });
    taken.clear();
    for (std::uint32_t other : live) take(other);
    for (std::uint32_t other : fixed)
      if (rectangles[other].time.overlaps(rectangles[item].time)) take(other);
    if (!fixed.empty()) sluice::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const std::uint64_t at = placement.offsets[item] = find_gap(taken, rectangles[item], GapRule::kLowest);
    const auto lower = [&](std::uint64_t offset, std::uint32_t other) { return offset < placement.offsets[other]; };
    live.insert(std::upper_bound(live.begin(), live.end(), at, lower), item);
  }
  placement.height = height_of(rectangles, placement.offsets);
  return placement;
}

}  // namespace sluice::planner
