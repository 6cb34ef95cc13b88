// The rules of nodes that run subgraphs: how their inputs and results are those of the subgraphs (operators/generic/control.h).
#pragma once

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::operators {

/// Of a plain node with attributes. (G8) has passed: what it captures is the same inside as outside. Errors: kInvalidModel; kUnsupported for
/// numbers of nodes that had their bodies in their arguments.
Status validate_subgraphs(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::operators
