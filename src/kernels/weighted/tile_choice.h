// The tables of an instruction set for each CPU that has it. `tile_table` takes the one of this CPU; tests run all. The bits are the same.
#pragma once

#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

/// What CPUs with AVX-512 differ by; other instruction sets have one table.
struct TileChoice {
  bool few_loads = false;    // each load slows FMAs down (avx512_prefers_few_loads)
  bool whole_paths = false;  // half a vector takes as long as a whole one (avx512_has_whole_paths)
};

const TileTable& tile_table_for(Isa isa, TileChoice choice) noexcept;

}  // namespace sluice::kernels::weighted
