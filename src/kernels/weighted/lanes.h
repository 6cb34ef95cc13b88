// Convolutions whose 16 lanes read 16 different inputs: depthwise (rows read in place) and groups of fewer than 16 outputs (inputs spread
// to one value a lane in the workspace).
#pragma once

#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {

Bytes depthwise_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_depthwise(const KernelCall& call, const TileTable& tiles) noexcept;

Bytes grouped_lanes_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_grouped_lanes(const KernelCall& call, const TileTable& tiles) noexcept;

/// The same with pixels as lanes, for long sums; `sums_pixels` says where that is the better way. The bits are the same.
bool sums_pixels(const operators::ConvolutionParameters& conv) noexcept;
Bytes grouped_pixels_workspace(const operators::ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_grouped_pixels(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
