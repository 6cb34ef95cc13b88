// Addresses for rectangles of which some pairs may overlap in part: a tensor that dies in a region lies above the one that is made there.
//
//     bytes ^     |   above   |                 `above` ends as `below` begins; while both live, `above` lies at least `distance` above
//           |     |___________|_______          the start of `below`, or they lie apart
//           |  distance |  below      |
//           +-----------+-------------+--> time
//
// planner/place.h packs rectangles that never overlap; with pairs, what is decided for one limits the other in another way, so this is a
// search of its own: first fit in one of two orders, then in orders near the best one so far. It is small, since a network has some hundred
// rectangles.
//
// Invariants: (O1) rectangles that overlap in time overlap in bytes only as a pair says; (O2) the same problem gives the same addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sluice/planner/placement_problem.h"

namespace sluice::emit {

struct OverlapPair {
  std::size_t above = 0, below = 0;
  std::uint64_t distance = 0;
};

class OverlapPlacement {
 public:
  OverlapPlacement(const std::vector<planner::Rectangle>& rectangles, const std::vector<OverlapPair>& pairs)
      : rectangles_(rectangles), neighbours_(rectangles.size()) {
    for (std::size_t a = 0; a < rectangles.size(); ++a)
      for (std::size_t b = 0; b < rectangles.size(); ++b)
        if (a != b && rectangles[a].matters() && rectangles[b].matters() && meet(rectangles[a].time, rectangles[b].time))
          neighbours_[a].push_back({b, rectangles[a].size, rectangles[b].size});
    for (const OverlapPair& pair : pairs) {
      for (Neighbour& n : neighbours_[pair.above])
        if (n.other == pair.below) n.above = std::min(n.above, pair.distance);
      for (Neighbour& n : neighbours_[pair.below])
        if (n.other == pair.above) n.below = std::min(n.below, pair.distance);
    }
  }

  /// Stops when the height is at most `goal`.
  planner::Placement lowest(std::uint64_t goal) const {
    constexpr int kOrders = 4000;
    std::vector<std::size_t> order = latest_first();
    planner::Placement best = fit(order);
    if (planner::Placement scarcest = fit(scarcest_first()); scarcest.height < best.height) {
      order = scarcest_first();
      best = std::move(scarcest);
    }
    std::uint64_t random = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < kOrders && best.height > goal && order.size() > 1; ++i) {
      std::vector<std::size_t> tried = order;
      const auto draw = [&] {
        return static_cast<std::size_t>((random = random * 6364136223846793005u + 1442695040888963407u) >> 33) % order.size();
      };
      const std::size_t from = draw(), to = draw();
      std::rotate(tried.begin() + static_cast<std::ptrdiff_t>(std::min(from, to)), tried.begin() + static_cast<std::ptrdiff_t>(from),
                  tried.begin() + static_cast<std::ptrdiff_t>(std::max(from, to)));
      planner::Placement placement = fit(tried);
      if (placement.height > best.height) continue;
      best = std::move(placement);
      order = std::move(tried);
    }
    return best;
  }

 private:
  /// Of a rectangle: another one that lives at the same time, and the distances at which this one must begin above the other's start, or
  /// below it.
  struct Neighbour {
    Neighbour(std::size_t o, std::uint64_t size, std::uint64_t other_size) : other(o), above(other_size), below(size) {}
    std::size_t other;
    std::uint64_t above, below;
  };

  static bool meet(const Interval<std::int64_t>& a, const Interval<std::int64_t>& b) { return a.begin < b.end && b.begin < a.end; }

  /// What lies below comes before what lies above it.
  std::vector<std::size_t> latest_first() const {
    std::vector<std::size_t> order(rectangles_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rectangles_[a].time.begin > rectangles_[b].time.begin; });
    return order;
  }

  /// By the most bytes that live beside a rectangle, then by size.
  std::vector<std::size_t> scarcest_first() const {
    std::vector<std::uint64_t> crowd(rectangles_.size(), 0);
    for (std::size_t a = 0; a < rectangles_.size(); ++a)
      for (std::int64_t at = rectangles_[a].time.begin; at < rectangles_[a].time.end; ++at) {
        std::uint64_t sum = 0;
        for (const planner::Rectangle& b : rectangles_)
          if (b.time.begin <= at && at < b.time.end) sum += b.size;
        crowd[a] = std::max(crowd[a], sum);
      }
    std::vector<std::size_t> order(rectangles_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return crowd[a] != crowd[b] ? crowd[a] > crowd[b] : rectangles_[a].size > rectangles_[b].size;
    });
    return order;
  }

  /// Each at the lowest address that those before it leave.
  planner::Placement fit(const std::vector<std::size_t>& order) const {
    planner::Placement placement;
    placement.offsets.assign(rectangles_.size(), 0);
    std::vector<bool> placed(rectangles_.size(), false);
    std::vector<Interval<std::uint64_t>> taken;  // starts that another one forbids: (begin, end), both open
    for (const std::size_t i : order) {
      placed[i] = true;
      if (!rectangles_[i].matters()) continue;
      taken.clear();
      for (const Neighbour& n : neighbours_[i]) {
        if (!placed[n.other]) continue;
        const std::uint64_t at = placement.offsets[n.other];
        taken.push_back({at >= n.below ? at - n.below + 1 : 0, at + n.above});
      }
      std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
      std::uint64_t offset = 0;
      for (const Interval<std::uint64_t>& t : taken)
        if (offset >= t.begin && offset < t.end) offset = planner::round_up_to(t.end, rectangles_[i].alignment);
      placement.offsets[i] = offset;
      placement.height = std::max(placement.height, offset + rectangles_[i].size);
    }
    return placement;
  }

  const std::vector<planner::Rectangle>& rectangles_;
  std::vector<std::vector<Neighbour>> neighbours_;
};

}  // namespace sluice::emit
