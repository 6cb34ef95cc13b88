// Pass: the order in which nodes run. Gives candidates; the caller keeps the one whose activations peak lowest, the graph's own on a tie.
//
// The graph's order is the order of weights in the file, so another order turns some adjacent loads into separate ones: it has to earn that
// with memory. Invariants: every order given is topological and holds each node once; a condition comes before the nodes that it guards
// (operators/guards.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/model/graph.h"
#include "sluice/operators/guards.h"

namespace sluice::planner {

inline std::vector<NodeId> graph_order(const model::Graph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) order.push_back(NodeId(n));
  return order;
}

/// By node, what must have been made before it: what it reads, and the conditions of its guards. Each once, rising.
inline std::vector<std::vector<TensorId>> tensors_before(const model::Graph& graph) {
  const operators::Guards guards = operators::find_guards(graph);
  std::vector<std::vector<TensorId>> before;
  before.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    std::vector<TensorId>& tensors = before.emplace_back(graph.nodes[n].inputs);
    for (std::uint32_t g = guards.of(NodeId(n)); g != operators::kAlways; g = guards.guards[g].around)
      tensors.push_back(guards.guards[g].condition);
    sluice::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  }
  return before;
}

/// Greedy: of the nodes that are ready, always the one after which least is live (its outputs less the inputs that die), the earliest of
/// the graph on a tie. O(nodes * ready nodes).
inline std::vector<NodeId> greedy_order(const model::Graph& graph) {
  const std::size_t count = graph.nodes.size();
  const std::vector<std::vector<TensorId>> before = tensors_before(graph);
  std::vector<std::vector<std::size_t>> readers(graph.tensors.size());
  std::vector<bool> available(graph.tensors.size(), true);  // inputs and constants; outputs of nodes are not
  for (std::size_t n = 0; n < count; ++n) {
    for (TensorId in : before[n]) readers[in.index()].push_back(n);
    for (TensorId out : graph.nodes[n].outputs) available[out.index()] = false;
  }
  std::vector<std::size_t> readers_left(graph.tensors.size());
  for (std::size_t t = 0; t < readers.size(); ++t) readers_left[t] = readers[t].size();
  for (const model::Port& port : graph.outputs) ++readers_left[port.tensor.index()];

  const auto is_ready = [&](std::size_t n) {
    return std::all_of(before[n].begin(), before[n].end(), [&](TensorId in) { return available[in.index()]; });
  };
  const auto growth = [&](std::size_t n) {
    std::int64_t bytes = 0;
    for (TensorId out : graph.nodes[n].outputs) bytes += static_cast<std::int64_t>(graph.tensor(out).bytes().count());
    for (TensorId in : graph.nodes[n].inputs)
      if (!graph.tensor(in).weight.valid() && readers_left[in.index()] == 1)
        bytes -= static_cast<std::int64_t>(graph.tensor(in).bytes().count());
    return bytes;
  };
  std::vector<std::size_t> ready;  // rising
  for (std::size_t n = 0; n < count; ++n)
    if (is_ready(n)) ready.push_back(n);
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const auto best = std::min_element(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) { return growth(a) < growth(b); });
    const std::size_t node = *best;
    ready.erase(best);
    order.push_back(NodeId(node));
    for (TensorId in : before[node]) --readers_left[in.index()];
    for (TensorId out : graph.nodes[node].outputs) available[out.index()] = true;
    for (TensorId out : graph.nodes[node].outputs)
      for (std::size_t reader : readers[out.index()])
        if (is_ready(reader) && !std::binary_search(ready.begin(), ready.end(), reader))
          ready.insert(std::lower_bound(ready.begin(), ready.end(), reader), reader);
  }
  return order;
}

}  // namespace sluice::planner
