// A chain as it is cut: how many rows of each tensor it holds, and where they lie. Data only; planner/bands/band_chain.h makes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/planner/bands/shared_rows.h"
#include "sluice/planner/order/chain.h"

namespace sluice::planner {

/// A tensor that dies in a chain while another grows there: it lies in that one's block, at `offset`.
struct Overlaid {
  TensorId dying;
  BufferId block;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // of both
};

/// A chain, and how many rows of each position's output it holds (0: all).
struct Banded {
  Chain chain;
  std::vector<std::int64_t> ring_rows;  // by position - chain.first
  std::int64_t bands = 1;               // asked for
  std::optional<SharedRings> shared;    // offsets by position - chain.first. Nothing: each ring has a block of its own
  std::optional<Overlaid> overlaid;

  /// Blocks that are in another one.
  std::size_t blocks_saved() const noexcept {
    const auto rings = std::count_if(ring_rows.begin(), ring_rows.end(), [](std::int64_t rows) { return rows > 0; });
    return (shared ? static_cast<std::size_t>(rings) - 1 : 0) + (overlaid ? 1 : 0);
  }

  /// The position whose block all rings share.
  std::size_t home() const noexcept {
    const auto first = std::find_if(ring_rows.begin(), ring_rows.end(), [](std::int64_t rows) { return rows > 0; });
    return chain.first + static_cast<std::size_t>(first - ring_rows.begin());
  }
};

}  // namespace sluice::planner
