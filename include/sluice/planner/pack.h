// Packing: rectangles of time x bytes get offsets so that none overlap; the height is what the arena must have.
//
//     bytes ^   +---------+            time counts positions of the execution order
//           |   |    B    |  +---+
//           | +-+---+-----+  | D |     a dive always takes the rectangle that can lie lowest;
//           | |  A  |  C     |   |     the orders differ in how they break ties
//           +-+-----+--------+---+--> time
//
// Several cheap orders are tried and the lowest result kept (planner.md 3.3a); on network graphs one of them nearly always reaches the
// live sum, which nothing can beat. Invariants: offsets are multiples of 64; rectangles that overlap in time do not overlap in bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"

namespace sluice::planner {

inline constexpr std::uint64_t kBufferAlignment = 64;

/// A buffer to place: when it lives, and how large it is (a multiple of kBufferAlignment).
struct PackItem {
  Interval<std::int64_t> time;
  std::uint64_t size = 0;
};

struct Packing {
  std::vector<std::uint64_t> offsets;  // by item
  std::uint64_t height = 0;
};

namespace detail {

inline std::uint64_t packed_height(const std::vector<PackItem>& items, const std::vector<std::uint64_t>& offsets) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < items.size(); ++i) height = std::max(height, offsets[i] + items[i].size);
  return height;
}

/// Places items one after the other in `order`, each at the lowest offset where it fits among those placed.
inline Packing pack_in_order(const std::vector<PackItem>& items, const std::vector<std::size_t>& order) {
  Packing packing{std::vector<std::uint64_t>(items.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t i : order) {
    std::uint64_t at = 0;
    for (std::size_t p : placed) {
      if (!items[p].time.overlaps(items[i].time)) continue;
      if (packing.offsets[p] >= at + items[i].size) break;
      at = std::max(at, packing.offsets[p] + items[p].size);
    }
    packing.offsets[i] = at;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), at, [&](std::uint64_t o, std::size_t p) { return o < packing.offsets[p]; }), i);
  }
  packing.height = packed_height(items, packing.offsets);
  return packing;
}

/// A skyline dive: always the unplaced item whose lowest offset above all placed neighbours is least; ties by descending `keys`.
inline Packing pack_by_dive(const std::vector<PackItem>& items, const std::vector<std::array<std::uint64_t, 3>>& keys) {
  Packing packing{std::vector<std::uint64_t>(items.size()), 0};
  std::vector<std::uint64_t> floor(items.size(), 0);
  std::vector<std::size_t> left(items.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {
    const auto best = std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
      return floor[a] != floor[b] ? floor[a] < floor[b] : keys[a] > keys[b];
    });
    const std::size_t item = *best;
    left.erase(best);
    packing.offsets[item] = floor[item];
    for (std::size_t other : left)
      if (items[other].time.overlaps(items[item].time)) floor[other] = std::max(floor[other], floor[item] + items[item].size);
  }
  packing.height = packed_height(items, packing.offsets);
  return packing;
}

/// Each item when its time comes, at the lowest offset that is free then. O(items * items live at once): for graphs too large to dive.
inline Packing pack_by_time(const std::vector<PackItem>& items) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return items[a].time.begin < items[b].time.begin; });
  Packing packing{std::vector<std::uint64_t>(items.size()), 0};
  std::vector<std::size_t> live;  // by offset
  for (std::size_t i : order) {
    std::erase_if(live, [&](std::size_t l) { return items[l].time.end <= items[i].time.begin; });
    std::uint64_t at = 0;
    auto next = live.begin();
    for (; next != live.end() && packing.offsets[*next] < at + items[i].size; ++next)
      at = std::max(at, packing.offsets[*next] + items[*next].size);
    packing.offsets[i] = at;
    live.insert(std::upper_bound(live.begin(), live.end(), at, [&](std::uint64_t o, std::size_t l) { return o < packing.offsets[l]; }), i);
  }
  packing.height = packed_height(items, packing.offsets);
  return packing;
}

/// The largest live sum while each item lives.
inline std::vector<std::uint64_t> live_totals(const std::vector<PackItem>& items) {
  std::vector<std::uint64_t> totals(items.size(), 0);
  for (const PackItem& at : items) {  // a live sum is largest where some item begins
    std::uint64_t sum = 0;
    for (const PackItem& other : items)
      if (other.time.contains(at.time.begin)) sum += other.size;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].time.contains(at.time.begin)) totals[i] = std::max(totals[i], sum);
  }
  return totals;
}

}  // namespace detail

/// The largest live sum: no packing is lower.
inline std::uint64_t live_sum(const std::vector<PackItem>& items) {
  const std::vector<std::uint64_t> totals = detail::live_totals(items);
  return totals.empty() ? 0 : *std::max_element(totals.begin(), totals.end());
}

/// The lowest of several packings. O(items^2), up to a size that no sane graph reaches.
inline Packing pack(const std::vector<PackItem>& items) {
  constexpr std::size_t kMostToDive = 4096;
  if (items.size() > kMostToDive) return detail::pack_by_time(items);
  const std::vector<std::uint64_t> totals = detail::live_totals(items);
  const std::uint64_t bound = totals.empty() ? 0 : *std::max_element(totals.begin(), totals.end());
  Packing best;
  best.height = ~std::uint64_t{0};
  const auto keep = [&](Packing candidate) {
    if (candidate.height < best.height) best = std::move(candidate);
    return best.height == bound;
  };
  constexpr std::array<std::array<int, 3>, 3> kRules{{{0, 1, 2}, {0, 2, 1}, {1, 2, 0}}};  // TWA, TAW, WAT
  for (const auto& rule : kRules) {
    std::vector<std::array<std::uint64_t, 3>> keys(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto width = static_cast<std::uint64_t>(items[i].time.size());
      const std::array<std::uint64_t, 3> measures{totals[i], width, width * items[i].size};
      for (std::size_t k = 0; k < 3; ++k) keys[i][k] = measures[static_cast<std::size_t>(rule[k])];
    }
    if (keep(detail::pack_by_dive(items, keys))) return best;
  }
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto try_order = [&](auto before) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return before(items[a], items[b]); });
    return keep(detail::pack_in_order(items, order));
  };
  if (try_order([](const PackItem& a, const PackItem& b) { return a.size > b.size; })) return best;
  if (try_order([](const PackItem& a, const PackItem& b) { return a.time.size() > b.time.size(); })) return best;
  const auto area = [](const PackItem& item) { return item.size * static_cast<std::uint64_t>(item.time.size()); };
  try_order([&](const PackItem& a, const PackItem& b) { return area(a) > area(b); });
  return best;
}

}  // namespace sluice::planner
