// Pass: decides how tensors share memory, before anything has an address. Turns Reshape, Concat and Slice into views where it can
// and lets results take the place of inputs that die.
//
//     conv a ──> x ─┐                        block: |x x x y y|x x x y y|...      both convolutions write straight into the
//     conv b ──> y ─┴─ concat ──> P                                               concatenation; the concat node has no step
//
// Decided in this order, because each restricts the next:
//   reshapes    of activations share the bytes (the class must then be dense)
//   concats     all inputs become views of the output, or none do and the node copies
//   slices      become views of their input
//   in place    a result takes the bytes of an input when nobody needs them after the step
// Invariants: (V1) a byte holds one value at a time: a step overwrites bytes only if every tensor on them is no longer needed, save the
// element it replaces; (V2) kernels that take no pitches see dense views; (V3) graph inputs that are kept are never overwritten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/model/graph.h"
#include "sluice/operators/definition.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/order/alias.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/select_kernels.h"

namespace sluice::planner {

/// Memory that some tensors share, with its lifetime in positions of `Views::order` (both ends included).
struct Block {
  plan::BufferKind kind = plan::BufferKind::kActivation;
  std::uint64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool to_end = false;        // a graph output
  bool whole_period = false;  // a kept input
};

struct Views {
  std::vector<NodeId> order;  // the nodes that have steps; the others are views
  std::vector<Block> blocks;
  std::vector<plan::TensorPlacement> tensors;  // `buffer` counts blocks; of what passes there is none
  std::vector<Chain> chains;                   // blocks that one touches live through all of it
};

namespace detail {

class ViewBuilder {
 public:
  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

  ViewBuilder(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, bool keep_inputs,
              const std::vector<bool>& apart)
      : graph_(graph),
        kernels_(kernels),
        order_(order),
        keep_inputs_(keep_inputs),
        apart_(apart),
        forest_(graph),
        has_step_(graph.nodes.size(), true),
        position_(graph.nodes.size()),
        is_output_(graph.tensors.size()),
        is_input_(graph.tensors.size()) {
    for (std::size_t p = 0; p < order.size(); ++p) position_[order[p].index()] = static_cast<std::int64_t>(p);
    for (const model::Port& port : graph.outputs) is_output_[port.tensor.index()] = true;
    for (const model::Port& port : graph.inputs) is_input_[port.tensor.index()] = true;
  }

  Views build() {
    if (kernels_.in_body())  // what is handed in and taken out lies dense
      for (const auto* ports : {&graph_.inputs, &graph_.outputs})
        for (const model::Port& port : *ports) forest_.get(forest_.class_of(port.tensor)).needs_dense = true;
    for (NodeId id : order_) alias_reshape(id);
    for (NodeId id : order_) require_dense(id);
    for (NodeId id : order_) place_concat(id);
    for (NodeId id : order_) place_slice(id);
    find_last_needs();
    for (NodeId id : order_) run_in_place(id);
    number_steps();
    return resolve();
  }

 private:
  /// Bytes that have no block here: a constant's, and what a subgraph captures.
  bool constant(TensorId t) const noexcept { return graph_.tensor(t).weight.valid() || kernels_.lies_outside(t); }
  bool passes(TensorId t) const noexcept { return kernels_.passing() != nullptr && kernels_.passing()->passes(t); }
  bool lies_apart(TensorId t) const noexcept { return (!apart_.empty() && apart_[t.index()]) || passes(t); }

  void alias_reshape(NodeId id) {
    const model::Node& node = graph_.node(id);
    if (node.op != model::OpKind::kReshape || constant(node.inputs[0])) return;
    const std::size_t c = forest_.class_of(node.inputs[0]);
    forest_.unite(c, forest_.class_of(node.outputs[0]));
    forest_.get(forest_.class_of(node.inputs[0])).needs_dense = true;
    has_step_[id.index()] = false;
  }

