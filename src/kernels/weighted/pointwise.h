// 1x1 convolutions without padding (any stride, groups of 16 outputs and more) and dense layers: each output pixel reads one input pixel,
// in place, whatever the pitches. Workspace for narrow panels only.
#pragma once

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/narrow.h"

namespace sluice::kernels::weighted {

inline std::int64_t groups_of(const ConvolutionParameters& conv) noexcept { return conv.groups; }
inline std::int64_t groups_of(const operators::DenseParameters&) noexcept { return 1; }

/// Of both.
template <class Parameters>
Bytes pointwise_workspace(const Parameters& parameters, const StepExtent& extent) noexcept {
  return NarrowRooms::bytes(narrow_step(parameters.weighted, groups_of(parameters), extent));
}

/// Does each output pixel of the window read one input pixel, in place?
bool reads_in_place(const ConvolutionParameters& conv) noexcept;
void run_pointwise(const KernelCall& call, const TileTable& tiles) noexcept;
/// Is there one tap, and no output meets padding?
bool reads_pixels_in_place(const Window& w) noexcept;

/// Groups of so few outputs and one tap that the pixels of a row are the better lanes, and inputs need no copy.
bool turns_groups(const ConvolutionParameters& conv, const TileTable& tiles) noexcept;
void run_turned_groups(const KernelCall& call, const TileTable& tiles) noexcept;

void run_dense(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
