// Tensors that pass (plan.h): which of a graph have no buffer, and what of them lies in the workspace of a step.
//
//     workspace   |kernel's own ... ...|made|fetched b|fetched a|     from its end on, so that slices of a node, whose own workspaces
//                                                                     differ, find at the same place what they all read
//
// Way to here: planner/order/passing_choice.h says which outputs are handed over and which others may be spilled. Every pass asks
// KernelChoice what a step's workspace takes, and that counts these blocks.
// Invariants: what passes is made by a node with one output, in rows and channels; it shares bytes with nothing; an output that passes is
// read by no node, or by one reshape alone, whose output then passes with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/planner/order/row_needs.h"

namespace sluice::planner {

class Passing {
 public:
  enum class Kind : std::uint8_t { kStays, kHandedOver, kSpilled };

  /// Rows x channels of a passing tensor (one without a buffer) that a step has in its workspace.
  struct Beside {
    TensorId tensor;
    RowRange rows;
    ChannelRange channels;
    bool made = false;  // else fetched

    std::uint64_t bytes(const model::Graph& graph) const noexcept {
      const model::Tensor& t = graph.tensor(tensor);
      return static_cast<std::uint64_t>(rows.size() * row_extents(t.shape).pixels * channels.size()) * size_of(t.dtype);
    }
    /// Bytes that it takes in a workspace.
    std::uint64_t room(const model::Graph& graph) const noexcept {
      return align_up(bytes(graph) + kernels::kReadTail.count(), model::kWeightAlignment);
    }
  };

  /// `kinds` by tensor.
  Passing(const model::Graph& graph, std::vector<Kind> kinds) : graph_(graph), kinds_(std::move(kinds)), touched_(graph.nodes.size(), 0) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const model::Node& node = graph.nodes[n];
      for (auto in = node.inputs.begin(); in != node.inputs.end(); ++in)
        if (passes(*in) && std::find(node.inputs.begin(), in, *in) == in) ++touched_[n];
      for (TensorId out : node.outputs) touched_[n] += passes(out) ? 1u : 0u;
    }
  }

  Kind kind(TensorId t) const noexcept { return kinds_[t.index()]; }
  bool passes(TensorId t) const noexcept { return kind(t) != Kind::kStays; }
  /// How many such blocks a step of the node has.
  std::uint32_t touched(NodeId id) const noexcept { return touched_[id.index()]; }
  bool stores(NodeId id) const noexcept { return touched(id) > 0 && kind(graph_.node(id).outputs[0]) == Kind::kSpilled; }

  /// The blocks of a step, those that it reads first. `granule`: of the kernel's rows.
  std::vector<Beside> beside(NodeId id, std::int64_t granule, RowRange rows, ChannelRange channels) const {
    std::vector<Beside> blocks;
    if (touched(id) == 0) return blocks;
    const model::Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId in = node.inputs[i];
      if (!passes(in)) continue;
      const RowExtents extents = row_extents(graph_.tensor(in).shape);
      const auto relation = row_relation(graph_, node, i, Connected::kDeclared);
      const RowRange read = relation ? rows_read(*relation, granule, rows) : RowRange{0, extents.rows};
      const auto known = std::find_if(blocks.begin(), blocks.end(), [&](const Beside& block) { return block.tensor == in; });
      if (known != blocks.end())
        known->rows = known->rows.hull(read);
      else
        blocks.push_back({in, read, {0, extents.channels}, false});
    }
    const TensorId out = node.outputs[0];
    if (kind(out) == Kind::kSpilled) channels = {0, row_extents(graph_.tensor(out).shape).channels};
    if (passes(out)) blocks.push_back({out, rows, channels, true});
    return blocks;
  }

  /// The workspace that all blocks beside a step take together.
  std::uint64_t room(NodeId id, std::int64_t granule, RowRange rows, ChannelRange channels) const {
    std::uint64_t bytes = 0;
    for (const Beside& block : beside(id, granule, rows, channels)) bytes += block.room(graph_);
    return bytes;
  }

  /// Bytes that a step moves between memory and the scratch file. Slices of channels share what their node reads and stores.
  struct Moved {
    std::uint64_t bytes = 0;
    std::uint64_t transfers = 0;
  };
  Moved moved(NodeId id, std::int64_t granule, RowRange rows, ChannelRange channels) const {
    Moved moved;
    const auto all = static_cast<std::uint64_t>(model::step_channels(graph_, graph_.node(id)));
    for (const Beside& block : beside(id, granule, rows, channels)) {
      if (kind(block.tensor) != Kind::kSpilled) continue;
      moved.bytes += block.bytes(graph_) * static_cast<std::uint64_t>(channels.size()) / all;
      ++moved.transfers;
    }
    return moved;
  }

 private:
  const model::Graph& graph_;
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> touched_;  // by node
};

}  // namespace sluice::planner