  // A node that may yet become a view is counted too: it copies when it does not, and a copy may want dense tensors.
  void require_dense(NodeId id) {
    if (!has_step_[id.index()] || kernels_[id.index()]->takes_pitches) return;
    for (TensorId t : graph_.node(id).inputs) forest_.get(forest_.class_of(t)).needs_dense = true;
    for (TensorId t : graph_.node(id).outputs) forest_.get(forest_.class_of(t)).needs_dense = true;
  }

  void place_concat(NodeId id) {
    const model::Node& node = graph_.node(id);
    if (node.op != model::OpKind::kConcat) return;
    const TensorId whole = node.outputs[0];
    const auto axis = static_cast<std::size_t>(node.as<model::AxisAttributes>().axis);
    std::array<std::int64_t, Shape::kMaxRank> start{};
    std::vector<FoldedOrigin> origins;
    std::vector<std::size_t> classes;
    for (TensorId part : node.inputs) {
      const Shape& shape = graph_.tensor(part).shape;
      const auto origin = fold_box(graph_.tensor(whole).shape, start, shape);
      if (!origin || lies_apart(part) || lies_apart(whole) || forest_.get(forest_.class_of(part)).fixed || !forest_.can_place(part, whole))
        return;
      origins.push_back(*origin);
      classes.push_back(forest_.class_of(part));
      start[axis] += shape[static_cast<int>(axis)];
    }
    sluice::sort(classes.begin(), classes.end());
    if (std::adjacent_find(classes.begin(), classes.end()) != classes.end()) return;  // one tensor cannot lie in two slots
    for (std::size_t i = 0; i < node.inputs.size(); ++i) forest_.place(node.inputs[i], whole, origins[i]);
    has_step_[id.index()] = false;
  }

  void place_slice(NodeId id) {
    const model::Node& node = graph_.node(id);
    if (node.op != model::OpKind::kSlice || constant(node.inputs[0])) return;
    const auto& slice = node.as<model::SliceAttributes>();
    const TensorId part = node.outputs[0];
    const TensorId whole = node.inputs[0];
    const Shape& shape = graph_.tensor(part).shape;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (slice.step[static_cast<std::size_t>(axis)] != 1 && shape[axis] > 1) return;
    const auto origin = fold_box(graph_.tensor(whole).shape, slice.start, shape);
    if (!origin || lies_apart(part) || lies_apart(whole) || forest_.get(forest_.class_of(part)).fixed || !forest_.can_place(part, whole))
      return;
    forest_.place(part, whole, *origin);
    has_step_[id.index()] = false;
  }

  // Positions at which a tensor's value is last read, through views of it.
  void find_last_needs() {
    last_need_.assign(graph_.tensors.size(), -1);
    for (std::size_t t = 0; t < last_need_.size(); ++t)
      if (is_output_[t] || (is_input_[t] && keep_inputs_)) last_need_[t] = kForever;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      const model::Node& node = graph_.node(*id);
      std::int64_t need = position_[id->index()];
      if (!has_step_[id->index()]) {
        need = -1;
        for (TensorId out : node.outputs) need = std::max(need, last_need_[out.index()]);
      }
      for (TensorId in : node.inputs) last_need_[in.index()] = std::max(last_need_[in.index()], need);
    }
    for (std::size_t t = 0; t < last_need_.size(); ++t) {
      AliasForest::Class& c = forest_.get(forest_.class_of(TensorId(t)));
      c.last_need = std::max(c.last_need, last_need_[t]);
    }
  }

  /// Does a step read of this input only what it replaces?
  bool reads_elementwise(const model::Node& node, std::size_t input) const noexcept {
    const model::Tensor& in = graph_.tensor(node.inputs[input]);
    const model::Tensor& out = graph_.tensor(node.outputs[0]);
    if (in.shape != out.shape || in.dtype != out.dtype) return false;
    const operators::Relations relations(graph_, node);
    if (relations.is_residual(input)) return true;
    // A recurrent node reads what it has written again at the next time step.
    const operators::InPlace allowed = relations.definition().in_place;
    return !relations.recurrence().there() &&
           (allowed == operators::InPlace::kAny || (allowed == operators::InPlace::kFirst && input == 0));
  }

