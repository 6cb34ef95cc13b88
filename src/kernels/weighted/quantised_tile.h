// Tiles over quantised panels: a few k of a panel at a time become floats, (q - zero) * scale, and meet the inputs in the order of k. So
// each output is the chain of fused multiply-adds that it would be over a panel of those floats, bit for bit. model/weight.h has the
// picture of the panels.
#pragma once

#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

enum class QuantisedBits : std::uint8_t { kEight, kFour, kTwo };

/// TileJob::panels points at bytes, panel_floats counts 4 of them, and k_group is the weight's.
const TileTable& quantised_tile_table(Isa isa, QuantisedBits bits) noexcept;

}  // namespace sluice::kernels::weighted
