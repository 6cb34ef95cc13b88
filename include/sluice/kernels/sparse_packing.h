// Turns trained values into sparse panels (core/panels.h, kSparse): those of kernels/packing.h without the blocks of 16 lanes that are zero
// as they would be stored, or, of weights that are pruned, small. Used by the importer and by tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/kernels/packing.h"

namespace sluice::kernels {

/// The share of blocks that are zero in all lanes. `sampled`: of a few dozen inputs of each panel alone, to see at little cost whether it
/// is worth asking for all.
double share_of_zero_blocks(const PackSource& source, bool sampled);

/// What is lost where the smallest blocks of a weight are left out.
struct Pruning {
  float largest = 0;  // sum of squares of a block: those up to here are left out; 0: zeros alone
  double signal = 0;  // sums of squares of all values, and of those that are left out
  double error = 0;
  double share = 0;  // of the blocks, zeros among them
};

/// At most the `share` of a weight's blocks, those whose sums of squares are the least, and all that are zero. Equal blocks are left out
/// together or kept together: if all blocks of a weight are equal, none is left out.
Pruning prune(const PackSource& source, double share);

/// Makes a weight that `describe_panels` has described sparse: its layout, sizes and where its panels end. Packs each panel once.
/// `largest`: of blocks that are left out (Pruning).
void describe_sparse(const PackSource& source, model::Weight& weight, float largest = 0);

/// Writes panels [p.begin, p.end), back to back; `out` has their size, or more.
void pack_sparse(const PackSource& source, PanelRange p, std::span<std::byte> out, float largest = 0);

}  // namespace sluice::kernels
