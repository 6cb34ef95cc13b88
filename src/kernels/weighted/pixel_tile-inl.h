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
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t kMostPixelVectors = kMostPixels / kVectorLanes;
/// The sums of a run of pixels, lane after lane of the panel. A block of pixels that begins within the run may be read whole.
inline constexpr std::int64_t kPixelLine = kMostPixels + 16;
using PixelSums = float[16][kPixelLine];

/// kVectors vectors of pixels from `pixel` on, kOutputs lanes of the panel from `lane` on. Sums go to vectors `first` and on.
template <int kVectors, int kOutputs>
HWY_INLINE void sum_pixels(const PixelPlanes& planes, std::int64_t pixel, int lane, PixelSums& sums, std::int64_t first) {
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
  for (int o = 0; o < kOutputs; ++o)
    for (int v = 0; v < kVectors; ++v) hn::Store(acc[v][o], D(), sums[lane + o] + (first + v) * kVectorLanes);
}

/// Chains at once that hide the latency of an FMA, as far as there are registers for them.
inline constexpr int kPixelChains = HWY_TARGET == HWY_AVX3 ? 16 : 8;
inline constexpr bool kThreeAreFour = HWY_TARGET == HWY_AVX3;

/// kOutputs lanes of the panel from `lane` on, of `count` vectors of pixels: many at once, then what is left.
template <int kOutputs, int kVectors = std::min(kPixelChains / kOutputs, static_cast<int>(kMostPixelVectors))>
HWY_INLINE void sum_outputs(const PixelPlanes& planes, std::int64_t pixel, std::int64_t count, int lane, PixelSums& sums,
                            std::int64_t first = 0) {
  for (; count >= kVectors; count -= kVectors, first += kVectors)
    sum_pixels<kVectors, kOutputs>(planes, pixel + first * kVectorLanes, lane, sums, first);
  if constexpr (kVectors > 1) {
    if (count > 0) sum_outputs<kOutputs, kSmallCode ? kVectors / 2 : kVectors - 1>(planes, pixel, count, lane, sums, first);
  }
}

/// The epilogue of one lane, and its values to where they belong.
HWY_INLINE void finish_lane(float* line, std::int64_t vectors, int lane, std::span<const PixelOutputs> outputs, const TileJob& job) {
  V values[kMostPixelVectors];
  const V bias = hn::Set(D(), job.bias == nullptr ? -0.0f : job.bias[lane]);  // -0 changes no value
  for (std::int64_t v = 0; v < vectors; ++v) values[v] = hn::Add(hn::Load(D(), line + v * kVectorLanes), bias);
  const auto put_in_line = [&]() HWY_ATTR {
    for (std::int64_t v = 0; v < vectors; ++v) hn::Store(values[v], D(), line + v * kVectorLanes);
  };
  if (job.has_residual) {
    put_in_line();
    for (const PixelOutputs& part : outputs)
      for (std::int64_t i = 0; i < part.count; ++i) line[part.first + i] += part.residual[i * part.residual_pixel + lane];
    for (std::int64_t v = 0; v < vectors; ++v) values[v] = hn::Load(D(), line + v * kVectorLanes);
  }
  if (job.activation.function != Function::kNone) activate(values, static_cast<int>(vectors), job.activation);
  put_in_line();
  for (const PixelOutputs& part : outputs) {
    float* const out = part.out + lane;
    const float* const from = line + part.first;
    const auto store = [&](std::int64_t step) {
      for (std::int64_t i = 0; i < part.count; ++i) out[i * step] = from[i];
    };
    part.out_pixel == 1 ? store(1) : part.out_pixel == 2 ? store(2) : store(part.out_pixel);
  }
}

// A value at a time is slow to store: where all lanes of the panel are outputs, lanes are turned back to be each pixel's vectors.
#if HWY_TARGET != HWY_SCALAR
/// Pixels that are turned at once: a block of 16 bytes, what Highway interleaves within.
inline constexpr int kTurnedPixels = 4;

/// Blocks of lanes `line`, four behind it, eight behind it and so on, as many as a vector has.
template <int kLanes>
HWY_INLINE hn::Vec<hn::FixedTag<float, kLanes> > load_blocks(const float* line) {
  if constexpr (kLanes == kTurnedPixels) {
    return hn::LoadU(hn::FixedTag<float, kLanes>(), line);
  } else {
    constexpr int kHalf = kLanes / 2;
    return hn::Combine(hn::FixedTag<float, kLanes>(), load_blocks<kHalf>(line + kHalf * kPixelLine), load_blocks<kHalf>(line));
  }
}

/// The lanes of four pixels from `pixel` on.
HWY_INLINE void turn_pixels(const PixelSums& sums, std::int64_t pixel, V (&of_pixel)[kTurnedPixels][kPanelVectors]) {
  const D d;
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) {
    const float* line = sums[v * kVectorLanes] + pixel;
    const V a = load_blocks<kVectorLanes>(line), b = load_blocks<kVectorLanes>(line + kPixelLine);
    const V c = load_blocks<kVectorLanes>(line + 2 * kPixelLine), e = load_blocks<kVectorLanes>(line + 3 * kPixelLine);
    const V ac = hn::InterleaveLower(d, a, c), ac_upper = hn::InterleaveUpper(d, a, c);
    const V be = hn::InterleaveLower(d, b, e), be_upper = hn::InterleaveUpper(d, b, e);
    of_pixel[0][v] = hn::InterleaveLower(d, ac, be);
    of_pixel[1][v] = hn::InterleaveUpper(d, ac, be);
    of_pixel[2][v] = hn::InterleaveLower(d, ac_upper, be_upper);
    of_pixel[3][v] = hn::InterleaveUpper(d, ac_upper, be_upper);
  }
}

