// 1x1 convolutions without padding (any stride, groups of 16 outputs and more) and dense layers: each output pixel reads one input pixel,
// in place, whatever the pitches. No workspace.
#pragma once

#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {

/// Does each output pixel of the window read one input pixel, in place?
bool reads_in_place(const ConvolutionParameters& conv) noexcept;
void run_pointwise(const KernelCall& call, const TileTable& tiles) noexcept;
void run_dense(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
