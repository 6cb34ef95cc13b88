// Decides which weights are stored as sparse panels: without their blocks of 16 outputs x 1 input that are zero (kernels/sparse_packing.h).
//
// A weight becomes sparse where its nodes have kernels for that and its share of zero blocks is at least that from which skipping them pays
// (docs/quantisation.md has the measurements). Values stay what they are. Of a 3x3 convolution that would take Winograd's sums the share is
// higher, and its numeric class becomes `exact`.
#pragma once

#include <vector>

#include "sluice/importer/importer.h"
#include "sluice/model/graph.h"
#include "src/importer/emit.h"

namespace sluice::importer {

// Shares of zero blocks from which the sparse kernels are the faster ones (sluice-bench-sparse: 10 % with AVX2, 17 to 27 % with AVX-512),
// and those at which they catch up with a third of the products, which is what Winograd's sums take.
inline constexpr double kPays = 0.25;
inline constexpr double kPaysBesideWinograd = 0.7;

/// `graph` has its numeric classes. Recipes are by WeightId. `prune_share` above 0: so many of the blocks of each weight that gains by it
/// are left out, those whose sums of squares are the least; `pruned` gets a line for each.
void choose_sparse(model::Graph& graph, std::vector<Recipe>& recipes, double prune_share, std::vector<PrunedWeight>& pruned);

}  // namespace sluice::importer
