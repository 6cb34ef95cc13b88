// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `panel_tile` (panel_tile-inl.h).
#include "src/kernels/weighted/tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/targets.h"
#include "src/kernels/weighted/tile_choice.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/tile.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/weighted/column_tile-inl.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/panel_tile-inl.h"
#include "src/kernels/weighted/pixel_tile-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/run_tile-inl.h"
#include "src/kernels/weighted/slide_tile-inl.h"
#include "src/kernels/weighted/spread_tile-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

/// How many panels, from the first on, end as `short_tile` does it: all lanes are outputs, with a bias and bounds.
int plain_panels(const TileJob& job) {
  if (!is_bounds(job.activation.function) || job.bias == nullptr) return 0;
  return job.last_lanes == 16 ? job.panel_count : job.panel_count - 1;
}

/// The first `panels` panels, one after the other, of short sums with a plain end. Eight chains are just enough for the latency of an FMA,
/// and few enough for the CPU to end one panel beside the begin of the next: it looks some hundred FMAs ahead, and as many other
/// instructions. A loop over segments around that over k costs a twentieth (g++ 12), so common numbers of segments are unrolled. kSegments:
/// 0: any. The inner loop needs all general registers: what is rarely needed is read again. Each value is stored as soon as it is known.
/// `next`: the tile's part of the block to be fetched, or null.
template <int kRows, int kSegments, bool kResidual>
HWY_NOINLINE void short_tile(const TileRows& rows, const TileJob& job, int panels, const float* next) {
  const D d;
  const V low = hn::Set(d, low_bound(job.activation)), high = hn::Set(d, high_bound(job.activation));
  const float* HWY_RESTRICT panel = job.panels;
  const std::int64_t end = panels * std::int64_t{16};
  for (std::int64_t lane = 0; lane < end; lane += 16, panel += job.panel_floats) {
    if (next != nullptr) fetch_part(job, next + lane / 16 * job.panel_floats);
    if (job.outputs_are_far) prefetch_lines<kRows, 1>(rows.out, lane);
    V acc[kRows][kPanelVectors];
    clear(acc);
    const std::int64_t segments = kSegments > 0 ? kSegments : job.segments;
    HWY_UNROLL(3)
    for (std::int64_t s = 0; s < segments; ++s) {
      const std::int64_t depth = job.depth, offset = job.segment_offsets[s] + depth;
      const float* HWY_RESTRICT held[kRows];
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) held[m] = in_general(rows.a[m]) + offset;
      const float* HWY_RESTRICT b = panel + (job.segment_weights == nullptr ? s * depth * 16 : job.segment_weights[s]);
      for (std::int64_t k = -depth; k < 0; ++k, b += 16) multiply(acc, b, 0, k, [&](int m, std::int64_t i) HWY_ATTR { return held[m][i]; });
      forget();
    }
    HWY_UNROLL(8)
    for (int v = 0; v < kPanelVectors; ++v) {
      const std::int64_t at = lane + v * kVectorLanes;
      const V bias = hn::LoadU(d, job.bias + at);
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) {
        V value = hn::Add(acc[m][v], bias);
        if (kResidual) value = hn::Add(value, hn::LoadU(d, in_general(rows.residual[m]) + at));
        hn::StoreU(functions::at_most(functions::at_least(value, low), high), d, in_general(rows.out[m]) + at);
      }
    }
  }
}

/// Panels [first, job.panel_count) of short sums that end otherwise. `next`: as above.
template <int kRows>
HWY_NOINLINE void short_tile_of_any_end(const TileRows& rows, const TileJob& job, int first, const float* next) {
  for (std::int64_t p = first; p < job.panel_count; ++p) {
    if (next != nullptr) fetch_part(job, next + p * job.panel_floats);
    if (job.outputs_are_far) prefetch_lines<kRows, 1>(rows.out, p * 16);
    V acc[kRows][kPanelVectors];
    clear(acc);
    const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
    for (std::int64_t s = 0; s < job.segments; ++s) {
      forget();
      if (job.segment_weights != nullptr) b = job.panels + p * job.panel_floats + job.segment_weights[s];
      const std::int64_t offset = job.segment_offsets[s] + job.depth;
      const float* HWY_RESTRICT held[kRows];
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) held[m] = in_general(rows.a[m]) + offset;
      for (std::int64_t k = -job.depth; k < 0; ++k, b += 16)
        multiply(acc, b, 0, k, [&](int m, std::int64_t i) HWY_ATTR { return held[m][i]; });
    }
    finish(acc, rows, job, p * 16);
  }
}

