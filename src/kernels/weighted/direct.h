// KxK convolutions, any stride, dilation and padding, groups of 16 outputs and more. 1x1 convolutions with padding come here too, and
// transposed convolutions: stride_h x stride_w small convolutions, one a phase.
//
// A convolution reads its inputs in place where they are few enough to stay in L2 (in_place.cc): no copy, no workspace, and no products
// with padding. Else tiles run over zero-padded strips (strip.h), which bring the inputs from far away in long runs.
#pragma once

#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {

Bytes direct_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_direct(const KernelCall& call, const TileTable& tiles) noexcept;

// The two ways, of which `run_direct` takes one for a node and extent.
Bytes strips_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_in_strips(const KernelCall& call, const TileTable& tiles) noexcept;
/// Taps of a kernel that may be read in place.
inline constexpr std::int64_t kMostTapsInPlace = 64;
void run_in_place(const KernelCall& call, const TileTable& tiles) noexcept;

/// Groups of 16 inputs and outputs, undilated, of f32: `run_direct` takes a third way for them, over the same strips, where there are
/// tiles for pairs of runs.
bool has_groups_of_panels(const ConvolutionParameters& conv) noexcept;
void run_group_runs(const KernelCall& call, const TileTable& tiles) noexcept;

Bytes transposed_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_transposed(const KernelCall& call, const TileTable& tiles) noexcept;
/// Sums by taps multiply each row of the input that a step reads, and neighbouring bands read some of them again.
CostFeatures transposed_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;

// Those of few outputs whose window is as large as its stride, which `run_transposed` leaves to transposed_lanes.cc.
bool phases_are_lanes(const ConvolutionParameters& conv) noexcept;
Bytes transposed_lanes_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_transposed_lanes(const KernelCall& call, const TileTable& tiles) noexcept;

// Those that sum by taps (core/transposed_sums.h), which it leaves to transposed_taps.cc.
Bytes transposed_taps_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_transposed_taps(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
