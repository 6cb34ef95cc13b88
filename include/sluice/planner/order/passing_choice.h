// Which tensors pass (planner/order/passing.h): outputs that the caller takes as they are made, and what is spilled where a budget asks for
// it.
//
//     spilled   everything of at least so many bytes, among what waits while other nodes run, then among all: each set is planned, and the
//               first that fits is taken, so that nothing goes to the disk that need not
//
// Invariant: the same request gives the same sets, in the same order, on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/planner/order/passing.h"
#include "sluice/planner/order/select_kernels.h"

namespace sluice::planner {

using PassingKinds = std::vector<Passing::Kind>;  // by tensor

namespace detail {

/// Whether the tensors that a node makes or reads may be blocks in the workspaces of its steps.
inline bool may_pass_beside(const model::Node& node, const kernels::KernelDescriptor& kernel) noexcept {
  return node.outputs.size() == 1 && node.subgraph_count == 0 && node.op != model::OpKind::kPlain && kernel.weight_turns == nullptr &&
         kernel.takes_pitches;
}

/// The makers and readers of each tensor of a graph, as far as they decide which tensors may pass.
class PassingCandidates {
 public:
  PassingCandidates(const model::Graph& graph, const KernelChoice& kernels)
      : graph_(graph),
        wanted_(graph.tensors.size(), 0),
        read_(graph.tensors.size(), 0),
        may_(graph.tensors.size(), true),
        made_(may_.size()),
        shown_as_(may_.size()) {
    for (const model::Port& port : graph.outputs) ++wanted_[port.tensor.index()];
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const model::Node& node = graph.nodes[n];
      const bool beside = may_pass_beside(node, *kernels[n]);
      if (node.op == model::OpKind::kReshape) {
        ++read_[node.inputs[0].index()];
        shown_as_[node.inputs[0].index()] = node.outputs[0];
        continue;
      }
      for (TensorId in : node.inputs) {
        ++read_[in.index()];
        may_[in.index()] = may_[in.index()] && beside;
      }
      for (TensorId out : node.outputs) {
        made_[out.index()] = true;
        may_[out.index()] = may_[out.index()] && beside && model::rows_of_turn(graph, node) == 0 &&
                            model::step_channels(graph, node) == row_extents(graph.tensor(out).shape).channels;
      }
    }
  }

  bool may_be_handed_over(TensorId t) const { return may_pass(t) && (only_wanted(t) || wanted_as(t).valid()); }
  bool may_be_spilled(TensorId t) const {
    return may_pass(t) && wanted_[t.index()] == 0 && read_[t.index()] > 0 && !shown_as_[t.index()].valid();
  }
  /// The output that is the same tensor under another name: after a reshape that keeps rows, pixels and channels. Invalid: none.
  TensorId wanted_as(TensorId t) const {
    const TensorId shown = shown_as_[t.index()];
    if (!shown.valid() || wanted_[t.index()] != 0 || read_[t.index()] != 1 || !only_wanted(shown)) return TensorId::invalid();
    const RowExtents as_made = row_extents(graph_.tensor(t).shape), as_shown = row_extents(graph_.tensor(shown).shape);
    const bool same = as_made.rows == as_shown.rows && as_made.pixels == as_shown.pixels && as_made.channels == as_shown.channels;
    return same && graph_.tensor(shown).bounded == 0 ? shown : TensorId::invalid();
  }

 private:
  bool only_wanted(TensorId t) const { return wanted_[t.index()] == 1 && read_[t.index()] == 0; }
  bool may_pass(TensorId t) const {
    const model::Tensor& tensor = graph_.tensor(t);
    return made_[t.index()] && may_[t.index()] && tensor.bounded == 0 && tensor.shape.element_count() > 0;
  }

  const model::Graph& graph_;
  std::vector<std::uint32_t> wanted_, read_;  // how often, by tensor
  std::vector<bool> may_, made_;
  std::vector<TensorId> shown_as_;  // what a reshape makes of it; where several do, the last
};

}  // namespace detail

/// The outputs that steps can hand over as they make them. Others are whole in the arena, and are handed over after the run.
inline PassingKinds handed_over(const model::Graph& graph, const KernelChoice& kernels) {
  const detail::PassingCandidates candidates(graph, kernels);
  PassingKinds kinds(graph.tensors.size(), Passing::Kind::kStays);
  for (std::size_t t = 0; t < kinds.size(); ++t) {
    if (!candidates.may_be_handed_over(TensorId(t))) continue;
    kinds[t] = Passing::Kind::kHandedOver;
    if (const TensorId shown = candidates.wanted_as(TensorId(t)); shown.valid()) kinds[shown.index()] = Passing::Kind::kHandedOver;
  }
  return kinds;
}

/// Sets of tensors that may be spilled in addition to those that pass already, each larger than the one before it.
inline std::vector<PassingKinds> spill_sets(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order,
                                            const PassingKinds& passing) {
  constexpr int kSizes = 6;
  constexpr std::uint64_t kLeast = 16u << 10;  // less is not worth a transfer
  const detail::PassingCandidates candidates(graph, kernels);
  std::vector<std::size_t> made(graph.tensors.size(), 0), last(graph.tensors.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (TensorId out : graph.node(order[i]).outputs) made[out.index()] = i;
    for (TensorId in : graph.node(order[i]).inputs) last[in.index()] = i;
  }
  std::uint64_t largest = 0;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (candidates.may_be_spilled(TensorId(t))) largest = std::max(largest, graph.tensors[t].bytes().count());
  std::vector<PassingKinds> sets;
  for (const bool only_waiting : {true, false}) {
    for (int size = 0; size < kSizes && (largest >> size) >= kLeast; ++size) {
      PassingKinds set = passing;
      for (std::size_t t = 0; t < set.size(); ++t)
        if (candidates.may_be_spilled(TensorId(t)) && graph.tensors[t].bytes().count() >= (largest >> size) &&
            (!only_waiting || last[t] > made[t] + 1))
          set[t] = Passing::Kind::kSpilled;
      if (set != passing && (sets.empty() || set != sets.back())) sets.push_back(std::move(set));
    }
  }
  return sets;
}

}  // namespace sluice::planner