// kFull: all 16 lanes of panel `p` are outputs. Those that are none are not read either: they may be a neighbour's, or past the end.
template <int kRows, bool kFull>
HWY_NOINLINE void lane_tile(const TileRows& rows, const TileJob& job, int p) {
  const D d;
  V acc[kRows][kPanelVectors];
  clear(acc);
  const int live = kFull || p + 1 < job.panel_count ? 16 : job.last_lanes;
  const std::int64_t lane = std::int64_t{p} * 16;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    std::int64_t offset = job.segment_offsets[s] + lane;
    const float* HWY_RESTRICT b = job.panels + p * job.panel_floats + s * job.segment_floats;
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
  finish(acc, rows, job, lane);
}

// Tiles are there a second time, with and without fetching, or for panels whose lanes are all outputs, but where code is to be small.
inline constexpr bool kFetches = !kSmallCode;

using PanelTile = void (*)(const TileRows&, const TileJob&, int);
using ShortTile = void (*)(const TileRows&, const TileJob&, int, const float*);
using LaneTile = void (*)(const TileRows&, const TileJob&, int);

template <int kPanels, bool kFetch, bool kHalf = false, std::size_t... kRow>
constexpr std::array<PanelTile, sizeof...(kRow)> panel_tiles(std::index_sequence<kRow...>) {
  return {panel_tile<static_cast<int>(kRow) + 1, kPanels, kFetch, kHalf>...};
}

template <bool kFetch, std::size_t... kRow>
constexpr std::array<PanelTile, sizeof...(kRow)> tiles_of_three(std::index_sequence<kRow...>) {
  return {panel_tile<kFewRows + static_cast<int>(kRow) + 1, 3, kFetch>...};
}

template <std::size_t... kRow>
constexpr std::array<ShortTile, sizeof...(kRow)> short_tiles_of_any_end(std::index_sequence<kRow...>) {
  return {short_tile_of_any_end<static_cast<int>(kRow) + 1>...};
}

template <int kSegments, bool kResidual, std::size_t... kRow>
constexpr std::array<ShortTile, sizeof...(kRow)> short_tiles(std::index_sequence<kRow...>) {
  return {short_tile<static_cast<int>(kRow) + 1, kSegments, kResidual>...};
}

template <bool kFetch, std::size_t... kRow>
constexpr std::array<PanelTile, sizeof...(kRow)> gathering_tiles(std::index_sequence<kRow...>) {
  return {gathering_tile<kLeastWays + static_cast<int>(kRow) + 1, kTilePanels, kFetch>...};
}

/// Do the rows' lines crowd each other out of the first cache?
bool crowd_each_other(const TileRows& rows) {
  if (rows.count <= kLeastWays) return false;
  return (rows.a[1] - rows.a[0]) * static_cast<std::int64_t>(sizeof(float)) % kWayBytes == 0;
}

/// Whole groups of panels of a tile whose rows crowd each other; a full tile has `kMore` rows more than there are ways. Returns how many.
template <int kMore>
int run_gathering(const TileRows& rows, const TileJob& job) {
  int p = 0;
  if constexpr (kMore > 0) {
    static constexpr auto kPlain = gathering_tiles<false>(std::make_index_sequence<kMore>());
    static constexpr auto kFetching = gathering_tiles<kFetches>(std::make_index_sequence<kMore>());
    const auto row = static_cast<std::size_t>(rows.count - kLeastWays - 1);
    const PanelTile wide = job.next_panels == nullptr ? kPlain[row] : kFetching[row];
    for (; p + kTilePanels <= job.panel_count; p += kTilePanels) wide(rows, job, p);
  }
  return p;
}

