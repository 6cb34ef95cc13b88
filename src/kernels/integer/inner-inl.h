// All inner loops over a set of vector operations `V`, which must have been defined in the namespace that this is included in.
#include "src/kernels/integer/finish-inl.h"

// What the next ones are made of comes first.
#include "src/kernels/integer/lanes-inl.h"
#include "src/kernels/integer/runs-inl.h"
#include "src/kernels/integer/tile-inl.h"

/// The table of this instruction set.
constexpr TileTable table_for(DotIsa isa) {
  return {.isa = isa,
          .rows = V::kRows,
          .tile = run_tile,
          .lane_bytes = V::kBytes,
          .lane_run = run_lanes,
          .largest = run_largest,
          .mean = run_mean,
          .binary = run_binary,
          .blend = run_blend,
          .blend_lanes = run_blend_lanes,
          .look_up = run_look_up,
          .quantize = run_quantize,
          .dequantize = run_dequantize};
}
