// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `panel_tile`.
#include "src/kernels/weighted/tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/tile.cc"
#include "hwy/foreach_target.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// With a row or three the chains are too few to hide the latency of an FMA: take more panels at once.
inline constexpr int kFewRowsPanels = 4;

/// Residuals on their way to the first cache while the sums are formed. (Not the outputs too: short sums only wait for that.)
template <int kRows, int kPanels>
HWY_INLINE void prefetch_residuals(const TileRows& rows, const TileJob& job, std::int64_t first) {
  if (!job.has_residual) return;
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(4)
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(rows.residual[m] + first + p * 16, 0, 3);
  }
}

/// kFetch: fetches its part of the next block, a few floats each k.
template <int kRows, int kPanels, bool kFetch = false>
HWY_NOINLINE void panel_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  constexpr int kNextFloats = kPanels * 16 / kTilesOfPrefetch;
  const D d;
  prefetch_residuals<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) acc[m][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  const float* next = kFetch ? job.next_panels + p * panel_floats + job.next_part * (panel_floats / kTilesOfPrefetch * kPanels) : nullptr;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    const std::int64_t offset = job.segment_offsets[s];
    const float* HWY_RESTRICT a[kRows];
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) a[m] = rows.a[m] + offset;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16) {
      if constexpr (kFetch) {
        __builtin_prefetch(next, 0, 2);
        next += kNextFloats;
      }
      V weights[kVectors];
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) weights[v] = hn::LoadU(d, b + v / kPanelVectors * panel_floats + v % kPanelVectors * kVectorLanes);
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) {
        const V input = hn::Set(d, a[m][k]);
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) acc[m][v] = functions::fused(input, weights[v], acc[m][v]);
      }
    }
  }
  finish(acc, rows, job, std::int64_t{p} * 16);
}

// kFull: all 16 lanes are outputs. Those that are none are not read either: they may be a neighbour's, or past the end.
template <int kRows, bool kFull>
HWY_NOINLINE void lane_tile(const TileRows& rows, const TileJob& job) {
  const D d;
  V acc[kRows][kPanelVectors];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kPanelVectors; ++v) acc[m][v] = hn::Zero(d);
  }
  const int live = kFull ? 16 : job.last_lanes;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    std::int64_t offset = job.segment_offsets[s];
    const float* HWY_RESTRICT b = job.panels + s * job.segment_floats;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16, offset += job.a_step) {
      HWY_UNROLL(16)
      for (int v = 0; v < kPanelVectors; ++v) {
        const V weights = hn::LoadU(d, b + v * kVectorLanes);
        HWY_UNROLL(16)
        for (int m = 0; m < kRows; ++m) {
          const V input = load_lanes(rows.a[m] + offset + v * kVectorLanes, live - v * kVectorLanes);
          acc[m][v] = functions::fused(input, weights, acc[m][v]);
        }
      }
    }
  }
  finish(acc, rows, job, 0);
}

HWY_INLINE void set_run(const LaneRun& run, std::int64_t x, int count, TileRows& rows) {
  rows.count = count;
  for (int m = 0; m < count; ++m) {
    rows.a[m] = run.a + (x + m) * run.a_pixel;
    rows.out[m] = run.out + (x + m) * run.out_pixel;
    rows.residual[m] = run.residual + (x + m) * run.residual_pixel;
  }
}

// `kRows` neighbouring outputs of a row, three taps in a kernel row: each input is loaded once for all outputs that it reaches.
template <int kRows, int kSegments, int kStride>
HWY_NOINLINE void slide(const V (&weights)[kSegments][3], std::int64_t first_lane, const TileRows& rows, const TileJob& job,
                        bool skip_first, bool skip_last) {
  constexpr int kInputs = (kRows - 1) * kStride + 3;
  const D d;
  V acc[kRows][1];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) acc[m][0] = hn::Zero(d);
  HWY_UNROLL(3)
  for (int s = 0; s < kSegments; ++s) {
    const float* a = rows.a[0] + job.segment_offsets[s] + first_lane;
    HWY_UNROLL(20)
    for (int j = 0; j < kInputs; ++j) {
      if (j == 0 && skip_first) continue;
      if (j == kInputs - 1 && skip_last) continue;
      const V input = hn::LoadU(d, a + j * job.a_step);
      HWY_UNROLL(3)
      for (int tap = 0; tap < 3; ++tap) {
        const int m = (j - tap) / kStride;
        if (j >= tap && (j - tap) % kStride == 0 && m < kRows) acc[m][0] = functions::fused(input, weights[s][tap], acc[m][0]);
      }
    }
  }
  finish(acc, rows, job, first_lane);
}

template <int kSegments, int kStride, std::size_t... kRow>
constexpr auto slides(std::index_sequence<kRow...>) {
  return std::array{&slide<static_cast<int>(kRow) + 1, kSegments, kStride>...};
}

