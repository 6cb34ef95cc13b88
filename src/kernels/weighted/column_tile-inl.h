// Tiles of a panel with few outputs: pixels are the lanes (elementwise/turned-inl.h), where a tile of panels would leave most of its lanes empty.
#if defined(SLUICE_WEIGHTED_COLUMN_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_COLUMN_TILE_INL_H_
#undef SLUICE_WEIGHTED_COLUMN_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_COLUMN_TILE_INL_H_
#endif

#include <array>
#include <utility>

#include "src/kernels/elementwise/turned-inl.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace turned = sluice::kernels::HWY_NAMESPACE::turned;

#if HWY_TARGET != HWY_SCALAR

/// Bias, residual and function of kOutputs vectors of pixels from `x` on, and to the output.
template <int kOutputs>
HWY_INLINE void finish_columns(V (&sums)[kOutputs], const PixelRun& run, std::int64_t x, const TileJob& job) {
  const D d;
  HWY_ALIGN float line[kVectorLanes];
  for (int o = 0; o < kOutputs; ++o) {
    if (job.bias != nullptr) sums[o] = hn::Add(sums[o], hn::Set(d, job.bias[o]));
    if (!job.has_residual) continue;
    const float* residual = run.residual + x * run.residual_pixel + o;
    for (int i = 0; i < kVectorLanes; ++i) line[i] = residual[i * run.residual_pixel];
    sums[o] = hn::Add(sums[o], hn::Load(d, line));
  }
  if (job.activation.function != Function::kNone) activate(sums, kOutputs, job.activation);
  turned::put<kOutputs>(sums, run.out + x * run.out_pixel, run.out_pixel);
}

/// kGroups vectors of pixels from `x` on.
template <int kGroups, int kOutputs>
HWY_INLINE void column_tile(const PixelRun& run, std::int64_t x, const TileJob& job) {
  V acc[kGroups][kOutputs];
  clear(acc);
  const float* weights = job.panels;
  for (std::int64_t s = 0; s < job.segments; ++s, weights += job.depth * 16)
    turned::add_products<kGroups, kOutputs>(
        {run.a + x * run.a_pixel + job.segment_offsets[s], run.a_pixel, job.depth, weights, 16, job.fetch_ahead}, acc);
  HWY_UNROLL(2)
  for (int g = 0; g < kGroups; ++g) finish_columns(acc[g], run, x + g * kVectorLanes, job);
}

/// Whole vectors of pixels; returns how many pixels that were.
template <int kOutputs>
HWY_NOINLINE std::int64_t run_whole_columns(const PixelRun& run, const TileJob& job) {
  std::int64_t x = 0;
  for (; x + 2 * kVectorLanes <= run.count; x += 2 * kVectorLanes) column_tile<2, kOutputs>(run, x, job);
  for (; x + kVectorLanes <= run.count; x += kVectorLanes) column_tile<1, kOutputs>(run, x, job);
  return x;
}

using WholeColumns = std::int64_t (*)(const PixelRun&, const TileJob&);

template <std::size_t... kOutput>
constexpr std::array<WholeColumns, sizeof...(kOutput)> whole_columns(std::index_sequence<kOutput...>) {
  return {run_whole_columns<static_cast<int>(kOutput) + 1>...};
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_COLUMN_TILE_INL_H_
