// Addresses for rectangles of which some pairs may overlap in part: a tensor that dies in a region lies above the one that is made there.
//
//     bytes ^     |   above   |                 `above` ends as `below` begins; while both live, `above` lies at least `distance` above
//           |     |___________|_______          the start of `below`, or they lie apart
//           |  distance |  below      |
//           +-----------+-------------+--> time
//
// planner/place/place.h packs rectangles that never overlap; with pairs, what is decided for one limits the other in another way, so this
// is a search of its own: first fit in one of two orders, then near the best attempt so far, where some are laid from above instead: a
// chain of tensors each over the next lies at the top where rings need the bottom. It is small, since a network has some hundred
// rectangles.
//
// Invariants: (O1) rectangles that overlap in time overlap in bytes only as a pair says; (O2) the same problem gives the same addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "sluice/planner/place/placement_problem.h"

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

  /// The lowest that is found; the search stops when the height is at most `goal`.
  planner::Placement lowest(std::uint64_t goal) const {
    const std::vector<bool> from_below(rectangles_.size(), false);
    Attempt best = improved(goal, fit(goal, latest_first(), from_below));
    if (best.placement.height > goal)
      if (Attempt other = improved(goal, fit(goal, scarcest_first(), from_below)); other.is_better_than(best)) best = std::move(other);
    return std::move(best.placement);
  }

 private:
  /// A constraint on a rectangle: another one that lives at the same time, and how far above the other's start, or below it, this one must
  /// begin.
  struct Neighbour {
    Neighbour(std::size_t o, std::uint64_t size, std::uint64_t other_size) : other(o), above(other_size), below(size) {}
    std::size_t other;
    std::uint64_t above, below;
  };

  static bool meet(const Interval<std::int64_t>& a, const Interval<std::int64_t>& b) { return a.begin < b.end && b.begin < a.end; }

  /// Rectangles in the order in which they were laid, and from which end; `excess`: the bytes that they have beyond the goal.
  struct Attempt {
    std::vector<std::size_t> order;
    std::vector<bool> from_above;
    planner::Placement placement;
    std::uint64_t excess = 0;

    bool is_better_than(const Attempt& other) const {
      return placement.height != other.placement.height ? placement.height < other.placement.height : excess < other.excess;
    }
  };

  /// The place in the order of the first rectangle that ends at the top.
  std::size_t highest(const Attempt& attempt) const {
    const auto at_top = [&](std::size_t i) {
      return rectangles_[i].matters() && attempt.placement.offsets[i] + rectangles_[i].size == attempt.placement.height;
    };
    return static_cast<std::size_t>(std::find_if(attempt.order.begin(), attempt.order.end(), at_top) - attempt.order.begin());
  }

  /// The results of small changes of an attempt: a rectangle that ends highest goes before another, any goes before any other, or one is
  /// placed from the other end.
  Attempt improved(std::uint64_t goal, Attempt best) const {
    constexpr int kTries = 6000;
    std::uint64_t random = 0x9e3779b97f4a7c15u;
    const auto draw = [&](std::size_t count) {
      return static_cast<std::size_t>((random = random * 6364136223846793005u + 1442695040888963407u) >> 33) % count;
    };
    for (int i = 0; i < kTries && best.placement.height > goal && rectangles_.size() > 1; ++i) {
      std::vector<std::size_t> order = best.order;
      std::vector<bool> from_above = best.from_above;
      const bool one_of_the_highest = i % 3 == 0;
      const std::size_t from = one_of_the_highest ? highest(best) : draw(order.size());
      const std::size_t to = draw(one_of_the_highest ? from + 1 : order.size());
      if (i % 3 == 2 || i % 5 == 0)
        from_above[order[from]] = !from_above[order[from]];
      else
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(std::min(from, to)), order.begin() + static_cast<std::ptrdiff_t>(from),
                    order.begin() + static_cast<std::ptrdiff_t>(std::max(from, to)));
      Attempt tried = fit(goal, std::move(order), std::move(from_above));
      if (!best.is_better_than(tried)) best = std::move(tried);
    }
    return best;
  }

  /// Rectangles at lower addresses come before those above them.
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

  /// Each at the lowest address that those before it leave, or, from above, at the highest below the goal, if there is one.
  Attempt fit(std::uint64_t goal, std::vector<std::size_t> order, std::vector<bool> from_above) const {
    Attempt made{std::move(order), std::move(from_above), {}, 0};
    planner::Placement& placement = made.placement;
    placement.offsets.assign(rectangles_.size(), 0);
    std::vector<bool> placed(rectangles_.size(), false);
    Taken taken;
    for (const std::size_t i : made.order) {
      placed[i] = true;
      if (!rectangles_[i].matters()) continue;
      taken.clear();
      for (const Neighbour& n : neighbours_[i]) {
        if (!placed[n.other]) continue;
        const std::uint64_t at = placement.offsets[n.other];
        taken.push_back({at >= n.below ? at - n.below + 1 : 0, at + n.above});
      }
      std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
      const std::optional<std::uint64_t> high = made.from_above[i] ? highest_free(taken, rectangles_[i], goal) : std::nullopt;
      const std::uint64_t offset = high ? *high : lowest_free(taken, rectangles_[i]), end = offset + rectangles_[i].size;
      placement.offsets[i] = offset;
      placement.height = std::max(placement.height, end);
      made.excess += end > goal ? end - goal : 0;
    }
    return made;
  }

  /// Starts that others forbid.
  using Taken = std::vector<Interval<std::uint64_t>>;

  static std::uint64_t lowest_free(const Taken& taken, const planner::Rectangle& rectangle) {
    std::uint64_t offset = 0;
    for (const Interval<std::uint64_t>& t : taken)
      if (t.contains(offset)) offset = planner::round_up_to(t.end, rectangle.alignment);
    return offset;
  }

  static std::optional<std::uint64_t> highest_free(const Taken& taken, const planner::Rectangle& rectangle, std::uint64_t goal) {
    if (rectangle.size > goal) return std::nullopt;
    std::uint64_t offset = goal - rectangle.size;
    for (bool moved = true; moved;) {
      moved = false;
      offset -= offset % rectangle.alignment;
      for (const Interval<std::uint64_t>& t : taken) {
        if (!t.contains(offset)) continue;
        if (t.begin == 0) return std::nullopt;
        offset = t.begin - 1;
        moved = true;
      }
    }
    return offset;
  }

  const std::vector<planner::Rectangle>& rectangles_;
  std::vector<std::vector<Neighbour>> neighbours_;
};

}  // namespace sluice::emit
