// Sums of a few outputs over planes of pixels: pixels are the lanes, each product's weight is one for all of them. For groups of so few
// outputs that a panel's lanes would be empty, or each of them would want an input of its own. The sums are those of `lanes` tiles.
#if defined(SLUICE_WEIGHTED_PIXEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_PIXEL_TILE_INL_H_
#undef SLUICE_WEIGHTED_PIXEL_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_PIXEL_TILE_INL_H_
#endif

#include <algorithm>

#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

/// A vector of pixels of each output, turned to [pixel][16].
template <int kOutputs>
HWY_INLINE void put_sums(const V (&acc)[kOutputs], float* sums) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kOutputs == 4) {
    const hn::FixedTag<float, 4> of_pixel;
    HWY_ALIGN float turned[kVectorLanes * 4];
    hn::StoreInterleaved4(acc[0], acc[1], acc[2], acc[3], D(), turned);
    HWY_UNROLL(16)
    for (int i = 0; i < kVectorLanes; ++i) hn::StoreU(hn::Load(of_pixel, turned + i * 4), of_pixel, sums + i * 16);
    return;
  }
#endif
  HWY_ALIGN float line[kVectorLanes];
  for (int o = 0; o < kOutputs; ++o) {
    hn::Store(acc[o], D(), line);
    for (int i = 0; i < kVectorLanes; ++i) sums[i * 16 + o] = line[i];
  }
}

/// kVectors vectors of pixels from `pixel` on, kOutputs lanes of the panel from `lane` on. Sums go to [pixel][16].
template <int kVectors, int kOutputs>
HWY_INLINE void sum_pixels(const PixelPlanes& planes, std::int64_t pixel, int lane, float* sums) {
  V acc[kVectors][kOutputs];
  for (auto& of_vector : acc)
    for (V& sum : of_vector) sum = hn::Zero(D());
  const float* weight = planes.weights + lane;
  for (std::int64_t tap = 0; tap < planes.taps; ++tap) {
    const float* a = planes.first + planes.tap_offsets[tap] + pixel;
    for (std::int64_t k = 0; k < planes.depth; ++k, a += planes.plane_floats, weight += 16) {
      V in[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) in[v] = hn::LoadU(D(), a + v * kVectorLanes);
      HWY_UNROLL(4)
      for (int o = 0; o < kOutputs; ++o) {
        const V w = hn::Set(D(), weight[o]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) acc[v][o] = functions::fused(in[v], w, acc[v][o]);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) put_sums<kOutputs>(acc[v], sums + v * kVectorLanes * 16 + lane);
}

/// Chains at once that hide the latency of an FMA, as far as there are registers for them.
inline constexpr int kPixelChains = HWY_TARGET == HWY_AVX3 ? 16 : 8;
inline constexpr std::int64_t kMostPixels = kMostPixelTiles * std::int64_t{kMaxTileRows};

/// kOutputs lanes of the panel from `lane` on, of `count` pixels: many vectors at once, then half as many, down to one.
template <int kOutputs, int kVectors = std::min(kPixelChains / kOutputs, static_cast<int>(kMostPixels / kVectorLanes))>
HWY_INLINE void sum_outputs(const PixelPlanes& planes, std::int64_t pixel, std::int64_t count, int lane, float* sums) {
  std::int64_t p = 0;
  for (; count - p > (kVectors - 1) * kVectorLanes; p += kVectors * kVectorLanes)
    sum_pixels<kVectors, kOutputs>(planes, pixel + p, lane, sums + p * 16);
  if constexpr (kVectors > 1) {
    if (p < count) sum_outputs<kOutputs, kVectors / 2>(planes, pixel + p, count - p, lane, sums + p * 16);
  }
}

/// Tiles of pixels that lie behind each other, all but the last of them full, from all groups that meet in the panel.
void run_pixels(std::span<const PixelPlanes> groups, std::int64_t pixel, std::span<const TileRows> tiles, const TileJob& job) noexcept {
  HWY_ALIGN float sums[kMostPixels * 16];
  std::int64_t count = 0;
  for (const TileRows& rows : tiles) count += rows.count;
  std::fill_n(sums, count * 16, 0.0f);
  for (const PixelPlanes& planes : groups) {
    int lane = planes.first_lane;
    for (; lane + 4 <= planes.end_lane; lane += 4) sum_outputs<4>(planes, pixel, count, lane, sums);
    if (lane + 3 == planes.end_lane) {
      sum_outputs<3>(planes, pixel, count, lane, sums);
      continue;
    }
    if (lane + 2 <= planes.end_lane) {
      sum_outputs<2>(planes, pixel, count, lane, sums);
      lane += 2;
    }
    if (lane < planes.end_lane) sum_outputs<1>(planes, pixel, count, lane, sums);
  }
  const float* from = sums;
  for (const TileRows& rows : tiles) {
    V values[kMaxTileRows * kPanelVectors];
    for (int i = 0; i < rows.count * kPanelVectors; ++i, from += kVectorLanes) values[i] = hn::Load(D(), from);
    finish_values(values, kPanelVectors, job.last_lanes, rows, job, 0);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_PIXEL_TILE_INL_H_
