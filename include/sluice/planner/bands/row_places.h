// Where the rows of a region's rings lie, and the workspaces of its steps: to the row and the step.
//
//     bytes | ring a, slot 0   ###   ###   ###      a slot holds a row from the step that makes it to the last that reads it;
//           | ring a, slot 1     ###   ###          what is free between belongs to rows of other rings,
//           | workspace            #     #          and at one step to that step's workspace
//           +--------------------------- steps
//
// planner/bands/shared_rows.h does the same for whole rings, in less time: the search for regions compares those, and the partition that it
// ends with is placed here.
// Invariant: whatever lies on the same bytes, tails that kernels may read included, is never needed at the same step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/sort.h"
#include "sluice/core/units.h"
#include "sluice/planner/bands/shared_rows.h"

namespace sluice::planner {

/// Slots of one size, back to back, and when each of them is needed: ranges of steps, rising.
struct SlotUse {
  std::uint64_t slot_bytes = 0;
  std::vector<std::vector<Interval<std::int64_t>>> busy;  // by slot

  std::uint64_t bytes() const noexcept { return slot_bytes * busy.size(); }
};

/// Do two lists of disjoint ranges, both rising, have a step in common?
inline bool meet(const std::vector<Interval<std::int64_t>>& a, const std::vector<Interval<std::int64_t>>& b) noexcept {
  for (auto i = a.begin(), k = b.begin(); i != a.end() && k != b.end(); ++(i->end <= k->end ? i : k))
    if (i->overlaps(*k)) return true;
  return false;
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

/// A block that fills up. What is placed must outlive it.
class RowPlaces {
 public:
  /// `tail`: bytes that may be read behind each row. Offsets are multiples of `alignment`.
  RowPlaces(std::uint64_t alignment, std::uint64_t tail) : alignment_(alignment), tail_(tail) {}

  /// Slots whose place is known.
  void put(const SlotUse& use, std::uint64_t at) {
    for (std::size_t slot = 0; slot < use.busy.size(); ++slot) taken_.push_back({bytes_of(use, slot, at), &use.busy[slot]});
    height_ = std::max(height_, at + use.bytes());
  }

  /// Places slots at the lowest offset where none is needed together with what is there. O((slots that are there)^2 * slots), and less.
  std::uint64_t place(const SlotUse& use) {
    const std::uint64_t at = lowest(use);
    put(use, at);
    return at;
  }

  /// That offset.
  std::uint64_t lowest(const SlotUse& use) const {
    std::vector<std::uint64_t> offsets{0};
    for (const Taken& taken : taken_)
      for (std::size_t slot = 0; slot < use.busy.size() && slot * use.slot_bytes <= taken.bytes.end; ++slot)
        offsets.push_back(align_up(taken.bytes.end - slot * use.slot_bytes, alignment_));
    sluice::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    return *std::find_if(offsets.begin(), offsets.end(), [&](std::uint64_t offset) { return fits(use, offset); });
  }

  /// The lowest offset of `bytes` that are needed at one step only. Those of other steps may lie on the same.
  std::uint64_t place_at(std::int64_t step, std::uint64_t bytes) {
    std::vector<Interval<std::uint64_t>> there;
    const std::vector<Interval<std::int64_t>> now{{step, step + 1}};
    for (const Taken& taken : taken_)
      if (meet(*taken.busy, now)) there.push_back(taken.bytes);
    sluice::sort(there.begin(), there.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const std::uint64_t at = lowest_free(there, bytes, alignment_);
    height_ = std::max(height_, at + bytes);
    return at;
  }

  std::uint64_t height() const noexcept { return height_; }

 private:
  struct Taken {
    Interval<std::uint64_t> bytes;
    const std::vector<Interval<std::int64_t>>* busy;
  };

  Interval<std::uint64_t> bytes_of(const SlotUse& use, std::size_t slot, std::uint64_t offset) const noexcept {
    return {offset + slot * use.slot_bytes, offset + (slot + 1) * use.slot_bytes + tail_};
  }

  bool fits(const SlotUse& use, std::uint64_t offset) const noexcept {
    for (std::size_t slot = 0; slot < use.busy.size(); ++slot) {
      const Interval<std::uint64_t> bytes = bytes_of(use, slot, offset);
      for (const Taken& taken : taken_)
        if (taken.bytes.overlaps(bytes) && meet(*taken.busy, use.busy[slot])) return false;
    }
    return true;
  }

  const std::uint64_t alignment_, tail_;
  std::uint64_t height_ = 0;
  std::vector<Taken> taken_;
};

/// Rings and workspaces in one block.
struct PlacedRows {
  std::vector<std::uint64_t> offsets;               // of rings
  std::vector<Interval<std::uint64_t>> workspaces;  // by step; empty: none
  std::uint64_t bytes = 0;
};

/// Places rings, the largest first, then workspaces (bytes by step; 0: none). `largest_first`: the bottom of the block is for workspaces of more
/// than half of the largest, and rings go round them.
inline PlacedRows place_rows(const std::vector<SlotUse>& rings, const std::vector<std::uint64_t>& workspaces, bool largest_first,
                             std::uint64_t alignment, std::uint64_t tail) {
  std::vector<std::size_t> order(rings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sluice::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rings[a].bytes() > rings[b].bytes(); });
  RowPlaces places(alignment, tail);
  SlotUse bottom;
  if (largest_first && !workspaces.empty()) {
    bottom.slot_bytes = *std::max_element(workspaces.begin(), workspaces.end());
    bottom.busy.emplace_back();
    for (std::size_t s = 0; s < workspaces.size(); ++s)
      if (workspaces[s] > 0 && workspaces[s] >= bottom.slot_bytes / 2)
        bottom.busy[0].push_back({static_cast<std::int64_t>(s), static_cast<std::int64_t>(s) + 1});
    places.place(bottom);
  }
  PlacedRows placed{std::vector<std::uint64_t>(rings.size(), 0), std::vector<Interval<std::uint64_t>>(workspaces.size()), 0};
  for (const std::size_t r : order)
    if (!rings[r].busy.empty()) placed.offsets[r] = places.place(rings[r]);
  for (std::size_t s = 0; s < workspaces.size(); ++s) {
    if (workspaces[s] == 0) continue;
    const bool below = largest_first && workspaces[s] >= bottom.slot_bytes / 2;
    const std::uint64_t at = below ? 0 : places.place_at(static_cast<std::int64_t>(s), workspaces[s]);
    placed.workspaces[s] = {at, at + workspaces[s]};
  }
  placed.bytes = places.height();
  return placed;
}

}  // namespace sluice::planner
