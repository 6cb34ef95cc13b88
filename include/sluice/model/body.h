// A subgraph as a graph of its own: what the planner plans, the verifier checks and the executor runs are graphs, whoever runs them.
//
//     graph      tensors 0..9   weights 0..5   subgraphs 0..3        a node runs subgraph 2, which runs subgraph 3
//     body_of 2  its tensors    0: weight 4    0: subgraph 3         input ports: its inputs, then what it captures; output ports: its outputs
//                               1: weight 1
//
// Weights, their stretches and deeper subgraphs are copies that are numbered anew; tensors and nodes keep their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"

namespace sluice::model {

struct Body {
  Graph graph;
  std::size_t inputs = 0;                // of its input ports: own ones; behind them lie what it captures, in the order of `captures`
  std::vector<WeightId> weights;         // by its weight: the number in the graph around
  std::vector<std::uint32_t> stretches;  // by its stretch: the same
  std::vector<std::size_t> captures;     // which input of the node that runs it

  std::size_t count_captures() const noexcept { return captures.size(); }
  TensorId captured(std::size_t i) const noexcept { return graph.inputs[inputs + i].tensor; }
};

/// Subgraph `s` of a graph whose subgraphs have passed (G8), run by `node`. Weights that nobody has laid out yet have no stretches.
Body body_of(const Graph& graph, const Node& node, std::size_t s);

/// By subgraph: the node that runs it, of the graph's own; null: a node of a subgraph does.
std::vector<const Node*> runners_of(const Graph& graph);

}  // namespace sluice::model
