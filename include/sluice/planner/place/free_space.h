// How many bytes in a row are free beside the activations, at each position and for any capacity: what slices are cut for, and where then
// their workspaces lie.
//
//     capacity ------------------         room = the larger of the gaps inside (the same for each capacity) and of what lies above
//                 above |                 the highest block
//              ---------+ top
//              [block]  | inner gap
//              [block]
//
// A workspace lies at the lower end of the gap that its slices were cut for, so that the rest of the gap is theirs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/layout.h"

namespace sluice::planner {

class Room {
 public:
  /// Counts blocks alone: workspaces count with the loads, because both follow from the slice. Gives no answer (no limit is known) for
  /// graphs so entangled that a list of what lives when would take more memory than the plan is worth.
  static Room beside_blocks(const FixedLayout& layout, std::size_t positions) {
    constexpr std::uint64_t kMostLives = std::uint64_t{1} << 22;
    Room room;
    std::uint64_t lives = 0;
    for (std::size_t b = 0; b < layout.blocks; ++b) lives += static_cast<std::uint64_t>(layout.items[b].time.size());
    if (lives > kMostLives) return room;
    std::vector<std::size_t> by_offset;
    for (std::size_t b = 0; b < layout.blocks; ++b)
      if (layout.items[b].size > 0) by_offset.push_back(b);
    sluice::sort(by_offset.begin(), by_offset.end(), [&](std::size_t a, std::size_t b) { return layout.offsets[a] < layout.offsets[b]; });
    room.blocks_.assign(layout.offsets.begin(), layout.offsets.begin() + static_cast<std::ptrdiff_t>(layout.blocks));
    room.inner_.resize(positions, 0);
    room.inner_at_.resize(positions, 0);
    room.top_.resize(positions, 0);
    for (std::size_t b : by_offset) {
      for (std::int64_t p = layout.items[b].time.begin; p < layout.items[b].time.end; ++p) {
        const auto at = static_cast<std::size_t>(p);
        if (layout.offsets[b] > room.top_[at] + room.inner_[at]) {
          room.inner_[at] = layout.offsets[b] - room.top_[at];
          room.inner_at_[at] = room.top_[at];
        }
        room.top_[at] = std::max(room.top_[at], layout.offsets[b] + layout.items[b].size);
      }
    }
    return room;
  }

  /// By position, in `height` bytes above what is kept; empty: no limit is known.
  std::vector<std::uint64_t> within(std::uint64_t height) const {
    std::vector<std::uint64_t> room = inner_;
    for (std::size_t p = 0; p < room.size(); ++p) room[p] = std::max(std::min(room[p], height), height - std::min(height, top_[p]));
    return room;
  }

  /// Gives offsets to a layout of the same blocks in `height` bytes: blocks get the same offsets as here. False where no room is known.
  /// Slices that cannot be cut finely enough may have a workspace that is larger than the gap: it then lies above the blocks, and the
  /// layout's height says whether it fits there.
  bool lay_out(FixedLayout& layout, std::uint64_t height) const {
    if (inner_.empty() || blocks_.size() != layout.blocks) return false;
    layout.offsets = blocks_;
    for (std::size_t p = 0; p < inner_.size(); ++p) {
      const bool inside = inner_[p] > height - std::min(height, top_[p]) && layout.workspace(p).size <= inner_[p];
      layout.offsets.push_back(inside ? inner_at_[p] : top_[p]);
    }
    layout.height = height_of(layout.items, layout.offsets);
    return true;
  }

 private:
  std::vector<std::uint64_t> blocks_;    // their offsets
  std::vector<std::uint64_t> inner_;     // the largest gap between blocks,
  std::vector<std::uint64_t> inner_at_;  // and where it begins
  std::vector<std::uint64_t> top_;
};

}  // namespace sluice::planner