template <bool kFull, std::size_t... kRow>
constexpr std::array<LaneTile, sizeof...(kRow)> lane_tiles(std::index_sequence<kRow...>) {
  return {lane_tile<static_cast<int>(kRow) + 1, kFull>...};
}

/// Whole groups of three panels of a tile of up to `kMore` rows more than those of four panels, unless one panel would be left: two pairs
/// are better. Returns how many panels.
template <int kMore>
int run_in_threes(const TileRows& rows, const TileJob& job) {
  int p = 0;
  if constexpr (kMore > 0) {
    static constexpr auto kEach = std::make_index_sequence<kMore>();
    static constexpr auto kPlain = tiles_of_three<false>(kEach), kFetching = tiles_of_three<kFetches>(kEach);
    const auto row = static_cast<std::size_t>(rows.count - kFewRows - 1);
    const PanelTile tile = job.next_panels == nullptr ? kPlain[row] : kFetching[row];
    for (int left = job.panel_count; left >= 3 && left != 4; left -= 3, p += 3) tile(rows, job, p);
  }
  return p;
}

/// kFewLoads: see avx512_prefers_few_loads. kHalves: half a vector takes less time than a whole one. Where it takes as long, its second load of the
/// input makes it longer: 14 rows of a vector and a half took 1.2 times as long as of two.
template <bool kFewLoads, bool kHalves>
void run_panels(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kSingle = panel_tiles<1, false>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWide = panel_tiles<kTilePanels, false>(std::make_index_sequence<kTileRows>());
  static constexpr auto kFetching = panel_tiles<kTilePanels, kFetches>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWithHalf = panel_tiles<kTilePanels, false, kHasHalfPanels>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWithHalfFetching = panel_tiles<kTilePanels, kFetches, kHasHalfPanels>(std::make_index_sequence<kTileRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  int p = 0;
  if constexpr (kFewRows > 0) {
    static constexpr auto kFew = panel_tiles<kFewRowsPanels, false>(std::make_index_sequence<kFewRows>());
    static constexpr auto kFewFetching = panel_tiles<kFewRowsPanels, kFetches>(std::make_index_sequence<kFewRows>());
    if (rows.count <= kFewRows) {
      const auto& few = job.next_panels == nullptr ? kFew : kFewFetching;
      for (; p + kFewRowsPanels <= job.panel_count; p += kFewRowsPanels) few[row](rows, job, p);
    }
  }
  if (kFewLoads && rows.count > kFewRows && rows.count <= kRowsOfThree) {
    p = run_in_threes<kRowsOfThree - kFewRows>(rows, job);
  } else if (crowd_each_other(rows)) {
    p = run_gathering<kTileRows - kLeastWays>(rows, job);
  }
  const auto& wide = job.next_panels == nullptr ? kWide : kFetching;
  const auto& with_half = job.next_panels == nullptr ? kWithHalf : kWithHalfFetching;
  for (; p + kTilePanels <= job.panel_count; p += kTilePanels) {
    const bool half = kHalves && p + kTilePanels == job.panel_count && job.last_lanes <= 8;
    (half ? with_half : wide)[row](rows, job, p);
  }
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, p);
}

