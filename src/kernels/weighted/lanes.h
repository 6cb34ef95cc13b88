// Convolutions whose 16 lanes read 16 different inputs: depthwise (rows read in place) and groups of fewer than 16 outputs (inputs spread
// to one value a lane in the workspace); and both over narrow panels (over_floats.cc).
#pragma once

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {

Bytes depthwise_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_depthwise(const KernelCall& call, const TileTable& tiles) noexcept;

/// The inputs of `area` that the block's panel reads, spread to lanes: [pixel][k][16], plan.depth floats a pixel.
void fill_lanes(const RowView& in, const ConvolutionParameters& conv, const StripArea& area, const Block& block, const StripPlan& plan,
                float* strip) noexcept;
Bytes grouped_lanes_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_grouped_lanes(const KernelCall& call, const TileTable& tiles) noexcept;

/// The same with pixels as lanes, for long sums; `sums_pixels` says where that is the better way. The bits are the same.
bool sums_pixels(const operators::ConvolutionParameters& conv) noexcept;
/// The most outputs of one group for which pixels are the better lanes.
inline constexpr std::int64_t kMostPixelOutputs = 10;
/// One group of so few outputs that pixels are the better lanes for it too, and neighbours in a row lie side by side.
bool has_few_outputs(const operators::ConvolutionParameters& conv) noexcept;
Bytes grouped_pixels_workspace(const operators::ConvolutionParameters& conv, const StepExtent& extent) noexcept;
/// The same row of planes, one for each channel.
struct PlanesRow {
  float* first = nullptr;
  std::int64_t plane = 0;  // floats from one to the next
};
/// Row `r` of an area's inputs turned into planes; what lies in the padding is zero.
void fill_planes_row(const RowView& in, const Window& w, const StripArea& area, std::int64_t r, ChannelRange channels, PlanesRow to,
                     Isa isa) noexcept;
void run_grouped_pixels(const KernelCall& call, const TileTable& tiles) noexcept;

/// The convolution as one over f32 panels, and how many bytes those of a step take.
ConvolutionParameters as_floats(const ConvolutionParameters& conv) noexcept;
Bytes float_panels(const ConvolutionParameters& conv, ChannelRange channels) noexcept;
/// Runs `run`, which takes f32 panels, over narrow ones: the step's become floats in the workspace first, and what `run` itself asks for lies
/// behind them. Such panels are few beside the inputs that each of their values meets.
void run_over_floats(const KernelCall& call, const TileTable& tiles, void (*run)(const KernelCall&, const TileTable&) noexcept) noexcept;

}  // namespace sluice::kernels::weighted
