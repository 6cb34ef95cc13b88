// Groups of fewer than 16 outputs, which fill no panel: as depthwise convolutions (depthwise.h) over a strip that holds, for each pixel and
// each input k of a group, what 64 neighbouring outputs multiply there. With o outputs a group:
//
//     strip:  [pixel][k][64] u8, lane n = input k of the group of output n
//                k = 0:  a a a a b b b b c c c c ...      o = 4; a, b, c are the first inputs of three groups
//                k = 1:  A A A A B B B B C C C C ...
//
// A tap of the window is then as many taps of a lane as a group has inputs. Nothing is multiplied by a zero that groups put together would
// have between them.
#pragma once

#include "src/kernels/integer/tile.h"
#include "src/kernels/integer/walk.h"

namespace sluice::kernels::integer {

bool takes_groups(const IntegerConvolutionParameters& conv) noexcept;
Bytes grouped_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept;
void run_grouped(const KernelCall& call, const TileTable& table) noexcept;

}  // namespace sluice::kernels::integer
