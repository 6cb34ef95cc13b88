// How many bytes in a row are free beside the activations, at each position and for any capacity: what slices are cut for.
//
//     capacity ------------------         room = the larger of the gaps inside (the same for each capacity) and of what lies above
//                 above |                 the highest block
//              ---------+ top
//              [block]  | inner gap
//              [block]
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/planner/layout.h"

namespace sluice::planner {

class Room {
 public:
  /// Of blocks alone: workspaces count with the loads, because both follow from the slice. Without an answer (no limit is known) for graphs
  /// so entangled that listing who lives when would take more memory than the plan is worth.
  static Room beside_blocks(const FixedLayout& layout, std::size_t positions) {
    constexpr std::uint64_t kMostLives = std::uint64_t{1} << 22;
    Room room;
    std::uint64_t lives = 0;
    for (std::size_t b = 0; b < layout.blocks; ++b) lives += static_cast<std::uint64_t>(layout.items[b].time.size());
    if (lives > kMostLives) return room;
    std::vector<std::size_t> by_offset;
    for (std::size_t b = 0; b < layout.blocks; ++b)
      if (layout.items[b].size > 0) by_offset.push_back(b);
    std::sort(by_offset.begin(), by_offset.end(), [&](std::size_t a, std::size_t b) { return layout.offsets[a] < layout.offsets[b]; });
    room.inner_.resize(positions, 0);
    room.top_.resize(positions, 0);
    for (std::size_t b : by_offset) {
      for (std::int64_t p = layout.items[b].time.begin; p < layout.items[b].time.end; ++p) {
        const auto at = static_cast<std::size_t>(p);
        if (layout.offsets[b] > room.top_[at]) room.inner_[at] = std::max(room.inner_[at], layout.offsets[b] - room.top_[at]);
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

 private:
  std::vector<std::uint64_t> inner_;
  std::vector<std::uint64_t> top_;
};

}  // namespace sluice::planner
