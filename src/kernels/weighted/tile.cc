// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `panel_tile`.
#include "src/kernels/weighted/tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/tile.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/weighted/column_tile-inl.h"
#include "src/kernels/weighted/epilogue-inl.h"
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

// With few rows the chains are too few to hide the latency of an FMA: take more panels at once.
inline constexpr int kFewRowsPanels = 4;

// The fewest ways of a first cache that runs wide tiles, and the bytes of one: lines so far apart, or a multiple, share a set.
constexpr int kLeastWays = 8;
constexpr std::int64_t kWayBytes = 4096;

// Pointers to rows that general registers hold in the inner loop, beside those of weights and the count. The others are read from memory
// each k: g++ would keep them in vector registers, and take an FMA's place to fetch them (13 rows ran no faster than 14).
inline constexpr int kHeldPointers = 11;

/// Where the tile begins to fetch. Its panels are cut into as many parts as tiles fetch them.
template <int kPanels>
HWY_INLINE const float* next_of(const TileJob& job, int p) {
  constexpr std::int64_t kParts = kTilesOfPrefetch / kPanels;  // of a panel
  return job.next_panels + (p + job.next_part / kParts) * job.next_panel_floats +
         job.next_part % kParts * ((job.segments * job.depth * 16 / kParts) >> job.next_shift);
}

// Sums of half a panel, where vectors are whole ones: what a last panel of no more than 8 outputs needs. CPUs with AVX-512 take as long for
// half a vector as for a whole one, or half as long.
#if HWY_TARGET == HWY_AVX3
inline constexpr bool kHasHalfPanels = true;
using HalfD = hn::Half<D>;
HWY_INLINE hn::Vec<HalfD> half_of(V v) { return hn::LowerHalf(HalfD(), v); }
HWY_INLINE V whole_of(hn::Vec<HalfD> v) { return hn::ZeroExtendVector(D(), v); }
#else
inline constexpr bool kHasHalfPanels = false;
using HalfD = D;
HWY_INLINE V half_of(V v) { return v; }
HWY_INLINE V whole_of(V v) { return v; }
#endif
using HalfV = hn::Vec<HalfD>;

/// The same index, but the compiler does not know: what it reads is read again. FMAs that each broadcast their input from memory are faster
/// than two that share a register, by a tenth where one is of half a vector.
HWY_INLINE std::int64_t again(std::int64_t k) {
#if HWY_TARGET == HWY_AVX3
  asm volatile("" : "+r"(k));
#endif
  return k;
}

/// One k: `inputs(m, k)` of each row times the weights at `b`. kHalf: the last vector's sums are `halves`.
template <bool kHalf = false, int kRows, int kVectors, class Inputs>
HWY_INLINE void multiply(V (&acc)[kRows][kVectors], const float* HWY_RESTRICT b, std::int64_t panel_floats, std::int64_t k,
                         const Inputs& inputs, [[maybe_unused]] HalfV* halves = nullptr) {
  const D d;
  constexpr int kWhole = kHalf ? kVectors - 1 : kVectors;
  const auto at = [&](int v) { return b + v / kPanelVectors * panel_floats + v % kPanelVectors * kVectorLanes; };
  V weights[kWhole];
  HWY_UNROLL(16)
  for (int v = 0; v < kWhole; ++v) weights[v] = hn::LoadU(d, at(v));
  [[maybe_unused]] const HalfV half_weights = hn::LoadU(HalfD(), at(kVectors - 1));
  [[maybe_unused]] const std::int64_t k_again = kHalf ? again(k) : k;
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    const V input = hn::Set(d, inputs(m, k));
    HWY_UNROLL(16)
    for (int v = 0; v < kWhole; ++v) acc[m][v] = functions::fused(input, weights[v], acc[m][v]);
    if constexpr (kHalf) halves[m] = functions::fused(hn::Set(HalfD(), inputs(m, k_again)), half_weights, halves[m]);
  }
}

/// kFetch: prefetches its share of the next block, one cache line every few k. kHalf: no more than half of the last panel's lanes are
/// outputs.
template <int kRows, int kPanels, bool kFetch = false, bool kHalf = false>
HWY_NOINLINE void panel_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  // Each pointer is read twice for a half vector: g++ wants one register more.
  constexpr int kHeld = std::min(kRows, kHalf ? kHeldPointers - 1 : kHeldPointers);
  constexpr int kNextFloats = kPanels * 16 / kTilesOfPrefetch;
  // A line at a time; but g++ finds no registers for several k of a tile that reads pointers from memory, nor for NEON's: these fetch each
  // line more than once.
  constexpr int kFetchStep = kRows > kHeld || kVectorLanes < 16 ? 1 : std::max(1, 16 / kNextFloats);
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kRows][kVectors];
  begin(acc, job, p);
  HalfV halves[kRows];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) halves[m] = half_of(acc[m][kVectors - 1]);
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  const float* next = kFetch ? next_of<kPanels>(job, p) : nullptr;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    const std::int64_t offset = job.segment_offsets[s];
    if (job.segment_weights != nullptr) b = job.panels + p * panel_floats + job.segment_weights[s];
    const float* HWY_RESTRICT held[kHeld];
    const float* volatile others[kRows - kHeld + 1];
    HWY_UNROLL(16)
    for (int m = 0; m < kHeld; ++m) held[m] = in_general(rows.a[m]) + offset + job.depth;
    HWY_UNROLL(16)
    for (int m = kHeld; m < kRows; ++m) others[m - kHeld] = rows.a[m] + offset + job.depth;
    const auto inputs = [&](int m, std::int64_t i) HWY_ATTR { return m < kHeld ? held[m][i] : others[m - kHeld][i]; };
    const auto multiply_at = [&](std::int64_t k) HWY_ATTR {
      multiply<kHalf>(acc, b, panel_floats, k, inputs, halves);
      b += 16;
    };
    std::int64_t k = -job.depth;
    if constexpr (kFetch) {
      for (; k + kFetchStep <= 0; k += kFetchStep, next += kFetchStep * kNextFloats) {
        __builtin_prefetch(next, 0, 2);
        HWY_UNROLL(4)
        for (std::int64_t i = 0; i < kFetchStep; ++i) multiply_at(k + i);
      }
    }
    for (; k < 0; ++k) multiply_at(k);
  }
  if constexpr (kHalf) {
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) acc[m][kVectors - 1] = whole_of(halves[m]);
  }
  end(acc, rows, job, p);
}

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

