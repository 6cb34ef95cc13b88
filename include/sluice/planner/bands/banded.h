// A chain as it is cut: how many rows of each tensor it holds, and where they lie. Data; planner/bands/band_chain.h makes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/planner/bands/row_places.h"
#include "sluice/planner/bands/shared_rows.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/row_needs.h"
#include "sluice/planner/order/views.h"

namespace sluice::planner {

/// What the positions of a chain read of each other, looked up once: steps ask for it again and again. Positions count from the chain's first.
struct ChainLinks {
  struct Link {
    std::size_t maker;
    const RowRelation* by;  // nullptr: all rows, whatever the step
  };
  struct Place {
    std::int64_t rows, image_rows, granule;
    std::size_t links, links_end;
    bool shares_bytes;  // with a tensor that may be replaced
  };

  std::vector<Place> places;
  std::vector<Link> links;
  std::vector<std::size_t> unread;  // those that no other in the chain reads, but the last
  std::vector<RingUse> uses;        // as if each were a ring
  std::vector<std::int64_t> oldest, made;
};

/// A tensor that dies in a chain while another grows there: it lies in that one's block, at `offset`.
struct Overlaid {
  TensorId dying;
  BufferId block;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // of both
};

/// Rings that lie in the block of what a chain makes whole, where its last rows are not made yet.
struct UnderOutput {
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  BufferId block;
  std::vector<std::uint64_t> offsets;  // by position - chain.first; kNowhere: not there
};

/// A chain, and how many rows of each position's output it holds (0: all).
struct Banded {
  Chain chain;
  std::vector<std::int64_t> ring_rows;  // by position - chain.first
  std::int64_t bands = 1;               // asked for
  std::optional<SharedRings> shared;    // offsets by position - chain.first. Nothing: each ring has a block of its own
  std::optional<Overlaid> overlaid;
  std::optional<UnderOutput> under;  // with `shared`, which has the other rings

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

/// Between two bands of a position its chain reads the weights of all others and passes the rows of all rings.
inline void note_round_bytes(Banded& banded, const model::Graph& graph, const Views& views) {
  std::uint64_t round = 0;
  for (std::size_t r = 0; r < banded.ring_rows.size(); ++r) {
    const model::Node& node = graph.node(views.order[banded.chain.first + r]);
    for (const WeightId w : node.weights) round += graph.weight(w).bytes.count();
    round += static_cast<std::uint64_t>(banded.ring_rows[r] * views.tensors[node.outputs[0].index()].row_pitch);
  }
  for (BandStep& step : banded.chain.steps) step.round_bytes = step.rows.begin == 0 ? 0 : round;
}

/// By block: how many tensors lie there, how many of them are no views, and how many of these steps make, from its first byte on.
struct InBlocks {
  std::vector<std::uint32_t> tensors, made, alike;

  InBlocks(const model::Graph& graph, const Views& views)
      : tensors(views.blocks.size(), 0), made(views.blocks.size(), 0), alike(views.blocks.size(), 0) {
    for (const plan::TensorPlacement& placement : views.tensors)
      if (placement.buffer.valid()) ++tensors[placement.buffer.index()];
    for (const model::Port& port : graph.inputs)
      if (const BufferId b = views.tensors[port.tensor.index()].buffer; b.valid()) ++made[b.index()];
    for (const NodeId id : views.order) {
      const plan::TensorPlacement& placement = views.tensors[graph.node(id).outputs[0].index()];
      if (!placement.buffer.valid()) continue;
      ++made[placement.buffer.index()];
      if (placement.offset == Bytes()) ++alike[placement.buffer.index()];
    }
  }
};

/// Takes out blocks that hold nothing since tensors share them.
inline void drop_empty(Views& views) {
  std::vector<BufferId> kept(views.blocks.size());
  std::size_t next = 0;
  for (std::size_t b = 0; b < views.blocks.size(); ++b) {
    if (views.blocks[b].bytes == 0) continue;
    kept[b] = BufferId(next);
    views.blocks[next++] = views.blocks[b];
  }
  views.blocks.resize(next);
  for (plan::TensorPlacement& tensor : views.tensors)
    if (tensor.buffer.valid()) tensor.buffer = kept[tensor.buffer.index()];
  for (Chain& chain : views.chains)
    if (chain.rings.valid()) chain.rings = kept[chain.rings.index()];
}

}  // namespace sluice::planner
