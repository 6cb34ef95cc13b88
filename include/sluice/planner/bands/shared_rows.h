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

struct SharedRings {
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = 0;
};

/// The same ranges for many rings, a bit for each step: two rings meet where both have one.
class BusySteps {
 public:
  explicit BusySteps(const std::vector<RingUse>& rings) {
    for (const RingUse& ring : rings)
      if (!ring.busy.empty()) words_ = std::max(words_, ceil_div(ring.busy.front().end, kBits));
    bits_.assign(rings.size() * static_cast<std::size_t>(words_), 0);
    for (std::size_t r = 0; r < rings.size(); ++r)
      for (const Interval<std::int64_t>& range : rings[r].busy) mark(of(r), range);
  }
  bool meet(std::size_t a, std::size_t b) const noexcept {
    const std::uint64_t *const x = of(a), *const y = of(b);
    for (std::int64_t i = 0; i < words_; ++i)
      if ((x[i] & y[i]) != 0) return true;
    return false;
  }

 private:
  static constexpr std::int64_t kBits = 64;

  std::uint64_t* of(std::size_t ring) noexcept { return bits_.data() + ring * static_cast<std::size_t>(words_); }
  const std::uint64_t* of(std::size_t ring) const noexcept { return bits_.data() + ring * static_cast<std::size_t>(words_); }

  static void mark(std::uint64_t* words, Interval<std::int64_t> range) noexcept {
    for (std::int64_t step = range.begin; step < range.end;) {
      const std::int64_t end = std::min(range.end, (step / kBits + 1) * kBits), count = end - step;
      words[step / kBits] |= (~std::uint64_t{0} >> (kBits - count)) << (step % kBits);
      step = end;
    }
  }

  std::int64_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

/// Places rings, the largest first, each at the lowest address that those in use at its time leave. O(n^2 * steps / 64), mostly O(n^2): most
/// rings are in use for more than half of the time, so that two of them must meet.
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
  const BusySteps busy_steps(rings);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t ring : order) {
    std::uint64_t at = 0;
    for (const std::size_t other : placed) {
      const std::uint64_t begin = shared.offsets[other], end = begin + rings[other].bytes;
      if (begin >= at + rings[ring].bytes) break;
      if (end > at && (busy[other] + busy[ring] > steps || busy_steps.meet(other, ring))) at = align_up(end, alignment);
    }
    shared.offsets[ring] = at;
    shared.bytes = std::max(shared.bytes, at + rings[ring].bytes);
    const auto behind = [&](std::size_t other) { return shared.offsets[other] > at; };
    placed.insert(std::find_if(placed.begin(), placed.end(), behind), ring);
  }
  return shared;
}

}  // namespace sluice::planner
