// A part of a graph as a graph: nodes [first, first + count) with the tensors that cross the border as ports. What a unit is to the planner
// and to a backend.
//
//     graph   in -> a -> b -> c -> out          part [b, c)      a's tensor -> b -> c's input          ports of the graph stay as they are,
//                                                                                                      others have the physical shape
//
// Weights, stretches and quantisations are the file's and keep their numbers, so the part is read from the same file.
#pragma once

#include <vector>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::model {

struct Part {
  Graph graph;
  std::vector<TensorId> inputs;   // by port: the tensor of the whole graph
  std::vector<TensorId> outputs;  // likewise: first the graph's own ports, in their order, then what other parts read
};

/// Errors: kUnsupported where nothing can be cut off: a tensor that would cross the border is known in extents at run only, or a node runs
/// subgraphs. The whole graph is a part, too.
Result<Part> part_of(const Graph& graph, std::size_t first, std::size_t count);

}  // namespace sluice::model
