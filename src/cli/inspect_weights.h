// Shows how each weight is stored: `inspect --weights`, and a list in its JSON.
#pragma once

#include "sluice/model/graph.h"
#include "src/cli/json.h"

namespace sluice::cli {

Json json_of_weights(const model::Graph& graph);
void print_weights(const model::Graph& graph);

}  // namespace sluice::cli
