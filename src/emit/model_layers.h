// The layers of a model as a measurer times them: each once, with no more weights than a program of a few KiB has room for.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/model/graph.h"

namespace sluice::emit {

/// The tensors, weights and nodes of both, those of `second` behind those of `first`. Ports are those of neither.
model::Graph side_by_side(const model::Graph& first, const model::Graph& second);

/// `node` if its panels have at most so many values. Else a node behind all others that makes fewer of its outputs; nothing where one output
/// of each group has too many.
std::optional<NodeId> with_few_weights(model::Graph& graph, NodeId node, std::int64_t most_values);

}  // namespace sluice::emit
