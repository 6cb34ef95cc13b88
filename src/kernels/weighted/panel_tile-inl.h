// The tiles of panels: start reading at `panel_tile`. Included once for each target.
#if defined(SLUICE_WEIGHTED_PANEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_PANEL_TILE_INL_H_
#undef SLUICE_WEIGHTED_PANEL_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_PANEL_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "sluice/core/units.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/tile.h"
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

/// The lines of the next block that a tile fetches, a few before each `kFetchStep` products: the parts of tiles follow each other until the
/// panels are whole. A line more often or twice would take the place of loads that FMAs wait for. What is held lies in memory: g++ has no
/// registers for it inside a tile.
inline constexpr std::int64_t kFetchStep = 4;

template <int kPanels>
class Fetch {
 public:
  Fetch(const TileJob& job, int p) {
    const std::int64_t of_panel = std::max<std::int64_t>(1, job.segments * job.depth >> job.next_shift);
    lines_ = ceil_div(kFetchStep * kPanels, job.next_parts);
    const std::int64_t first = job.next_part * lines_ * job.segments * (job.depth / kFetchStep);
    if (first >= kPanels * of_panel) lines_ = 0;
    const bool one_run = job.next_panel_floats == of_panel * 16;
    const std::int64_t panel = one_run ? 0 : first / of_panel;
    next_ = job.next_panels + (p + panel) * job.next_panel_floats + (first - panel * of_panel) * 16;
  }
  HWY_INLINE void some() {
    const float* line = next_;
    for (std::int64_t i = lines_; i > 0; --i, line += 16) __builtin_prefetch(line, 0, 2);
    next_ = line;
  }

 private:
  const float* volatile next_;
  volatile std::int64_t lines_;
};

struct NoFetch {
  NoFetch(const TileJob&, int) {}
};

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
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kRows][kVectors];
  begin(acc, job, p);
  HalfV halves[kRows];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) halves[m] = half_of(acc[m][kVectors - 1]);
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  [[maybe_unused]] std::conditional_t<kFetch, Fetch<kPanels>, NoFetch> fetch(job, p);
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
      // Sums, weights and an input that take more than all registers: unrolled, g++ keeps some of them in memory.
      constexpr bool kFull = (kRows + 1) * kVectors + 1 > 32;
      while (k + kFetchStep <= 0) {
        fetch.some();
        HWY_UNROLL(1)
        for (const std::int64_t end = (kFull ? again(k) : k) + kFetchStep; k < end; ++k) multiply_at(k);
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

/// As panel_tile, where the rows' lines share a set of the first cache, which has fewer ways than the tile has rows: each line would be
/// gone before its second input is read. So each is read once, into a line of the stack, 16 k ahead:
///
///     while line i of the rows is in use, k by k,        row 0: |i    ] -> lines[i % 2][0]
///     line i + 1 of row k comes in beside k              row 1: |i    ] -> lines[i % 2][1]   ...
template <int kRows, int kPanels, bool kFetch>
HWY_NOINLINE void gathering_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const D d;
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kRows][kVectors];
  begin(acc, job, p);
  alignas(64) float lines[2][kRows][16];
  const float* HWY_RESTRICT b = job.panels + p * job.panel_floats;
  const std::int64_t panel_floats = job.panel_floats;
  [[maybe_unused]] std::conditional_t<kFetch, Fetch<kPanels>, NoFetch> fetch(job, p);
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
        if constexpr (kFetch) {
          if (k % kFetchStep == 0) fetch.some();
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

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_PANEL_TILE_INL_H_
