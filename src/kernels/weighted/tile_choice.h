// The two tables of an instruction set: that of CPUs on which each load slows FMAs down (avx512_prefers_few_loads), and that of others.
// `tile_table` takes the one of this CPU; tests run both. The bits are the same.
#pragma once

#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

const TileTable& tile_table_for(Isa isa, bool few_loads) noexcept;

}  // namespace sluice::kernels::weighted
