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

/// A part of a concatenation, both made in one chain (planner/bands/ring_rows.h). Positions count from the chain's first.
struct JoinedPart {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t part = kNone;
  std::size_t whole = kNone;
  std::uint64_t offset = 0;          // bytes, of the part's first channel in a pixel of the whole
  std::size_t next_of_part = kNone;  // another one of the same part
  std::int64_t window = 0;           // rows
};

/// What the positions of a chain read of each other, looked up once: steps ask for it again and again. Positions count from the chain's first.
struct ChainLinks {
  struct Link {
    std::size_t maker;
    const RowRelation* by;  // nullptr: all rows, whatever the step
  };
  struct Place {
    std::int64_t rows, image_rows, granule;
    std::size_t links = 0, links_end = 0;
    std::size_t joins = 0, joins_end = 0;    // its parts
    std::size_t joined = JoinedPart::kNone;  // the first of what it is a part of
    bool joins_parts = false;                // a concatenation
    bool shares_bytes = false;               // with a tensor that may be replaced
  };

  std::vector<Place> places;
  std::vector<Link> links;
  std::vector<JoinedPart> joins;    // that may lie in their whole's ring, if both are rings
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
  std::vector<JoinedPart> joined;       // those that lie in another's ring
  std::int64_t bands = 1;               // asked for
  std::optional<SharedRings> shared;    // offsets by position - chain.first. Nothing: each ring has a block of its own
  std::optional<Overlaid> overlaid;
  std::optional<UnderOutput> under;  // with `shared`, which has the other rings

  /// Does that position (- chain.first) have a ring of its own?
  bool has_ring(std::size_t r) const noexcept {
    return ring_rows[r] > 0 && std::none_of(joined.begin(), joined.end(), [&](const JoinedPart& j) { return j.part == r; });
  }

  /// Blocks that are in another one.
  std::size_t blocks_saved() const noexcept {
    const auto rings = std::count_if(ring_rows.begin(), ring_rows.end(), [](std::int64_t rows) { return rows > 0; });
    return (shared ? static_cast<std::size_t>(rings) - 1 : joined.size()) + (overlaid ? 1 : 0);
  }

  /// The position whose block all rings share.
  std::size_t home() const noexcept {
    const auto first = std::find_if(ring_rows.begin(), ring_rows.end(), [](std::int64_t rows) { return rows > 0; });
    return chain.first + static_cast<std::size_t>(first - ring_rows.begin());
  }
};

/// The rows that a ring holds of a tensor, without gaps.
inline std::uint64_t ring_bytes(const model::Graph& graph, TensorId t, std::int64_t rows) noexcept {
  const model::Tensor& tensor = graph.tensor(t);
  return tensor.bytes().count() / static_cast<std::uint64_t>(row_extents(tensor.shape).rows) * static_cast<std::uint64_t>(rows);
}

/// Calls body(input, offset) for the inputs of a concatenation along the last axis: bytes of the input's first channel in a pixel of the whole.
template <class Body>
void for_each_part(const model::Graph& graph, const model::Node& concat, const Body& body) {
  std::uint64_t offset = 0;
  for (const TensorId in : concat.inputs) {
    const model::Tensor& part = graph.tensor(in);
    body(in, offset);
    offset += static_cast<std::uint64_t>(row_extents(part.shape).channels) * size_of(part.dtype);
  }
}

/// Between two bands of a position its chain reads the weights of all others and passes the rows of all rings, those of a part in the ring
/// of its concatenation too, once as the part's and once as the whole's.
inline void note_round_bytes(Banded& banded, const model::Graph& graph, const Views& views) {
  std::uint64_t round = 0;
  for (std::size_t r = 0; r < banded.ring_rows.size(); ++r) {
    const model::Node& node = graph.node(views.order[banded.chain.first + r]);
    for (const WeightId w : node.weights) round += graph.weight(w).bytes.count();
    round += ring_bytes(graph, node.outputs[0], banded.ring_rows[r]);
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