  bool may_replace(NodeId id, std::size_t input, std::uint32_t allowed) const {
    const model::Node& node = graph_.node(id);
    const auto bit = [](std::uint32_t bits, std::size_t i) { return i < 32 && (bits >> i & 1u) != 0; };
    const TensorId in = node.inputs[input];
    if (!bit(allowed, input) || constant(in) || !reads_elementwise(node, input)) return false;
    if (lies_apart(in) || lies_apart(node.outputs[0])) return false;
    const std::size_t c = forest_.class_of(in);
    const std::size_t out = forest_.class_of(node.outputs[0]);
    if (c == out || forest_.get(out).whole.valid()) return false;
    if (forest_.get(out).needs_dense && !forest_.dense_up_to_root(c)) return false;
    const std::vector<std::size_t> sharing = forest_.sharing(c);
    for (std::size_t s : sharing)
      if (forest_.get(s).last_need > position_[id.index()]) return false;
    for (std::size_t other = 0; other < node.inputs.size(); ++other) {
      if (other == input || constant(node.inputs[other])) continue;
      const std::size_t o = forest_.class_of(node.inputs[other]);
      const bool same = o == c && bit(allowed, other) && reads_elementwise(node, other);
      if (!same && std::find(sharing.begin(), sharing.end(), o) != sharing.end()) return false;
    }
    return true;
  }

  void run_in_place(NodeId id) {
    const model::Node& node = graph_.node(id);
    const kernels::KernelDescriptor& kernel = *kernels_[id.index()];
    if (!has_step_[id.index()] || node.outputs.size() != 1 || kernel.in_place_inputs == nullptr) return;
    const std::uint32_t allowed = kernel.in_place_inputs(graph_, node);
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      if (!may_replace(id, input, allowed)) continue;
      forest_.unite(forest_.class_of(node.inputs[input]), forest_.class_of(node.outputs[0]));
      return;
    }
  }

  // From here on positions count only nodes that have steps.
  void number_steps() {
    std::vector<std::int64_t> renumbered;
    std::int64_t next = 0;
    for (NodeId id : order_) {
      renumbered.push_back(next);
      position_[id.index()] = next;
      if (has_step_[id.index()]) ++next;
    }
    for (std::int64_t& need : last_need_)
      if (need >= 0 && need != kForever) need = renumbered[static_cast<std::size_t>(need)];
  }

  Views resolve() {
    Views views;
    views.tensors.resize(graph_.tensors.size());
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (!constant(TensorId(t)) && !passes(TensorId(t)) && graph_.tensors[t].shape.element_count() > 0) locate(TensorId(t), views);
    for (NodeId id : order_) {
      if (!has_step_[id.index()]) continue;
      views.order.push_back(id);
      const std::int64_t position = position_[id.index()];
      for (TensorId out : graph_.node(id).outputs) {
        if (passes(out)) continue;
        Block& block = views.blocks[views.tensors[out.index()].buffer.index()];
        block.first = std::min(block.first, position);
        block.last = std::max(block.last, position);
      }
    }
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (views.tensors[t].buffer.valid()) extend(t, views.blocks[views.tensors[t].buffer.index()]);
    for (Block& block : views.blocks) block.last = std::max(block.first, block.last);
    return views;
  }

  void extend(std::size_t t, Block& block) const {
    if (is_output_[t]) {
      block.to_end = true;
      if (block.kind == plan::BufferKind::kActivation) block.kind = plan::BufferKind::kOutput;
    }
    if (is_input_[t]) {
      block.first = 0;
      block.kind = plan::BufferKind::kInput;
      block.whole_period = keep_inputs_;
    }
    if (last_need_[t] != kForever) block.last = std::max(block.last, last_need_[t]);
  }