template <int kSegments, int kStride>
HWY_NOINLINE void slide_run(const LaneRun& run, const TileJob& job) {
  static constexpr auto kSlides = slides<kSegments, kStride>(std::make_index_sequence<kLaneRows>());
  const D d;
  const std::int64_t tiles = (run.count + kLaneRows - 1) / kLaneRows;
  for (int v = 0; v < kPanelVectors; ++v) {
    // Not a struct: its constructor would not be compiled for this target.
    V weights[kSegments][3];
    const std::int64_t first_lane = std::int64_t{v} * kVectorLanes;
    for (int s = 0; s < kSegments; ++s)
      for (int tap = 0; tap < 3; ++tap) weights[s][tap] = hn::LoadU(d, job.panels + s * job.segment_floats + tap * 16 + first_lane);
    std::int64_t x = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t count = (run.count - x + tiles - tile - 1) / (tiles - tile);
      TileRows rows;
      set_run(run, x, static_cast<int>(count), rows);
      kSlides[static_cast<std::size_t>(count - 1)](weights, first_lane, rows, job, run.skip_first && x == 0,
                                                   run.skip_last && tile + 1 == tiles);
      x += count;
    }
  }
}

using PanelTile = void (*)(const TileRows&, const TileJob&, int);
using LaneTile = void (*)(const TileRows&, const TileJob&);

template <int kPanels, bool kFetch, std::size_t... kRow>
constexpr std::array<PanelTile, sizeof...(kRow)> panel_tiles(std::index_sequence<kRow...>) {
  return {panel_tile<static_cast<int>(kRow) + 1, kPanels, kFetch>...};
}

template <bool kFull, std::size_t... kRow>
constexpr std::array<LaneTile, sizeof...(kRow)> lane_tiles(std::index_sequence<kRow...>) {
  return {lane_tile<static_cast<int>(kRow) + 1, kFull>...};
}

void run_panels(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kSingle = panel_tiles<1, false>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWide = panel_tiles<kTilePanels, false>(std::make_index_sequence<kTileRows>());
  static constexpr auto kFetching = panel_tiles<kTilePanels, true>(std::make_index_sequence<kTileRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  int p = 0;
  if constexpr (kFewRows > 0) {
    static constexpr auto kFew = panel_tiles<kFewRowsPanels, false>(std::make_index_sequence<kFewRows>());
    if (rows.count <= kFewRows) {
      for (; p + kFewRowsPanels <= job.panel_count; p += kFewRowsPanels) kFew[row](rows, job, p);
    }
  }
  const auto& wide = job.next_panels == nullptr ? kWide : kFetching;
  for (; p + kTilePanels <= job.panel_count; p += kTilePanels) wide[row](rows, job, p);
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, p);
}

void run_lanes(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kFull = lane_tiles<true>(std::make_index_sequence<kLaneRows>());
  static constexpr auto kPartial = lane_tiles<false>(std::make_index_sequence<kLaneRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  (job.last_lanes == 16 ? kFull : kPartial)[row](rows, job);
}

// A pixel alone, with taps [first, first + count) of each kernel row.
void run_edge(const LaneRun& run, TileJob job, std::int64_t x, std::int64_t first, std::int64_t count) noexcept {
  TileRows rows;
  set_run(run, x, 1, rows);
  rows.a[0] += first * job.a_step;
  job.panels += first * 16;
  job.depth = count;
  run_lanes(rows, job);
}

void run_lane_run(const LaneRun& run, const TileJob& job) noexcept {
#if HWY_TARGET != HWY_SCALAR
  const bool stride1 = run.a_pixel == job.a_step, stride2 = run.a_pixel == 2 * job.a_step;
  if (job.depth == 3 && job.segments >= 2 && job.segments <= 3 && job.last_lanes == 16 && (stride1 || stride2)) {
    if (job.segments == 3) return stride1 ? slide_run<3, 1>(run, job) : slide_run<3, 2>(run, job);
    return stride1 ? slide_run<2, 1>(run, job) : slide_run<2, 2>(run, job);
  }
#endif
  const std::int64_t begin = run.skip_first ? 1 : 0;
  const std::int64_t end = std::max(begin, run.count - (run.skip_last ? 1 : 0));
  const bool only = run.count == 1 && run.skip_first && run.skip_last;
  if (run.skip_first) run_edge(run, job, 0, 1, job.depth - (only ? 2 : 1));
  if (run.skip_last && !only) run_edge(run, job, run.count - 1, 0, job.depth - 1);
  const std::int64_t tiles = (end - begin + kLaneRows - 1) / kLaneRows;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    TileRows rows;
    const std::int64_t x = begin + (end - begin) * tile / tiles;
    set_run(run, x, static_cast<int>(begin + (end - begin) * (tile + 1) / tiles - x), rows);
    run_lanes(rows, job);
  }
}

const TileTable& table() noexcept {
  static constexpr TileTable kTable{
      .rows = kTileRows, .lane_rows = kLaneRows, .panels = run_panels, .lanes = run_lanes, .lane_run = run_lane_run};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels::weighted {

const TileTable& tile_table(Isa isa) noexcept {
  switch (isa) {
#if HWY_TARGETS & HWY_AVX3
    case Isa::kAvx512:
      return N_AVX3::table();
#endif
#if HWY_TARGETS & HWY_AVX2
    case Isa::kAvx2:
      return N_AVX2::table();
#endif
#if HWY_TARGETS & HWY_NEON
    case Isa::kNeon:
      return N_NEON::table();
#endif
    default:
#if HWY_TARGETS & HWY_SCALAR
      return N_SCALAR::table();
#else
      return HWY_STATIC_DISPATCH(table)();
#endif
  }
}

}  // namespace sluice::kernels::weighted
#endif
