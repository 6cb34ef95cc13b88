// The lower bound of partitions by rows: a figure by which to judge a plan.
//
// The lower bound is the most, over the nodes, of these together: the inputs, which the caller sets whole; the outputs that are not handed
// over as they are made; what the node reads at once, whatever its rows (all keys and values of an attention, all that a global mean is
// of); and what it makes at once, where its kernel takes no bands.
//
// The bound holds for every order of the nodes and every number of bands, with these kernels. Workspaces are not counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sluice/planner/bands/region.h"

namespace sluice::planner {

namespace detail {

/// The tensor that a view is a part of.
inline TensorId root_of(const Uses& uses, TensorId t) noexcept {
  for (std::size_t maker = uses.maker(t); maker != Uses::kNobody && uses.is_view(maker); maker = uses.maker(t))
    t = uses.node(maker).inputs[0];
  return t;
}

/// Bytes of the tensors that must be whole before or after a node.
inline std::uint64_t whole_bytes(const model::Graph& graph, const Uses& uses, std::size_t at) {
  const model::Node& node = uses.node(at);
  const bool bands = uses.takes_bands(at);
  std::map<std::size_t, std::uint64_t> read;  // by root: parts of one tensor may overlap
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorId in = node.inputs[i];
    if (graph.tensor(in).weight.valid() || (bands && row_relation(graph, node, i, Connected::kDeclared))) continue;
    const TensorId root = root_of(uses, in);
    if (graph.tensor(root).weight.valid()) continue;
    std::uint64_t& bytes = read[root.index()];
    bytes = std::min(bytes + graph.tensor(in).bytes().count(), graph.tensor(root).bytes().count());
  }
  std::uint64_t inputs = 0, outputs = 0;
  for (const auto& [root, bytes] : read) inputs += bytes;
  if (!bands)
    for (TensorId out : node.outputs) outputs += graph.tensor(out).bytes().count();
  return std::max(inputs, outputs);  // the output may take the place of an input
}

}  // namespace detail

/// Bytes of activations that every plan of these kernels holds at some step.
inline std::uint64_t activation_bound(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order) {
  const auto bytes_of = [&](const std::vector<model::Port>& ports) {
    std::uint64_t bytes = 0;
    for (const model::Port& port : ports)
      if (kernels.passing() == nullptr || !kernels.passing()->passes(port.tensor)) bytes += graph.tensor(port.tensor).bytes().count();
    return bytes;
  };
  const Uses uses(graph, kernels, order);
  std::uint64_t bound = std::max(bytes_of(graph.inputs), bytes_of(graph.outputs));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!uses.is_view(i) && uses.node(i).op != model::OpKind::kConcat) bound = std::max(bound, detail::whole_bytes(graph, uses, i));
  return bound;
}

}  // namespace sluice::planner
