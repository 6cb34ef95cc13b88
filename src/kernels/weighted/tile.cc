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
  const int lanes = kFull ? 16 : job.last_lanes;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    std::int64_t offset = job.segment_offsets[s];
    const float* HWY_RESTRICT b = job.panels + s * job.segment_floats;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16, offset += job.a_step) {
      HWY_UNROLL(16)
      for (int v = 0; v < kPanelVectors; ++v) {
        const V weights = hn::LoadU(d, b + v * kVectorLanes);
        HWY_UNROLL(16)
        for (int m = 0; m < kRows; ++m) {
          const V input = load_lanes(rows.a[m] + offset + v * kVectorLanes, lanes - v * kVectorLanes);
          acc[m][v] = functions::fused(input, weights, acc[m][v]);
        }
      }
    }
  }
  finish(acc, rows, job, 0);
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

const TileTable& table() noexcept {
  static constexpr TileTable kTable{.rows = kTileRows, .lane_rows = kLaneRows, .panels = run_panels, .lanes = run_lanes};
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
