// Turns trained values into sparse panels (core/panels.h, kSparse): those of kernels/packing.h without the blocks of 16 lanes that are zero
// as they would be stored. Used by the importer and by tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/kernels/packing.h"

namespace sluice::kernels {

/// The share of blocks that are zero in all lanes. `sampled`: of a few dozen inputs of each panel alone, to see at little cost whether it
/// is worth asking for all.
double share_of_zero_blocks(const PackSource& source, bool sampled);

/// Makes a weight that `describe_panels` has described sparse: its layout, sizes and where its panels end. Packs each panel once.
void describe_sparse(const PackSource& source, model::Weight& weight);

/// Writes panels [p.begin, p.end), back to back; `out` has their size, or more.
void pack_sparse(const PackSource& source, PanelRange p, std::span<std::byte> out);

}  // namespace sluice::kernels
