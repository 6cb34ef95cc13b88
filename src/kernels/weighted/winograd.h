// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3): 36 products of matrices in place of 144 sums (winograd_points.h has the numbers).
//
// The output is cut into *squares* of 4x4 pixels, counted from the first row and column of each image, so that an output's bits depend on
// neither band nor slice: where a step's rows cut a square, all of it is computed and what lies outside is dropped. A unit of work is a
// block of squares times a run of panels:
//
//     inputs --B' d B--> v [36][square][channel]  ---+
//                                                     products --> m [36][square][32] --A' m A, epilogue--> outputs
//     panels --G g G'--> u [panel][36][channel][16] --+            of two panels at a time
//
// v, m and the part of u at work stay in L2. u comes from `derived` where the step has it (mode b), else from the raw panels (mode a):
// the six points of a row at a time, right before their products, or, where a run's u is small, once for all blocks.
#pragma once

#include <cstdint>

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/winograd_tile.h"

namespace sluice::kernels::weighted {

inline constexpr std::int64_t kWinogradRowGranule = 4;

Bytes winograd_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
CostFeatures winograd_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_winograd(const KernelCall& call, const WinogradTable& loops) noexcept;

Bytes winograd_panel_bytes(const ConvolutionParameters& conv) noexcept;
void prepare_winograd(const KernelCall& call, const WinogradTable& loops) noexcept;
CostFeatures winograd_prepare_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;

}  // namespace sluice::kernels::weighted
