// The rules of single operators (G2, G4): attributes, shapes and weights of one node agree, so that a kernel may trust all three.
#pragma once

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::model {

/// The node's ids are in range and the shapes of its tensors sane. Errors: kInvalidModel or kUnsupported, naming the node.
Status validate_node(const Graph& graph, const Node& node);

}  // namespace sluice::model
