// The nodes of an ONNX graph in an order in which they can be lowered one after the other.
#pragma once

#include "src/importer/onnx_graph.h"

namespace sluice::importer {

/// Puts nodes in an order in which inputs come before their use, keeping the file's order where it already is one. A body may read names
/// that the graphs round it make: whether they do is seen when it is lowered.
/// Refuses a value that is made twice or read and made by nothing, and a cycle.
void order_nodes(OnnxGraph& graph, bool is_body);

}  // namespace sluice::importer
