// Pass: cuts the weights into pieces. A piece is what a budget keeps or streams as a whole; its bounds do not depend on the budget, so two
// budgets that keep the same piece read the same bytes.
//
//     file     | conv1 | conv2 | conv3 |        conv4         |
//     pieces   [          0            ][    1     ][    2    ]      small neighbours together, large weights cut
//
// Invariants: pieces are whole stretches, adjacent in the file; a weight that several nodes read shares its pieces with no other; each
// weight outside the resident segment that a node of the order reads lies in one piece or is cut into several that hold nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "sluice/planner/cut/payload.h"
#include "sluice/planner/order/select_kernels.h"

namespace sluice::planner {

struct Piece {
  std::uint32_t first_stretch = 0;
  std::uint32_t stretch_count = 0;
  Payload payload;
  std::size_t position = 0;  // of its first reader
  std::uint32_t reads = 1;   // by how many nodes: what a period that does not keep it reads so often

  std::uint64_t region_bytes() const noexcept { return payload.region_bytes(); }
};

struct Pieces {
  std::vector<Piece> all;                          // by first reader
  std::vector<Interval<std::uint32_t>> of_weight;  // empty: in the resident segment, or never read
};

/// Can the node's steps take a part of its first weight?
inline bool cuts_channels(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  if (!kernel.slices_channels || node.weights.empty()) return false;
  const model::Weight& weight = graph.weight(node.weights[0]);
  return !weight.always_resident && weight.stretch_count > 1 && weight.panel_layout.layout != model::WeightLayout::kPlain;
}

/// The most bytes that a lookup reads, if it reads only the parts of its table that are asked for; 0: the node is not a lookup, or reads
/// all.
inline std::uint64_t lookup_bytes(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  if (kernel.pieces_wanted == nullptr || graph.weight(node.weights[0]).always_resident) return 0;
  return static_cast<std::uint64_t>(kernel.pieces_wanted(graph, node)) * model::least_piece(graph, graph.weight(node.weights[0])).count();
}

/// Such reads are small and nothing is computed meanwhile, so each byte of them counts this many times.
inline constexpr std::uint64_t kLookupGain = 4;

/// Does the node look up a few parts of a large table (ADR 0015)? Then its step reads them, if the plan does not keep all of the table.
inline bool looks_up(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  const std::uint64_t bytes = lookup_bytes(graph, node, kernel);
  return bytes > 0 && bytes * kLookupGain < graph.weight(node.weights[0]).bytes.count();
}

/// Can the node's steps, or the plans of its subgraphs (ADR 0047), read its weights, as often as they want them? How often; 0: no.
inline std::int64_t weight_turns(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  if (kernel.weight_turns == nullptr || (kernel.pieces_wanted != nullptr && !looks_up(graph, node, kernel))) return 0;
  return kernel.weight_turns(graph, node);
}

namespace detail {

class PieceCutter {
 public:
  static constexpr std::uint64_t kJoined = 1u << 20;  // small neighbours make a piece of at most this: one read at the disk's full rate
  static constexpr std::uint64_t kCut = 4u << 20;     // and larger weights are cut at this: a few steps, whatever is kept

  PieceCutter(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order)
      : graph_(graph),
        kernels_(kernels),
        order_(order),
        readers_(graph.weights.size(), 0),
        looked_up_(graph.weights.size(), false),
        all_cut_(graph.weights.size(), true) {
    pieces_.of_weight.resize(graph.weights.size());
  }

  Pieces cut() {
    std::vector<std::vector<WeightId>> reads(order_.size());
    for (std::size_t p = 0; p < order_.size(); ++p) {
      model::weights_read_by(graph_, graph_.node(order_[p]), reads[p]);
      const bool lookup = !kernels_.in_body() && looks_up(graph_, graph_.node(order_[p]), *kernels_[order_[p].index()]);
      if (lookup) looked_up_[reads[p][0].index()] = true;
      for (std::size_t i = lookup ? 1 : 0; i < reads[p].size(); ++i) {  // what a lookup reads of its table is next to nothing
        ++readers_[reads[p][i].index()];
        all_cut_[reads[p][i].index()] = all_cut_[reads[p][i].index()] && i == 0 && cuts(p, reads[p][i]);
      }
    }
    for (std::size_t p = 0; p < order_.size(); ++p)
      for (WeightId w : reads[p])
        if (!graph_.weight(w).always_resident && !kernels_.held_outside(w) && pieces_.of_weight[w.index()].empty()) add(p, w);
    return std::move(pieces_);
  }

