// Constant folding: what depends on nothing but the file is computed at import.
//
// The shape arithmetic round Reshape, Resize and Slice is small and is computed; weights that are merely transposed, reshaped, sliced,
// broadcast or filled stay views of the file, whatever their size. Nothing above kMaxFoldedElements is ever computed, and what a file can
// make us compute in all is bounded (allowance.h).
#pragma once

#include <cstdint>

#include "src/importer/lowering.h"

namespace sluice::importer {

/// Folds the node if all it needs is constant (Shape and Size need shapes only). True: its outputs are set. False: it is left to the
/// lowering table. Refuses nodes that are malformed, and more work than the file may ask for.
bool fold(NodeContext& c);

/// Is this an operator that exists here in folded form only?
bool folds_only(std::string_view op_type) noexcept;

}  // namespace sluice::importer
