// Pools of neighbouring outputs of a row, pixel after pixel: their windows have one form, so that rows are found once and not once a pixel.
// Start reading at `pool_window_taps`.
#if defined(SLUICE_POOL_PIXELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_POOL_PIXELS_INL_H_
#undef SLUICE_POOL_PIXELS_INL_H_
#else
#define SLUICE_POOL_PIXELS_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "sluice/core/units.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lane_sum-inl.h"
#include "src/kernels/elementwise/runs.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::elementwise {
namespace HWY_NAMESPACE {
namespace pixels {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;

using Vector = hn::CappedTag<float, 16>;
inline constexpr std::int64_t kVectorLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

/// kVectors vectors of channels of the window that begins `offset` floats behind the run's rows. kTaps: of a row; 0 asks the run.
template <PoolingKind kind, int kTaps, int kVectors, class D, class Part>
HWY_INLINE void pool_window_taps(D d, const PoolPixels& run, std::int64_t offset, const Part& part, hn::Vec<D> (&acc)[kVectors]) {
  constexpr bool kMax = kind == PoolingKind::kMax;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  const hn::Vec<D> begin = hn::Set(d, kMax ? -HUGE_VALF : 0.0f);
  for (auto& a : acc) a = begin;
  const std::int64_t taps = kTaps == 0 ? run.taps : kTaps;
  for (int r = 0; r < run.row_count; ++r) {
    hn::Vec<D> row[kVectors];
    for (auto& value : row) value = begin;
    const float* tap = run.rows[r] + offset;
    for (std::int64_t t = 0; t < taps; ++t, tap += run.tap_step) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        const auto value = part.load(d, tap + v * kLanes);
        if constexpr (kMax)
          acc[v] = fn::at_least(acc[v], value);
        else
          row[v] = hn::Add(row[v], value);
      }
    }
    HWY_UNROLL(4)
    for (int v = 0; !kMax && v < kVectors; ++v) acc[v] = hn::Add(acc[v], row[v]);
  }
  if constexpr (!kMax) {
    const hn::Vec<D> divisor = hn::Set(d, run.divisor);
    for (auto& a : acc) a = hn::Div(a, divisor);
  }
  for (auto& a : acc) a = fn::within(d, run.bounds.low, run.bounds.high, a);
}

/// Channels that fit one vector. What is written beyond a pixel the next ones write over, so those at the end go alone.
template <PoolingKind kind, int kTaps, class D>
HWY_INLINE void pool_few_channels(D d, const PoolPixels& run, float* out) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  const std::int64_t whole = run.out_step == run.channels ? run.pixels - ceil_div(kLanes, run.channels) : -1;
  std::int64_t offset = 0;
  for (std::int64_t p = 0; p < run.pixels; ++p, offset += run.pixel_step, out += run.out_step) {
    hn::Vec<D> acc[1];
    // Values behind the last channel are read (kReadTail) and left out.
    pool_window_taps<kind, kTaps>(d, run, offset, lanes::Whole(), acc);
    if (p <= whole)
      hn::StoreU(acc[0], d, out);
    else
      lanes::store_first(acc[0], d, out, static_cast<std::size_t>(run.channels));
  }
}

template <PoolingKind kind, int kTaps>
HWY_INLINE void pool_channels(const PoolPixels& run, std::int64_t offset, float* out) {
  constexpr int kWide = 4;
  const Vector d;
  std::int64_t i = 0;
  for (; i + kWide * kVectorLanes <= run.channels; i += kWide * kVectorLanes) {
    hn::Vec<Vector> acc[kWide];
    pool_window_taps<kind, kTaps>(d, run, offset + i, lanes::Whole(), acc);
    for (int v = 0; v < kWide; ++v) hn::StoreU(acc[v], d, out + i + v * kVectorLanes);
  }
  for (; i + kVectorLanes <= run.channels; i += kVectorLanes) {
    hn::Vec<Vector> acc[1];
    pool_window_taps<kind, kTaps>(d, run, offset + i, lanes::Whole(), acc);
    hn::StoreU(acc[0], d, out + i);
  }
  if (i == run.channels) return;
  const auto count = static_cast<std::size_t>(run.channels - i);
  hn::Vec<Vector> acc[1];
  pool_window_taps<kind, kTaps>(d, run, offset + i, lanes::First{count}, acc);
  lanes::store_first(acc[0], d, out + i, count);
}