void run_short([[maybe_unused]] const PixelRun& run, [[maybe_unused]] const TileJob& job) noexcept {
  if constexpr (kShortRows > 0) {
    using Tiles = std::array<ShortTile, kShortRows>;
    static constexpr auto kEachRow = std::make_index_sequence<kShortRows>();
    static constexpr Tiles kOne = short_tiles<1, false>(kEachRow), kOneWithResidual = short_tiles<1, true>(kEachRow);
    static constexpr Tiles kThree = short_tiles<3, false>(kEachRow), kAny = short_tiles<0, false>(kEachRow);
    static constexpr Tiles kOfAnyEnd = short_tiles_of_any_end(kEachRow);
    const bool one = job.segments == 1, three = job.segments == 3;
    const Tiles& tile_of = job.has_residual ? kOneWithResidual : one ? kOne : three ? kThree : kAny;
    const int plain = one || !job.has_residual ? plain_panels(job) : 0;
    for_each_tile_of<kShortRows>(run, [&](const TileRows& rows, std::int64_t, std::int64_t tile) HWY_ATTR {
      const std::int64_t part = job.next_part + tile;
      const bool fetches = job.next_panels != nullptr && part >= 0 && part < kTilesOfPrefetch;
      const float* const next = fetches ? job.next_panels + job.segments * job.depth * part / kTilesOfPrefetch * 16 : nullptr;
      const auto row = static_cast<std::size_t>(rows.count - 1);
      if (plain > 0) tile_of[row](rows, job, plain, next);
      if (plain < job.panel_count) kOfAnyEnd[row](rows, job, plain, next);
    });
  }
}

void run_columns([[maybe_unused]] const PixelRun& run, [[maybe_unused]] const TileJob& job) noexcept {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (turned::kMostOutputs > 0) {
    static constexpr auto kWhole = whole_columns(std::make_index_sequence<static_cast<std::size_t>(turned::kMostOutputs)>());
    const std::int64_t done = kWhole[static_cast<std::size_t>(job.last_lanes - 1)](run, job);
    if (done == run.count) return;
    const PixelRun rest{run.count - done,
                        run.a + done * run.a_pixel,
                        run.a_pixel,
                        run.out + done * run.out_pixel,
                        run.out_pixel,
                        run.residual + done * run.residual_pixel,
                        run.residual_pixel,
                        0,
                        0};
    for_each_tile_of<kTileRows>(rest, [&](const TileRows& rows, std::int64_t, std::int64_t) { run_panels<false, false>(rows, job); });
  }
#endif
}

void run_lanes(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kFull = lane_tiles<!kSmallCode>(std::make_index_sequence<kLaneRows>());
  static constexpr auto kPartial = lane_tiles<false>(std::make_index_sequence<kLaneRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  const int whole = job.panel_count - (job.last_lanes == 16 ? 0 : 1);
  for (int p = 0; p < whole; ++p) kFull[row](rows, job, p);
  if (whole < job.panel_count) kPartial[row](rows, job, whole);
}

bool run_spread(const TileRows& rows, const TileJob& job, const std::int32_t* sources) noexcept {
  constexpr std::int64_t kTwoVectors = HWY_TARGET == HWY_SCALAR ? 1 : 2, kMost = HWY_TARGET == HWY_SCALAR ? 1 : 4;
  constexpr int kRowsOfFour = 4;  // whose inputs fit the registers, where they fill four vectors each
  const std::int64_t vectors = vectors_to_spread(job, sources);
  if (vectors > kMost) return false;
  static constexpr auto kOne = spread_tiles<1>(std::make_index_sequence<kLaneRows>());
  static constexpr auto kTwo = spread_tiles<static_cast<int>(kTwoVectors)>(std::make_index_sequence<kLaneRows>());
  static constexpr auto kFour = spread_tiles<static_cast<int>(kMost)>(std::make_index_sequence<kRowsOfFour>());
  if (vectors <= kTwoVectors) {
    if (rows.count > 0) (vectors <= 1 ? kOne : kTwo)[static_cast<std::size_t>(rows.count - 1)](rows, job, sources);
    return true;
  }
  for (int first = 0; first < rows.count; first += kRowsOfFour) {
    TileRows some;
    some.count = std::min(kRowsOfFour, rows.count - first);
    std::copy_n(rows.a + first, some.count, some.a);
    std::copy_n(rows.out + first, some.count, some.out);
    if (job.has_residual) std::copy_n(rows.residual + first, some.count, some.residual);
    kFour[static_cast<std::size_t>(some.count - 1)](some, job, sources);
  }
  return true;
}

void run_lane_run(const PixelRun& run, const TileJob& job) noexcept {
  const std::int64_t tiles = (run.count + kLaneRows - 1) / kLaneRows;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    TileRows rows;
    const std::int64_t x = run.count * tile / tiles;
    set_run(run, x, static_cast<int>(run.count * (tile + 1) / tiles - x), rows);
    run_lanes(rows, job);
  }
}

