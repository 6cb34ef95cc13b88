// The rules of single operators (G2, G4): attributes, shapes and weights of one node agree, so that a kernel may trust all three.
//
// `model::validate`, and with it whoever opens or writes a model file, is given this function: model stands below the operators and knows
// only the rules that hold of all of them.
#pragma once

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::operators {

/// The node's ids are in range and the shapes of its tensors sane. Errors: kInvalidModel or kUnsupported, naming the node.
Status validate_node(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::operators
