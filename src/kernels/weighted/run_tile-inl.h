// Sums of one panel for one or two runs of pixels. Inputs of a run lie evenly, so that a few addresses reach all of its pixels, and none is
// read from memory: a panel alone has one FMA for each of its loads, and any other instruction takes the place of one. The sums are those
// of `panels` tiles.
//
//     run 0:  p0 + {0, 1, 2} steps   p0 + 3 steps + {0, 1, 2} steps   p0 + 6 steps + {0, 1} steps
//     run 1:  p1 + ...
#if defined(SLUICE_WEIGHTED_RUN_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_RUN_TILE_INL_H_
#undef SLUICE_WEIGHTED_RUN_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_RUN_TILE_INL_H_
#endif

#include <array>
#include <utility>

#include "src/core/build_list.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Two runs of accumulators, the weights of one k: AVX2 and NEON have no registers for so many. Small code does without.
inline constexpr int kRunPixels = HWY_TARGET == HWY_AVX3 && !kSmallCode ? kMostRunPixels : 0;
/// Pixels that one address reaches, by itself and with one or two steps.
inline constexpr int kReach = 3;

/// The addresses of all runs, and the sums of k behind k.
template <int kPixels, int kRuns>
struct RunSums {
  static constexpr int kBases = (kPixels + kReach - 1) / kReach;

  V acc[kRuns * kPixels][1];
  const float* HWY_RESTRICT base[kRuns][kBases];
  std::int64_t step;

  HWY_INLINE void multiply(const float* HWY_RESTRICT b, int k) {
    const V weights = hn::LoadU(D(), b + k * 16);
    HWY_UNROLL(2)
    for (int r = 0; r < kRuns; ++r) {
      HWY_UNROLL(8)
      for (int m = 0; m < kPixels; ++m) {
        V& sum = acc[r * kPixels + m][0];
        sum = functions::fused(hn::Set(D(), base[r][m / kReach][m % kReach * step + k]), weights, sum);
      }
    }
  }
  /// The same addresses, of which the compiler knows nothing: else it would hold one for each pixel.
  HWY_INLINE void go_on(std::int64_t k) {
    HWY_UNROLL(2)
    for (int r = 0; r < kRuns; ++r) {
      HWY_UNROLL(3)
      for (int i = 0; i < kBases; ++i) base[r][i] = in_general(base[r][i] + k);
    }
  }
};

/// kFetch: also the line of the next panel beside each of this one's.
template <int kPixels, int kRuns, bool kFetch>
HWY_NOINLINE void run_tile(const RunPair& runs, const TileJob& job) {
  constexpr int kUnrolled = 4;
  using Sums = RunSums<kPixels, kRuns>;
  Sums sums;
  clear(sums.acc);
  sums.step = runs.a_pixel;
  const float* HWY_RESTRICT b = job.panels;
  [[maybe_unused]] const std::int64_t next = kFetch ? job.next_panels - job.panels : 0;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    HWY_UNROLL(2)
    for (int r = 0; r < kRuns; ++r) {
      HWY_UNROLL(3)
      for (int i = 0; i < Sums::kBases; ++i) sums.base[r][i] = runs.a[r] + job.segment_offsets[s] + i * kReach * sums.step;
    }
    sums.go_on(0);
    std::int64_t left = job.depth;
    for (; left >= kUnrolled; left -= kUnrolled, b += kUnrolled * 16) {
      HWY_UNROLL(4)
      for (int k = 0; k < kUnrolled; ++k) {
        if constexpr (kFetch) __builtin_prefetch(b + next + k * 16, 0, 2);
        sums.multiply(b, k);
      }
      sums.go_on(kUnrolled);
    }
    for (; left > 0; --left, b += 16) {
      sums.multiply(b, 0);
      sums.go_on(1);
    }
  }
  TileRows rows;
  rows.count = kRuns * kPixels;
  for (int r = 0; r < kRuns; ++r)
    for (int m = 0; m < kPixels; ++m) {
      rows.out[r * kPixels + m] = runs.out[r] + m * runs.out_pixel;
      rows.residual[r * kPixels + m] = runs.residual[r] + m * runs.residual_pixel;
    }
  finish(sums.acc, rows, job, 0);
}

using RunTile = void (*)(const RunPair&, const TileJob&);

template <int kRuns, bool kFetch, std::size_t... kPixel>
constexpr std::array<RunTile, sizeof...(kPixel)> run_tiles(std::index_sequence<kPixel...>) {
  return {run_tile<static_cast<int>(kPixel) + 1, kRuns, kFetch>...};
}

inline void run_pair([[maybe_unused]] const RunPair& runs, [[maybe_unused]] const TileJob& job) noexcept {
  if constexpr (kRunPixels > 0) {
    using Tiles = std::array<RunTile, static_cast<std::size_t>(kRunPixels)>;
    static constexpr auto kEach = std::make_index_sequence<static_cast<std::size_t>(kRunPixels)>();
    static constexpr Tiles kOne = run_tiles<1, false>(kEach), kTwo = run_tiles<2, false>(kEach);
    static constexpr Tiles kOneFetching = run_tiles<1, true>(kEach), kTwoFetching = run_tiles<2, true>(kEach);
    const Tiles& tiles = job.next_panels == nullptr ? (runs.count == 1 ? kOne : kTwo) : runs.count == 1 ? kOneFetching : kTwoFetching;
    tiles[static_cast<std::size_t>(runs.pixels - 1)](runs, job);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_RUN_TILE_INL_H_
