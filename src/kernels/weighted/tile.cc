// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `panel_tile`.
#include "src/kernels/weighted/tile.h"

#include <array>
#include <utility>

#include "src/kernels/elementwise/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/tile.cc"
#include "hwy/foreach_target.h"
#include "src/kernels/weighted/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Accumulators fill the registers and leave room for the weights of one k and one broadcast input: 28 of 32 (AVX-512), 12 of 16 (AVX2),
// 20 of 32 (NEON, where g++ spills at 24). The scalar tile is small because its accumulators live in memory anyway.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kTileRows = 14;
inline constexpr int kTilePanels = 2;
inline constexpr int kFewRows = 3;
inline constexpr int kLaneRows = 8;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kTileRows = 6;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 1;
inline constexpr int kLaneRows = 4;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 5;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 1;
inline constexpr int kLaneRows = 4;
#else
inline constexpr int kTileRows = 2;
inline constexpr int kTilePanels = 1;
inline constexpr int kFewRows = 0;
inline constexpr int kLaneRows = 2;
#endif
// With a row or three the chains are too few to hide the latency of an FMA: take more panels at once.
inline constexpr int kFewRowsPanels = 4;

template <int kRows, int kPanels>
HWY_NOINLINE void panel_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const D d;
  V acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) acc[m][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    const std::int64_t offset = job.segment_offsets[s];
    const float* HWY_RESTRICT a[kRows];
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) a[m] = rows.a[m] + offset;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16) {
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

// `kRows` neighbouring outputs of a row, one vector of the panel, three taps in a kernel row: the weights stay in registers and each input
// is loaded once for all outputs that it reaches.
template <int kRows, int kSegments, int kStride>
HWY_INLINE void slide(const float* (&a)[kSegments], std::int64_t a_step, const V (&weights)[kSegments][3], const TileRows& rows,
                      const TileJob& job, std::int64_t first) {
  const D d;
  V acc[kRows][1];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) acc[m][0] = hn::Zero(d);
  HWY_UNROLL(3)
  for (int s = 0; s < kSegments; ++s) {
    HWY_UNROLL(20)
    for (int j = 0; j < (kRows - 1) * kStride + 3; ++j) {
      const V input = hn::LoadU(d, a[s] + j * a_step);
      HWY_UNROLL(3)
      for (int tap = 0; tap < 3; ++tap) {
        const int m = (j - tap) / kStride;
        if (j >= tap && (j - tap) % kStride == 0 && m < kRows) acc[m][0] = functions::fused(input, weights[s][tap], acc[m][0]);
      }
    }
    a[s] += kRows * kStride * a_step;
  }
  finish(acc, rows, job, first);
}

HWY_INLINE void set_run(const LaneRun& run, std::int64_t x, int count, TileRows& rows) {
  rows.count = count;
  for (int m = 0; m < count; ++m) {
    rows.a[m] = run.a + (x + m) * run.a_pixel;
    rows.out[m] = run.out + (x + m) * run.out_pixel;
    rows.residual[m] = run.residual + (x + m) * run.residual_pixel;
  }
}

template <int kSegments, int kStride>
HWY_NOINLINE void slide_run(const LaneRun& run, const TileJob& job) {
  constexpr int kHalf = kLaneRows / 2;
  const D d;
  for (int v = 0; v < kPanelVectors; ++v) {
    V weights[kSegments][3];
    const float* a[kSegments];
    HWY_UNROLL(3)
    for (int s = 0; s < kSegments; ++s) {
      a[s] = run.a + job.segment_offsets[s] + v * kVectorLanes;
      HWY_UNROLL(3)
      for (int tap = 0; tap < 3; ++tap) weights[s][tap] = hn::LoadU(d, job.panels + s * job.segment_floats + tap * 16 + v * kVectorLanes);
    }
    const std::int64_t first = v * kVectorLanes;
    std::int64_t x = 0;
    TileRows rows;
    for (; x + kLaneRows <= run.count; x += kLaneRows) {
      set_run(run, x, kLaneRows, rows);
      slide<kLaneRows, kSegments, kStride>(a, job.a_step, weights, rows, job, first);
    }
    for (; x + kHalf <= run.count; x += kHalf) {
      set_run(run, x, kHalf, rows);
      slide<kHalf, kSegments, kStride>(a, job.a_step, weights, rows, job, first);
    }
    for (; x < run.count; ++x) {
      set_run(run, x, 1, rows);
      slide<1, kSegments, kStride>(a, job.a_step, weights, rows, job, first);
    }
  }
}

using PanelTile = void (*)(const TileRows&, const TileJob&, int);
using LaneTile = void (*)(const TileRows&, const TileJob&);

template <int kPanels, std::size_t... kRow>
constexpr std::array<PanelTile, sizeof...(kRow)> panel_tiles(std::index_sequence<kRow...>) {
  return {panel_tile<static_cast<int>(kRow) + 1, kPanels>...};
}

template <bool kFull, std::size_t... kRow>
constexpr std::array<LaneTile, sizeof...(kRow)> lane_tiles(std::index_sequence<kRow...>) {
  return {lane_tile<static_cast<int>(kRow) + 1, kFull>...};
}

void run_panels(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kSingle = panel_tiles<1>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWide = panel_tiles<kTilePanels>(std::make_index_sequence<kTileRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  int p = 0;
  if constexpr (kFewRows > 0) {
    static constexpr auto kFew = panel_tiles<kFewRowsPanels>(std::make_index_sequence<kFewRows>());
    if (rows.count <= kFewRows) {
      for (; p + kFewRowsPanels <= job.panel_count; p += kFewRowsPanels) kFew[row](rows, job, p);
    }
  }
  for (; p + kTilePanels <= job.panel_count; p += kTilePanels) kWide[row](rows, job, p);
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, p);
}

void run_lanes(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kFull = lane_tiles<true>(std::make_index_sequence<kLaneRows>());
  static constexpr auto kPartial = lane_tiles<false>(std::make_index_sequence<kLaneRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  (job.last_lanes == 16 ? kFull : kPartial)[row](rows, job);
}

void run_lane_run(const LaneRun& run, const TileJob& job) noexcept {
  const bool stride1 = run.a_pixel == job.a_step, stride2 = run.a_pixel == 2 * job.a_step;
  if (job.depth == 3 && job.segments >= 2 && job.segments <= 3 && job.last_lanes == 16 && (stride1 || stride2)) {
    if (job.segments == 3) return stride1 ? slide_run<3, 1>(run, job) : slide_run<3, 2>(run, job);
    return stride1 ? slide_run<2, 1>(run, job) : slide_run<2, 2>(run, job);
  }
  const std::int64_t tiles = (run.count + kLaneRows - 1) / kLaneRows;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    TileRows rows;
    const std::int64_t x = run.count * tile / tiles;
    set_run(run, x, static_cast<int>(run.count * (tile + 1) / tiles - x), rows);
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