/// Tiles of one panel load an input for each FMA. Where a 512-bit FMA takes two passes that costs nothing, and they are better up to 256
/// products (14x14, 256 to 1024: 95 % of the peak became 97); elsewhere a core can hardly load so fast.
int products_of_short_sums() {
  if (kShortRows == 0) return 0;
  return avx512_takes_two_passes() ? kMostShortProducts : 64;
}

/// Is there a kernel of groups of fewer than 16 outputs, over floats or over fewer bits?
constexpr bool kHasGroups = has_kernel(kernel_id::kConvGroupedLanes) ||
                            has_any_kernel(kernel_id::kConvGroupedLanesEightBits, kernel_id::kConvGroupedLanesFourBitsHalfScales);

/// Pixels are lanes of groups, and of transposed convolutions of few outputs.
constexpr bool kHasPixels = kHasGroups || has_kernel(kernel_id::kConvTransposed) ||
                            has_any_kernel(kernel_id::kConvTransposedBf16, kernel_id::kConvTransposedF16) ||
                            has_kernel(kernel_id::kConvTransposedFourBitsHalfScales) ||
                            has_any_kernel(kernel_id::kConvTransposedEightBits, kernel_id::kConvTransposedFourBits);

inline constexpr Isa kIsa = HWY_TARGET == HWY_AVX3   ? Isa::kAvx512
                            : HWY_TARGET == HWY_AVX2 ? Isa::kAvx2
                            : HWY_TARGET == HWY_NEON ? Isa::kNeon
                                                     : Isa::kScalar;

TileTable make_table(TileChoice choice) {
  constexpr bool kThrees = kRowsOfThree != 0;
  const bool halves = kHasHalfPanels && !choice.whole_paths;
  const auto panels = choice.few_loads && kThrees ? run_panels<kThrees, false>
                      : halves                    ? run_panels<false, kHasHalfPanels>
                                                  : run_panels<false, false>;
  return {.isa = kIsa,
          .rows = kTileRows,
          .few_rows = kFewRows,
          .rows_of_three = choice.few_loads ? kRowsOfThree : 0,
          .short_rows = kShortRows,
          .short_products = products_of_short_sums(),
          .short_outputs = choice.whole_paths ? 16 : kAnyOutputs,
          .lane_rows = kLaneRows,
          .panels = panels,
          .short_run = run_short,
          .column_run = run_columns,
          .column_outputs = turned::kMostOutputs,
          .column_rows = kVectorLanes,
          .pair = kRunPixels > 0 ? run_pair : nullptr,
          .lanes = run_lanes,
          .lane_run = run_lane_run,
          .spread = kHasGroups ? run_spread : nullptr,
          .slide = run_slide,
          .pixel_lanes = kHasPixels ? run_pixels : nullptr,
          .turn = kHasPixels ? turn_to_planes : nullptr};
}

const TileTable& table_for(TileChoice choice) noexcept {
  static const TileTable kFewLoads = make_table({.few_loads = true}), kWholePaths = make_table({.whole_paths = true}),
                         kOther = make_table({});
  return choice.few_loads ? kFewLoads : choice.whole_paths ? kWholePaths : kOther;
}
const TileTable& table() noexcept {
  static const TileChoice choice = kHasHalfPanels ? TileChoice{avx512_prefers_few_loads(), avx512_has_whole_paths()} : TileChoice{};
  return table_for(choice);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {

const TileTable& tile_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, table()) }
const TileTable& tile_table_for(Isa isa, TileChoice choice) noexcept { SLUICE_RETURN_FOR_ISA(isa, table_for(choice)) }

}  // namespace sluice::kernels::weighted
#endif
