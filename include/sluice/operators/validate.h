// The rules of single operators (G2, G4): attributes, shapes and weights of one node agree, so that a kernel may trust all three.
//
// Code that opens or writes a model file passes this function to `model::validate`: model may not include the operators and only knows the
// rules that all of them share.
#pragma once

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::operators {

/// The node's ids are in range and the shapes of its tensors sane. Errors: kInvalidModel or kUnsupported, naming the node.
Status validate_node(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::operators
