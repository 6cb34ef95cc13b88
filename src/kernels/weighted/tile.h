// The border between the walk over memory (plain C++, one copy) and the inner loops (one copy an instruction set).
//
// A *tile* is a few output pixels times all panels of a block; its rows are addressed by pointer, so it does not care whether pixels are
// neighbours, on different image rows, or in a ring. Both kinds of tile form each output as one chain of fused multiply-adds from 0:
//
//     acc[row][lane] = sum over segments s, then k < depth, of in(row, s, k, lane) * weight(s, k, lane)
//
//     panels: in = rows.a[row][segment_offsets[s] + k], the same for all lanes;      weights of segment s at segment_weights[s]
//     lanes:  in = rows.a[row][segment_offsets[s] + k * a_step + lane];              weights of segment s at s * segment_floats
//
// A segment is a run of taps that is contiguous in memory (a kernel row of a padded strip), so the inner loop is one long run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "sluice/core/activation.h"
#include "sluice/core/cpu.h"
#include "sluice/core/interval.h"

namespace sluice::kernels::weighted {

/// Enough rows for the largest tile of any instruction set.
inline constexpr int kMaxTileRows = 16;

/// Unfinished sums of a tile, at most, of a pair of panels, or of half the rows and four panels: 16 for each row and panel. They lie as the
/// tile that began them holds them, so a tile with sums has the same shape in every part of a depth: rows and panels alone decide it.
inline constexpr int kTileSums = kMaxTileRows * 32;

/// The tiles that fetch the next block, a part each, at least and at most: the more, the less they wait for memory.
inline constexpr int kTilesOfPrefetch = 4;
inline constexpr int kMostTilesOfPrefetch = 8;

/// Pixels of one tile. All pointers are to the first channel of the block; `residual` means something with TileJob::has_residual only.
struct TileRows {
  int count = 0;
  const float* a[kMaxTileRows];
  float* out[kMaxTileRows];
  const float* residual[kMaxTileRows];
};

/// What all tiles of a block share. Offsets and steps count floats.
struct TileJob {
  const float* panels = nullptr;
  std::int64_t panel_floats = 0;  // from one panel to the next
  int panel_count = 0;
  int last_lanes = 16;                 // lanes of the last panel that are outputs
  float* sums = nullptr;               // panels only: unfinished sums of the tile's rows; null: a tile's sums begin and end in it
  bool begins = true;                  // from 0, or from `sums`
  bool ends = true;                    // in the output, or in `sums`
  const float* next_panels = nullptr;  // panels only: the block that will follow, to be fetched into L2; null: none
  std::int64_t next_part = 0;          // which of `next_parts` parts of it this tile fetches
  std::int64_t next_parts = kTilesOfPrefetch;
  std::int64_t next_panel_floats = 0;  // from one of its panels to the next
  int next_shift = 0;                  // its panels are shorter than those in use by this power of two, at least (narrow.h)
  const std::int64_t* segment_offsets = nullptr;
  const std::int64_t* segment_weights = nullptr;  // f32 panels only: where each segment's weights begin; null: they follow each other
  std::int64_t segments = 1;
  std::int64_t depth = 0;           // floats of a segment (panels), or steps of 16 lanes
  std::int64_t a_step = 16;         // lanes only: between inputs of consecutive steps
  std::int64_t segment_floats = 0;  // lanes only: between weights of consecutive segments
  std::int64_t fetch_ahead = 0;     // column_run only: what lies so far behind the inputs is fetched into the first cache; 0: nothing
  bool fetches_row_below = false;   // sliding, stride 1, as many segments as depth: the inputs below the tile are far away
  const float* bias = nullptr;      // of the first channel, or null
  bool has_residual = false;
  bool outputs_are_far = false;  // beyond L2
  Activation activation;
  // Narrow panels only (narrow.h): see PanelLayout, and which value of a lane the first segment begins with.
  std::int64_t k_group = 0;
  std::int64_t first_value = 0;
  std::int64_t values = 0;  // of a lane
};

/// Pixels of one row, all panels of the job: pixel i reads at a + i * a_pixel and so on. Steps count floats. `residual` as in TileRows.
struct PixelRun {
  std::int64_t count = 0;
  const float* a = nullptr;
  std::int64_t a_pixel = 0;
  float* out = nullptr;
  std::int64_t out_pixel = 0;
  const float* residual = nullptr;
  std::int64_t residual_pixel = 0;
  // Sliding only: inputs of the row lie `a_step` apart from `a` on; those before `first_input` and from `end_input` on are padding.
  std::int64_t first_input = 0;
  std::int64_t end_input = 0;
};

/// Pixels of a run of `pair`, at most.
inline constexpr int kMostRunPixels = 8;

/// One run of pixels or two, as long as each other; those of a run lie evenly. As in PixelRun.
struct RunPair {
  int count = 0;
  int pixels = 0;  // of a run
  const float* a[2] = {};
  std::int64_t a_pixel = 0;
  float* out[2] = {};
  std::int64_t out_pixel = 0;
  const float* residual[2] = {};
  std::int64_t residual_pixel = 0;
};

/// Pixels that are summed at once where they are the lanes: chains enough of one output to hide the latency of an FMA.
inline constexpr std::int64_t kMostPixels = 128;

/// Outputs of `count` pixels of a row, whose sums are those from `first` on of a run of pixels. As in PixelRun.
struct PixelOutputs {
  std::int64_t first = 0;
  std::int64_t count = 0;
  float* out = nullptr;
  std::int64_t out_pixel = 0;
  const float* residual = nullptr;
  std::int64_t residual_pixel = 0;
};

/// Planes of pixels, one for each input channel of a group, and the lanes of a panel that are its outputs.
///
///     sum of output o at pixel p: over taps t, then k < depth, of first[tap_offsets[t] + k * plane_floats + p] * weight(t, k, o)
struct PixelPlanes {
  const float* first = nullptr;
  std::int64_t plane_floats = 0;
  const std::int64_t* tap_offsets = nullptr;
  std::int64_t taps = 0;
  std::int64_t depth = 0;
  const float* weights = nullptr;  // of the panel: [taps][depth][16]
  int first_lane = 0;
  int end_lane = 0;
};

/// Writes values [first, first + count) of all lanes of a narrow panel to `to`, as floats: [count][16]. `group` is PanelLayout::k_group.
using Widen = void (*)(const std::byte* panel, std::int64_t group, std::int64_t first, std::int64_t count, float* to) noexcept;

inline constexpr std::int64_t kAnyOutputs = std::numeric_limits<std::int64_t>::max();

/// The inner loops of one instruction set.
struct TileTable {
  Isa isa = Isa::kScalar;
  int rows = 1;                              // of a full tile with panels
  int few_rows = 0;                          // of a full one that takes four panels at once
  int rows_of_three = 0;                     // of a full one that takes three panels at once, where those are the best; 0: nowhere
  int short_rows = 0;                        // of a full one of `short_run`
  int short_products = 0;                    // of sums that are for `short_run`; 0: there is none
  std::int64_t short_outputs = kAnyOutputs;  // of a group, at most
  int lane_rows = 1;                         // of a full tile with lanes
  void (*panels)(const TileRows& rows, const TileJob& job) noexcept = nullptr;
  Widen widen = nullptr;  // of narrow panels, before `panels` multiply by them (narrow.h); null: of f32
  // As `panels`, over narrow ones as they lie: of tiles of up to `stored_rows`, whose sums begin and end in them. Null: there is none.
  void (*stored)(const TileRows& rows, const TileJob& job) noexcept = nullptr;
  int stored_rows = 0;
  // As `panels`, tile by tile, for short sums; job.next_part is that of the first.
  void (*short_run)(const PixelRun& run, const TileJob& job) noexcept = nullptr;
  // As `panels`, for a job of one panel of which no more than `column_outputs` lanes are outputs: pixels are the lanes.
  void (*column_run)(const PixelRun& run, const TileJob& job) noexcept = nullptr;
  int column_outputs = 0;  // 0: there is none
  int column_rows = 0;     // pixels of a vector: a run of fewer is run by `panels`
  // As `panels`, for a job of one panel; job.next_panels is fetched whole. Null: there is none.
  void (*pair)(const RunPair& runs, const TileJob& job) noexcept = nullptr;
  void (*lanes)(const TileRows& rows, const TileJob& job) noexcept = nullptr;
  void (*lane_run)(const PixelRun& run, const TileJob& job) noexcept = nullptr;
  // One panel whose lanes read inputs of the pixel itself: product k of lane l reads a[sources[l] + k], sources ascending, those of lanes
  // that are no outputs as the last. False, and nothing done, where the inputs of a vector's lanes fill more than four vectors.
  bool (*spread)(const TileRows& rows, const TileJob& job, const std::int32_t* sources) noexcept = nullptr;
  // As lane_run, for whole panels; taps that meet padding are left out. False, and nothing done, for windows it has no code for.
  bool (*slide)(const PixelRun& run, const TileJob& job) noexcept = nullptr;

