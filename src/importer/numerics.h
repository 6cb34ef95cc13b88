// The last decision of convert: which convolutions are computed by Winograd. Made from shapes alone, so that a file gives the same bits
// on every device and at every budget.
#pragma once

#include <set>
#include <string>

#include "sluice/model/graph.h"

namespace sluice::importer {

/// Gives convolutions that gain by it the class kWinograd4, but for those of the names `exact`; all other nodes keep theirs.
void choose_numerics(model::Graph& graph, const std::set<std::string>& exact = {});

}  // namespace sluice::importer
