// Pass: which kernel runs each node. Today the first that supports it, in the registry's order of preference.
//
// Invariant: every node has a kernel, or the pass fails with kUnsupported naming the node. Nodes that later passes turn into views have one
// too: whether they become views is decided with the kernels known (`takes_pitches`).
#pragma once

#include <vector>

#include "sluice/core/error.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"

namespace sluice::planner {

/// One kernel for each node of the graph, by node index.
using KernelChoice = std::vector<const kernels::KernelDescriptor*>;

/// Errors: kUnsupported with the node's name.
inline Result<KernelChoice> select_kernels(const model::Graph& graph) {
  KernelChoice choice;
  choice.reserve(graph.nodes.size());
  for (const model::Node& node : graph.nodes) {
    const std::vector<const kernels::KernelDescriptor*> candidates = kernels::kernels_for(graph, node);
    if (candidates.empty()) return fail(ErrorCode::kUnsupported, node.name, "no kernel of this build runs the node in this form");
    choice.push_back(candidates.front());
  }
  return choice;
}

}  // namespace sluice::planner