  // Pixels [begin, end) of all planes, at most kMostPixels, those of them that are outputs; up to a vector behind them is read.
  void (*pixel_lanes)(std::span<const PixelPlanes> groups, Interval<std::int64_t> pixels, std::span<const PixelOutputs> outputs,
                      const TileJob& job) noexcept = nullptr;
  // Whole panels of lanes of `count` pixels, `pitch` floats apart, to a plane each.
  void (*turn)(const float* from, std::int64_t pitch, std::int64_t count, std::int64_t lanes, float* to,
               std::int64_t plane) noexcept = nullptr;

  /// Are rows of so many pixels, whose sums have so many products each, with so many outputs of a group, for `column_run`?
  bool runs_columns(std::int64_t pixels, std::int64_t products, std::int64_t outputs) const noexcept {
    constexpr std::int64_t kLeastProducts = 8;
    return widen == nullptr && outputs <= column_outputs && pixels >= column_rows && products >= kLeastProducts;
  }

  /// Are so many panels for tiles of three? One that is left goes with three others, as two pairs.
  bool runs_in_threes(std::int64_t count) const noexcept { return rows_of_three > 0 && widen == nullptr && count >= 3 && count != 4; }

  /// Are rows of so many pixels, whose sums have so many products each, with so many outputs of a group, for `short_run`: sums so short
  /// that their begin and end take long beside them? Where half of the last panel or more is no output, other tiles have a half panel, and
  /// of few pixels one panel has too few chains. CPUs on which tiles of two panels are faster (avx512_has_whole_paths) run one panel alone so.
  /// The results are the same by either.
  bool runs_short(std::int64_t pixels, std::int64_t products, std::int64_t outputs) const noexcept {
    const std::int64_t last = outputs % 16;
    return pixels > 3 && products <= short_products && outputs <= short_outputs && (last == 0 || last > 8);
  }
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const TileTable& tile_table(Isa isa) noexcept;

}  // namespace sluice::kernels::weighted
