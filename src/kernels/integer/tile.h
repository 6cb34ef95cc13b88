// The border between the walk over memory (plain C++, one copy) and the inner loops of the class int8 (one copy an instruction set).
//
// A *tile* is a few output pixels times all panels of a block; its rows are addressed by pointer, so it does not care whether pixels are
// neighbours, on different image rows, or in a ring. With k counting groups of four values of a segment, and 32-bit sums that wrap round:
//
//     sum[row][lane] = bias[lane] + start[row]
//                      + sum over segments s, k < depth, j < 4, of a[row][segment_offsets[s] + 4 k + j] * weight(s, k, lane, j)
//
// Sums are exact, so their order is free. What becomes of them says operators::IntegerEpilogue.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"
#include "sluice/core/dtype.h"
#include "sluice/operators/parameters/integer.h"

namespace sluice::kernels::integer {

using operators::IntegerEpilogue;
using operators::IntegerRange;

/// Enough rows for the largest tile of any instruction set.
inline constexpr int kMaxTileRows = 16;

/// The tiles that fetch the next block, a part each and a line every few k: at once, before a tile, they would wait for each other.
inline constexpr int kTilesOfPrefetch = 4;

/// Pixels of one tile. Outputs and residuals begin with the first channel of the block.
struct TileRows {
  int count = 0;
  const std::uint8_t* a[kMaxTileRows];
  std::byte* out[kMaxTileRows];
  const std::uint8_t* residual[kMaxTileRows];
  const std::int32_t* starts = nullptr;  // what each row's sums begin with beside the bias; null: nothing
};

/// What happens to sums, from the first channel of a block on. Bias and multipliers may be read for whole panels.
struct Finish {
  const std::int32_t* bias = nullptr;
  const float* multipliers = nullptr;  // null: the output is i32
  const IntegerEpilogue* epilogue = nullptr;
  DType out = DType::kU8;
};

/// What all tiles of a block share.
struct TileJob {
  const std::int8_t* panels = nullptr;
  std::int64_t panel_bytes = 0;  // from one panel to the next
  std::int64_t panel_count = 0;
  int last_lanes = 16;                            // lanes of the last panel that are outputs
  const std::int64_t* segment_offsets = nullptr;  // in bytes
  std::int64_t segments = 1;
  std::int64_t depth = 0;                    // groups of four of a segment
  const std::int8_t* next_panels = nullptr;  // the block that will follow, to be fetched into L2; null: none
  std::int64_t next_part = 0;                // which of `kTilesOfPrefetch` parts of it this tile fetches
  Finish finish;
};

using operators::kMostLaneTaps;

/// Pixels of one row of a depthwise convolution, all channels (depthwise.h). Tap t of pixel i, channel c, is taps[t][i * steps[t] + c].
struct LaneRun {
  const std::uint8_t* const* taps = nullptr;
  const std::int64_t* steps = nullptr;
  std::int64_t fours = 0;  // of taps
  bool even_rows = false;  // 3x3 taps, those of a row one distance apart and with one step
  std::int64_t count = 0;  // of pixels
  std::byte* out = nullptr;
  std::int64_t out_step = 0;  // in bytes
  const std::byte* prepared = nullptr;
  std::int64_t channels = 0;
  IntegerRange range;
  DType type = DType::kU8;  // of the output: f32 and i32 as in Finish
};

/// Values of an operand along a run: step 1, or 0 for one value repeated.
struct ByteStream {
  const std::uint8_t* values = nullptr;
  int step = 1;
};

/// Channels of one output pixel of a pool, from those of the window's first pixel on: rows of `columns` pixels. Or of several pixels, where the
/// same distance leads from any of their values to its tap.
struct WindowRun {
  const std::uint8_t* const* rows = nullptr;  // the first pixel of each
  std::int64_t row_count = 0;
  std::int64_t columns = 0;
  std::int64_t column_step = 0;
  std::int64_t values = 0;
  IntegerRange range;
  // Of means (IntegerPoolParameters).
  std::uint8_t zero_in = 0;
  bool whole = true;  // the sum of whole numbers times the multiplier, else the sum of reals
  float multiplier = 1.0f;
  float count = 1.0f;
  float scale_in = 1.0f;
  float scale = 1.0f;
  std::uint8_t offset = 0;
};

/// The sources of a column of a linear resize, as distances from the begin of a row.
struct BlendColumn {
  std::int64_t from[2];
  float weights[2];
};

/// A row of output pixels of a linear resize: four pixels, each times its weight (IntegerResizeParameters), which is a row's times a column's.
struct BlendRow {
  const std::uint8_t* rows[2];
  float weights[2];
  const BlendColumn* columns;
  std::int64_t pixels = 0, channels = 0;
  std::uint8_t* out = nullptr;
  std::int64_t pitch = 0;  // of output pixels
};

/// Part of such a row whose pixels lie next to each other and are of few channels: for each value its neighbours and what their column weighs.
struct BlendLanes {
  static constexpr int kMost = 256;
  const std::uint8_t* bytes[4];
  float weights[2][kMost];
  int count = 0;
};

/// The inner loops of one instruction set. Runs are values that follow each other; `out` may be an input.
struct TileTable {
  DotIsa isa = DotIsa::kScalar;
  int rows = 1;  // of a full tile
  void (*tile)(const TileRows& rows, const TileJob& job) noexcept = nullptr;
  int lane_bytes = 16;  // of a vector of lanes
  void (*lane_run)(const LaneRun& run) noexcept = nullptr;
  void (*largest)(const WindowRun& run, std::uint8_t* out) noexcept = nullptr;
  void (*mean)(const WindowRun& run, std::uint8_t* out) noexcept = nullptr;
  void (*binary)(const operators::IntegerBinaryParameters& p, ByteStream a, ByteStream b, std::uint8_t* out,
                 std::int64_t n) noexcept = nullptr;
  void (*blend)(const operators::IntegerResizeParameters& p, const BlendRow& row) noexcept = nullptr;
  void (*blend_lanes)(const operators::IntegerResizeParameters& p, const BlendRow& row, const BlendLanes& lanes) noexcept = nullptr;
  void (*look_up)(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out, std::int64_t n) noexcept = nullptr;
  void (*quantize)(const operators::IntegerBorderParameters& p, const float* in, std::uint8_t* out, std::int64_t n) noexcept = nullptr;
  void (*dequantize)(const operators::IntegerBorderParameters& p, const std::uint8_t* in, float* out, std::int64_t n) noexcept = nullptr;
};

/// The table for an instruction set, or for the nearest lower one this build has; the CPU must have it.
const TileTable& tile_table(DotIsa isa) noexcept;
/// The table of the best way that an instruction set has on this CPU.
const TileTable& table_of(Isa isa) noexcept;

}  // namespace sluice::kernels::integer