template <PoolingKind kind, int kTaps>
void pool_as(const PoolPixels& run, float* out) {
#if HWY_TARGET != HWY_SCALAR
  if (run.channels <= kMostCopied) return pool_few_channels<kind, kTaps>(hn::FixedTag<float, kMostCopied>(), run, out);
  if (run.channels < kVectorLanes) return pool_few_channels<kind, kTaps>(Vector(), run, out);
#endif
  for (std::int64_t p = 0; p < run.pixels; ++p) pool_channels<kind, kTaps>(run, p * run.pixel_step, out + p * run.out_step);
}

template <PoolingKind kind>
void pool_of(const PoolPixels& run, float* out) {
  if constexpr (has_pool(2))
    if (run.taps == 2) return pool_as<kind, 2>(run, out);
  if constexpr (has_pool(3))
    if (run.taps == 3) return pool_as<kind, 3>(run, out);
  pool_as<kind, 0>(run, out);
}

inline void pool(PoolingKind kind, const PoolPixels& run, float* out) noexcept {
  kind == PoolingKind::kMax ? pool_of<PoolingKind::kMax>(run, out) : pool_of<PoolingKind::kAverage>(run, out);
}

/// kVectors vectors of values, or the first ones of one.
template <PoolingKind kind, int kVectors, class Part>
HWY_INLINE void fold_vectors(const FoldTaps& taps, float* to, std::int64_t i, const Part& part, hn::Vec<Vector> (&acc)[kVectors]) {
  const Vector d;
  for (int v = 0; v < kVectors; ++v) acc[v] = part.load(d, to + i + v * kVectorLanes);
  const float* tap = taps.from + i;
  for (std::int64_t t = 0; t < taps.taps; ++t, tap += taps.step) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const auto value = part.load(d, tap + v * kVectorLanes);
      acc[v] = kind == PoolingKind::kMax ? fn::at_least(acc[v], value) : hn::Add(acc[v], value);
    }
  }
}

template <PoolingKind kind>
void fold_as(const FoldTaps& taps, float* to, std::int64_t n) {
  constexpr int kWide = 4;
  const Vector d;
  std::int64_t i = 0;
  for (; i + kWide * kVectorLanes <= n; i += kWide * kVectorLanes) {
    hn::Vec<Vector> acc[kWide];
    fold_vectors<kind>(taps, to, i, lanes::Whole(), acc);
    for (int v = 0; v < kWide; ++v) hn::StoreU(acc[v], d, to + i + v * kVectorLanes);
  }
  for (; i + kVectorLanes <= n; i += kVectorLanes) {
    hn::Vec<Vector> acc[1];
    fold_vectors<kind>(taps, to, i, lanes::Whole(), acc);
    hn::StoreU(acc[0], d, to + i);
  }
  if (i == n) return;
  const auto count = static_cast<std::size_t>(n - i);
  hn::Vec<Vector> acc[1];
  fold_vectors<kind>(taps, to, i, lanes::First{count}, acc);
  lanes::store_first(acc[0], d, to + i, count);
}

inline void fold(PoolingKind kind, const FoldTaps& taps, float* to, std::int64_t n) noexcept {
  kind == PoolingKind::kMax ? fold_as<PoolingKind::kMax>(taps, to, n) : fold_as<PoolingKind::kAverage>(taps, to, n);
}

}  // namespace pixels
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::elementwise
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_POOL_PIXELS_INL_H_
