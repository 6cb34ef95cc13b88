// Which bytes the tensors of a chain share, because their rows are needed at different steps: a ring of a row that the next step reads is
// free again, and the rows of a region's input die while those of its output are made.
//
//     ring a    |##....##....##....|        time: a and b take turns, and lie at one place;
//     ring b    |..###...###...###.|        c is always needed, and lies beside them
//     ring c    |##################|
//
//     output    |row 0|row 1| ...  ->            grows from the front, over rows of the input that nobody reads any more
//     input           <- ... |row 6|row 7|       lies at the end
//
// Invariant: whatever lies on the same bytes is never needed at the same step, its reads and writes included.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/sort.h"
#include "sluice/core/units.h"

namespace sluice::planner {

/// When a ring holds rows that somebody still reads: disjoint ranges of a chain's steps, the latest first.
struct RingUse {
  std::uint64_t bytes = 0;
  std::vector<Interval<std::int64_t>> busy;
  bool held = false;  // do rows that were there before the last step noted matter?

  /// Steps are noted from the last to the first. A step touches the ring; `held_before`: rows that it or a later step reads were there before.
  void add(std::int64_t step, bool held_before) {
    if (!held) busy.push_back({step, step + 1});
    busy.back().begin = std::min(busy.back().begin, step);
    held = held_before;
  }
  void clear() noexcept {
    busy.clear();
    held = false;
  }
  std::int64_t busy_steps() const noexcept {
    std::int64_t steps = 0;
    for (const auto& range : busy) steps += range.size();
    return steps;
  }
};

/// Do two lists of disjoint ranges, both rising, have a step in common?
template <class Iterator>
bool meet(Iterator a, Iterator a_end, Iterator b, Iterator b_end) noexcept {
  while (a != a_end && b != b_end) {
    if (a->overlaps(*b)) return true;
    ++(a->end <= b->end ? a : b);
  }
  return false;
}

inline bool busy_together(const RingUse& a, const RingUse& b) noexcept {
  return meet(a.busy.rbegin(), a.busy.rend(), b.busy.rbegin(), b.busy.rend());
}

/// The lowest offset of `bytes` that `taken` leave free, which is sorted by where they begin. A multiple of `alignment`.
inline std::uint64_t lowest_free(const std::vector<Interval<std::uint64_t>>& taken, std::uint64_t bytes, std::uint64_t alignment) noexcept {
  std::uint64_t at = 0;
  for (const Interval<std::uint64_t>& other : taken) {
    if (other.begin >= at + bytes) break;
    at = std::max(at, align_up(other.end, alignment));
  }
  return at;
}

struct SharedRings {
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = 0;
};

/// Places rings, the largest first, each at the lowest address that those in use at its time leave. O(n^2 * uses), mostly O(n^2): most rings
/// are in use for more than half of the time, so that two of them must meet.
inline SharedRings share_rings(const std::vector<RingUse>& rings, std::uint64_t alignment) {
  SharedRings shared{std::vector<std::uint64_t>(rings.size(), 0), 0};
  std::vector<std::size_t> order(rings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sluice::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rings[a].bytes > rings[b].bytes; });
  while (!order.empty() && rings[order.back()].bytes == 0) order.pop_back();
  std::vector<std::int64_t> busy;
  std::int64_t steps = 0;
  for (const RingUse& ring : rings) {
    busy.push_back(ring.busy_steps());
    steps = std::max(steps, ring.busy.empty() ? 0 : ring.busy.front().end);
  }
  std::vector<Interval<std::uint64_t>> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    taken.clear();
    for (std::size_t k = 0; k < i; ++k)
      if (busy[order[k]] + busy[order[i]] > steps || busy_together(rings[order[k]], rings[order[i]]))
        taken.push_back({shared.offsets[order[k]], shared.offsets[order[k]] + rings[order[k]].bytes});
    sluice::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const std::uint64_t at = lowest_free(taken, rings[order[i]].bytes, alignment);
    shared.offsets[order[i]] = at;
    shared.bytes = std::max(shared.bytes, at + rings[order[i]].bytes);
  }
  return shared;
}

}  // namespace sluice::planner
