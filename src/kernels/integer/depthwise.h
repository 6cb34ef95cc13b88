// Depthwise convolutions: taps in fours, so that the sums of four products serve here too.
//
// Bytes of four taps are interleaved channel by channel, a vector from each tap; the weights come so prepared. With B bytes a vector, a
// group is B channels, whose sums lie in four vectors: dword i of 128-bit block b in vector j is channel 16 b + 4 j + i of the group, which
// is what interleaving within 128-bit blocks gives, and what packing within them undoes (lane_groups.h has the picture).
#pragma once

#include "src/kernels/integer/tile.h"
#include "src/kernels/integer/walk.h"

namespace sluice::kernels::integer {

bool takes_lanes(const IntegerConvolutionParameters& conv) noexcept;
Bytes depthwise_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_depthwise(const KernelCall& call, const TileTable& table) noexcept;

}  // namespace sluice::kernels::integer
