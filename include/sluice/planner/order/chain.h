// Chains: neighbouring nodes that run in bands of rows, each band through all of them before the next begins. Data only;
// planner/bands/time_partition.h makes them.
//
//     whole     [expand 0-112][depthwise 0-56][project 0-56]
//     in bands  [expand 0-9][depthwise 0-4][project 0-4][expand 9-17][depthwise 4-8][project 4-8] ...
//
// Invariants: chains are disjoint runs of positions, in order; the bands of a position rise and tile its rows; a row is made before it is
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/core/interval.h"

namespace sluice::planner {

/// Bytes of a tensor that a core's own cache may keep from one step to another.
inline constexpr std::uint64_t kNearTensor = 512u << 10;

struct BandStep {
  std::size_t position = 0;
  RowRange rows;                  // of the position's output
  std::uint64_t far_bytes = 0;    // activations that it reads or writes which are too large for a core's own cache
  std::uint64_t round_bytes = 0;  // what the chain touches between the band before and this one of the same position; 0: it is the first
  std::uint64_t there_bytes = 0;  // of its output, in place before it runs: parts of a concatenation (planner/bands/ring_rows.h)
};

/// Positions [first, end).
struct Chain {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<BandStep> steps;
  /// By position - first: its weights are read again for each band, in slices, and not held while the chain runs. Empty: all are held.
  std::vector<bool> reads_again;
  /// The block in which its rings lie together; and by step where in that block its workspace lies. Empty, or an empty one: elsewhere.
  BufferId rings = {};
  std::vector<Interval<std::uint64_t>> workspaces = {};

  bool holds_weights(std::size_t position) const noexcept { return reads_again.empty() || !reads_again[position - first]; }
};

/// Do its nodes begin in the order of their positions?
inline bool begins_in_order(const Chain& chain) noexcept {
  std::size_t next = chain.first;
  for (const BandStep& step : chain.steps) {
    if (step.position > next) return false;
    next += step.position == next ? 1 : 0;
  }
  return true;
}

/// The chain that begins before `position` ends, or nullptr. `chains` are in order.
inline const Chain* chain_of(const std::vector<Chain>& chains, std::size_t position) noexcept {
  for (const Chain& chain : chains)
    if (chain.first <= position && position < chain.end) return &chain;
  return nullptr;
}

}  // namespace sluice::planner