  // Walks to the nearest class that is located already, then back.
  void locate(TensorId tensor, Views& views) {
    std::vector<TensorId> chain;
    for (TensorId t = tensor; t.valid() && !views.tensors[t.index()].buffer.valid(); t = forest_.get(forest_.class_of(t)).whole)
      chain.push_back(t);
    for (auto t = chain.rbegin(); t != chain.rend(); ++t) {
      const AliasForest::Class& c = forest_.get(forest_.class_of(*t));
      const model::Tensor& info = graph_.tensor(*t);
      const RowView dense = dense_view(nullptr, info.shape, info.dtype);
      plan::TensorPlacement& placement = views.tensors[t->index()];
      placement.row_pitch = dense.row_pitch;
      placement.pixel_pitch = dense.pixel_pitch;
      if (c.whole.valid()) {
        const plan::TensorPlacement& whole = views.tensors[c.whole.index()];
        placement.buffer = whole.buffer;
        placement.offset =
            whole.offset + Bytes(static_cast<std::uint64_t>(c.origin.row * whole.row_pitch + c.origin.pixel * whole.pixel_pitch +
                                                            c.origin.channel * size_of(info.dtype)));
        if (!forest_.dense_up_to_root(forest_.class_of(*t))) {
          placement.row_pitch = whole.row_pitch;
          placement.pixel_pitch = whole.pixel_pitch;
        }
      } else {
        placement.row_pitch = root_pitch(c, dense);
        const std::int64_t gaps = dense.rows * (placement.row_pitch - dense.row_pitch);
        placement.buffer = block_of_root(forest_.class_of(*t), info.bytes().count() + static_cast<std::uint64_t>(gaps), views);
      }
    }
  }

  /// Rows a multiple of 4096 bytes apart share the sets of the first cache: a dense layer that walks 14 such rows at once ran at 78 % of
  /// the peak instead of 98 % (197 rows of 3072 floats). A line more between them costs next to nothing.
  static std::int64_t root_pitch(const AliasForest::Class& c, const RowView& dense) noexcept {
    constexpr std::int64_t kAliasing = 4096, kLine = 64;
    const bool free = !c.needs_dense && !c.fixed && c.inside.empty();
    return free && dense.rows > 1 && dense.pixels == 1 && dense.row_pitch % kAliasing == 0 ? dense.row_pitch + kLine : dense.row_pitch;
  }

  BufferId block_of_root(std::size_t c, std::uint64_t bytes, Views& views) {
    if (block_of_class_.empty()) block_of_class_.resize(graph_.tensors.size());
    BufferId& id = block_of_class_[c];
    if (!id.valid()) {
      id = BufferId(views.blocks.size());
      views.blocks.push_back({.bytes = bytes, .first = kForever, .last = -1});
    }
    return id;
  }

  const model::Graph& graph_;
  const KernelChoice& kernels_;
  const std::vector<NodeId>& order_;
  const bool keep_inputs_;
  const std::vector<bool>& apart_;
  AliasForest forest_;
  std::vector<bool> has_step_;
  std::vector<std::int64_t> position_;
  std::vector<bool> is_output_;
  std::vector<bool> is_input_;
  std::vector<std::int64_t> last_need_;
  std::vector<BufferId> block_of_class_;
};

}  // namespace detail

/// Places tensors on blocks for one execution order. Of `apart` (by tensor; empty: none) each has a block of its own, so that it can become
/// a ring (planner/cut). O(nodes * tensors that share bytes).
inline Views assign_views(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, bool keep_inputs,
                          const std::vector<bool>& apart = {}) {
  return detail::ViewBuilder(graph, kernels, order, keep_inputs, apart).build();
}

/// The largest sum of blocks live at one position: what packing cannot go below.
inline std::uint64_t live_peak(const Views& views) {
  const auto positions = static_cast<std::int64_t>(views.order.size());
  std::vector<std::int64_t> delta(static_cast<std::size_t>(positions) + 1, 0);
  for (const Block& block : views.blocks) {
    const std::int64_t first = block.whole_period ? 0 : block.first;
    const std::int64_t end = block.to_end || block.whole_period ? positions : block.last + 1;
    if (first >= end) continue;
    delta[static_cast<std::size_t>(first)] += static_cast<std::int64_t>(block.bytes);
    delta[static_cast<std::size_t>(end)] -= static_cast<std::int64_t>(block.bytes);
  }
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (std::int64_t d : delta) peak = std::max(peak, live += d);
  return static_cast<std::uint64_t>(peak);
}

}  // namespace sluice::planner