 private:
  void add(std::size_t position, WeightId id) {
    const model::Weight& weight = graph_.weight(id);
    const std::uint32_t readers = readers_[id.index()];
    const bool shared = readers > 1 || looked_up_[id.index()];
    const auto next = static_cast<std::uint32_t>(pieces_.all.size());
    if (all_cut_[id.index()] && weight.bytes.count() > kCut) {
      cut_weight(position, weight);
      pieces_.of_weight[id.index()] = {next, static_cast<std::uint32_t>(pieces_.all.size())};
      open_ = false;
      return;
    }
    if (!shared && open_ && joins(weight)) {
      Piece& piece = pieces_.all.back();
      piece.stretch_count += weight.stretch_count;
      piece.payload = piece.payload.joined(payload_of(graph_, weight));
      pieces_.of_weight[id.index()] = {next - 1, next};
      return;
    }
    pieces_.all.push_back({weight.first_stretch, weight.stretch_count, payload_of(graph_, weight), position, readers});
    pieces_.of_weight[id.index()] = {next, next + 1};
    open_ = !shared;
  }

  /// Can steps at the position take the weight slice by slice?
  bool cuts(std::size_t position, WeightId id) const {
    const model::Node& node = graph_.node(order_[position]);
    return !node.weights.empty() && node.weights[0] == id && cuts_channels(graph_, node, *kernels_[order_[position].index()]);
  }

  bool joins(const model::Weight& weight) const {
    const Piece& piece = pieces_.all.back();
    const Payload next = payload_of(graph_, weight);
    return piece.first_stretch + piece.stretch_count == weight.first_stretch && piece.payload.adjoins(next) &&
           piece.payload.joined(next).held_bytes() <= kJoined;
  }

  void cut_weight(std::size_t position, const model::Weight& weight) {
    const auto stretches = graph_.stretches_of(weight);
    const std::uint64_t parts = (weight.bytes.count() + kCut - 1) / kCut;
    const std::uint64_t most = std::min<std::uint64_t>(parts, stretches.size());
    for (std::uint64_t i = 0; i < most; ++i) {
      const auto begin = static_cast<std::size_t>(i * stretches.size() / most);
      const auto end = static_cast<std::size_t>((i + 1) * stretches.size() / most);
      pieces_.all.push_back({weight.first_stretch + static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin),
                             payload_of(graph_, weight, begin, end - begin), position,
                             readers_[static_cast<std::size_t>(&weight - graph_.weights.data())]});
    }
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  std::vector<std::uint32_t> readers_;  // by weight: lookups do not count
  std::vector<bool> looked_up_;         // by weight
  std::vector<bool> all_cut_;           // by weight: do all of them take it slice by slice?
  Pieces pieces_;
  bool open_ = false;  // may the last piece grow?
};

}  // namespace detail

/// The total size of the regions of the kept pieces; `kept` is indexed by piece.
inline std::uint64_t bytes_of(const Pieces& pieces, const std::vector<bool>& kept) noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t p = 0; p < kept.size(); ++p)
    if (kept[p]) bytes += pieces.all[p].region_bytes();
  return bytes;
}

/// The total of all weights that stream.
inline std::uint64_t weight_bytes(const Pieces& pieces) noexcept {
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces.all) bytes += piece.payload.size.count();
  return bytes;
}

/// O(weights + pieces).
inline Pieces cut_pieces(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order) {
  return detail::PieceCutter(graph, kernels, order).cut();
}

}  // namespace sluice::planner