/// The epilogue of all lanes of a full panel: the values of `finish_lane`, stored pixel by pixel.
HWY_INLINE void finish_turned(const PixelSums& sums, const PixelOutputs& part, const TileJob& job) {
  PixelRun run{.out = part.out, .out_pixel = part.out_pixel, .residual = part.residual, .residual_pixel = part.residual_pixel};
  V of_pixel[kTurnedPixels][kPanelVectors];
  TileRows rows;
  std::int64_t i = 0;
  for (; i + kTurnedPixels <= part.count; i += kTurnedPixels) {
    turn_pixels(sums, part.first + i, of_pixel);
    set_run(run, i, kTurnedPixels, rows);
    finish(of_pixel, rows, job, 0);
  }
  if (i == part.count) return;
  turn_pixels(sums, part.first + i, of_pixel);
  for (int m = 0; i < part.count; ++m, ++i) {
    V one[1][kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) one[0][v] = of_pixel[m][v];
    set_run(run, i, 1, rows);
    finish(one, rows, job, 0);
  }
}
#endif

/// Pixels that lie behind each other, of all groups that meet in the panel.
void run_pixels(std::span<const PixelPlanes> groups, Interval<std::int64_t> pixels, std::span<const PixelOutputs> outputs,
                const TileJob& job) noexcept {
  HWY_ALIGN PixelSums sums;
  const std::int64_t pixel = pixels.begin, vectors = (pixels.size() + kVectorLanes - 1) / kVectorLanes;
  for (const PixelPlanes& planes : groups) {
    int lane = planes.first_lane;
    for (; lane + 4 <= planes.end_lane; lane += 4) sum_outputs<4>(planes, pixel, vectors, lane, sums);
    // Where a vector has 16 lanes three take up to 1.4 times as long as four, of which the last is a later group's, or none.
    if (kThreeAreFour && lane + 3 == planes.end_lane && planes.end_lane < 16) {
      sum_outputs<4>(planes, pixel, vectors, lane, sums);
      continue;
    }
    if (lane + 3 == planes.end_lane) {
      sum_outputs<3>(planes, pixel, vectors, lane, sums);
      continue;
    }
    if (lane + 2 <= planes.end_lane) {
      sum_outputs<2>(planes, pixel, vectors, lane, sums);
      lane += 2;
    }
    if (lane < planes.end_lane) sum_outputs<1>(planes, pixel, vectors, lane, sums);
  }
#if HWY_TARGET != HWY_SCALAR
  if (!kSmallCode && job.last_lanes == 16) {
    for (const PixelOutputs& part : outputs) finish_turned(sums, part, job);
    return;
  }
#endif
  for (int lane = 0; lane < job.last_lanes; ++lane) finish_lane(sums[lane], vectors, lane, outputs, job);
}

#if HWY_TARGET != HWY_SCALAR
/// Blocks of a vector to `to`, four planes behind it, eight behind it and so on.
template <int kLanes>
HWY_INLINE void store_blocks(hn::Vec<hn::FixedTag<float, kLanes> > v, float* to, std::int64_t plane) {
  if constexpr (kLanes == kTurnedPixels) {
    hn::StoreU(v, hn::FixedTag<float, kLanes>(), to);
  } else {
    constexpr int kHalf = kLanes / 2;
    const hn::FixedTag<float, kHalf> half;
    store_blocks<kHalf>(hn::LowerHalf(half, v), to, plane);
    store_blocks<kHalf>(hn::UpperHalf(half, v), to + kHalf * plane, plane);
  }
}
#endif

/// Whole panels of lanes of `count` pixels, `pitch` floats apart, to a plane each.
void turn_to_planes(const float* from, std::int64_t pitch, std::int64_t count, std::int64_t lanes, float* to, std::int64_t plane) noexcept {
  std::int64_t whole = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  whole = count / kTurnedPixels * kTurnedPixels;
  for (std::int64_t lane = 0; lane < lanes; lane += kVectorLanes) {
    const float* at = from + lane;
    float* first = to + lane * plane;
    for (std::int64_t i = 0; i < whole; i += kTurnedPixels, at += kTurnedPixels * pitch, first += kTurnedPixels) {
      const V a = hn::LoadU(d, at), b = hn::LoadU(d, at + pitch), c = hn::LoadU(d, at + 2 * pitch), e = hn::LoadU(d, at + 3 * pitch);
      const V ac = hn::InterleaveLower(d, a, c), ac_upper = hn::InterleaveUpper(d, a, c);
      const V be = hn::InterleaveLower(d, b, e), be_upper = hn::InterleaveUpper(d, b, e);
      store_blocks<kVectorLanes>(hn::InterleaveLower(d, ac, be), first, plane);
      store_blocks<kVectorLanes>(hn::InterleaveUpper(d, ac, be), first + plane, plane);
      store_blocks<kVectorLanes>(hn::InterleaveLower(d, ac_upper, be_upper), first + 2 * plane, plane);
      store_blocks<kVectorLanes>(hn::InterleaveUpper(d, ac_upper, be_upper), first + 3 * plane, plane);
    }
  }
#endif
  for (std::int64_t i = whole; i < count; ++i)
    for (std::int64_t lane = 0; lane < lanes; ++lane) to[i + lane * plane] = from[i * pitch + lane];
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_PIXEL_TILE_INL_H_