/// As panel_tile, where the rows' lines share a set of the first cache, which has fewer ways than the tile has rows: each line would be
/// gone before its second input is read. So each is read once, into a line of the stack, 16 k ahead:
///
///     while line i of the rows is in use, k by k,        row 0: |i    ] -> lines[i % 2][0]
///     line i + 1 of row k comes in beside k              row 1: |i    ] -> lines[i % 2][1]   ...
template <int kRows, int kPanels, bool kFetch>
HWY_NOINLINE void gathering_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  constexpr int kNextFloats = kPanels * 16 / kTilesOfPrefetch;
  const D d;
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kRows][kVectors];
  begin(acc, job, p);
  alignas(64) float lines[2][kRows][16];
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  const float* next = kFetch ? next_of<kPanels>(job, p) : nullptr;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    const std::int64_t offset = job.segment_offsets[s], whole = job.depth / 16;
    if (job.segment_weights != nullptr) b = job.panels + p * panel_floats + job.segment_weights[s];
    const auto gather = [&](std::int64_t line, int m) HWY_ATTR {
      for (int v = 0; v < 16; v += kVectorLanes) {
        hn::Store(hn::LoadU(d, rows.a[m] + offset + line * 16 + v), d, lines[line % 2][m] + v);
      }
    };
    for (int m = 0; m < kRows && whole > 0; ++m) gather(0, m);
    for (std::int64_t line = 0; line < whole; ++line) {
      const float(&now)[kRows][16] = lines[line % 2];
      const bool more = line + 1 < whole;
      for (int k = 0; k < 16; ++k, b += 16) {
        if (kFetch) {
          __builtin_prefetch(next, 0, 2);
          next += kNextFloats;
        }
        if (more && k < kRows) gather(line + 1, k);
        multiply(acc, b, panel_floats, k, [&](int m, std::int64_t i) HWY_ATTR { return now[m][i]; });
      }
    }
    for (std::int64_t k = whole * 16; k < job.depth; ++k, b += 16) {
      multiply(acc, b, panel_floats, k, [&](int m, std::int64_t i) HWY_ATTR { return rows.a[m][offset + i]; });
    }
  }
  end(acc, rows, job, p);
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
  if (crowd_each_other(rows)) p = run_gathering<kTileRows - kLeastWays>(rows, job);
  const auto& wide = job.next_panels == nullptr ? kWide : kFetching;
  const auto& with_half = job.next_panels == nullptr ? kWithHalf : kWithHalfFetching;
  for (; p + kTilePanels <= job.panel_count; p += kTilePanels) {
    const bool half = kHasHalfPanels && p + kTilePanels == job.panel_count && job.last_lanes <= 8;
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
    for_each_tile_of<kTileRows>(rest, [&](const TileRows& rows, std::int64_t, std::int64_t) { run_panels(rows, job); });
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

inline constexpr Isa kIsa = HWY_TARGET == HWY_AVX3   ? Isa::kAvx512
                            : HWY_TARGET == HWY_AVX2 ? Isa::kAvx2
                            : HWY_TARGET == HWY_NEON ? Isa::kNeon
                                                     : Isa::kScalar;

const TileTable& table() noexcept {
  static const TileTable kTable{.isa = kIsa,
                                .rows = kTileRows,
                                .few_rows = kFewRows,
                                .short_rows = kShortRows,
                                .short_products = products_of_short_sums(),
                                .lane_rows = kLaneRows,
                                .panels = run_panels,
                                .short_run = run_short,
                                .column_run = run_columns,
                                .column_outputs = turned::kMostOutputs,
                                .column_rows = kVectorLanes,
                                .pair = kRunPixels > 0 ? run_pair : nullptr,
                                .lanes = run_lanes,
                                .lane_run = run_lane_run,
                                .spread = kHasGroups ? run_spread : nullptr,
                                .slide = run_slide,
                                .pixel_lanes = kHasGroups ? run_pixels : nullptr};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {

const TileTable& tile_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, table()) }

}  // namespace sluice::kernels::weighted
#endif
