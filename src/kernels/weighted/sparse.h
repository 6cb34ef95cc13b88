// Dense layers and convolutions of one group over sparse panels (core/panels.h): the walks of pointwise.h and strip.h, with tiles that
// multiply by the blocks that are there.
//
// Before the tiles of a unit run, the bitmaps of its panels become lists of places in the thread's workspace, once for all of them:
//
//     workspace:  | thread 0: lists of a block's panels, places | thread 1: ... |      and behind them, of KxK kernels, strips
//
// Listing a block takes about as long as multiplying one or two pixels by it.
#pragma once

#include "sluice/operators/parameters/sparse.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/sparse_tile.h"

namespace sluice::kernels::weighted {

using operators::SparseConvolutionParameters;
using operators::SparseDenseParameters;

Bytes sparse_dense_workspace(const SparseDenseParameters& dense, const StepExtent& extent) noexcept;
void run_sparse_dense(const KernelCall& call, const SparseTiles& tiles) noexcept;

Bytes sparse_pointwise_workspace(const SparseConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_sparse_pointwise(const KernelCall& call, const SparseTiles& tiles) noexcept;

Bytes sparse_direct_workspace(const SparseConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_sparse_direct(const KernelCall& call, const SparseTiles& tiles) noexcept;

/// How much work a part of a node is: the products and bytes of the blocks that its panels have.
CostFeatures sparse_cost(const WeightedParameters& weighted, const std::uint32_t* panel_ends, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels::weighted
