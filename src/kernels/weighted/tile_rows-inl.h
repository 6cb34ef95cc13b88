// What the tiles of one target share: how their sums begin and end, the lines that they will touch fetched, a run of pixels cut into tiles.
#if defined(SLUICE_WEIGHTED_TILE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_TILE_ROWS_INL_H_
#undef SLUICE_WEIGHTED_TILE_ROWS_INL_H_
#else
#define SLUICE_WEIGHTED_TILE_ROWS_INL_H_
#endif

#include <cstdint>

#include "sluice/core/units.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/tile.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

/// On their way to the first cache while the sums are formed.
template <int kRows, int kPanels, class Float>
HWY_INLINE void prefetch_lines(Float* const* pixels, std::int64_t first) {
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(4)
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(pixels[m] + first + p * 16, 0, 3);
  }
}

/// A panel's part of what a tile fetches, at once: of short sums that is few lines.
HWY_INLINE void fetch_part(const TileJob& job, const float* part) {
  const std::int64_t lines = ceil_div(job.segments * job.depth, std::int64_t{kTilesOfPrefetch});
  for (std::int64_t k = 0; k < lines; ++k) __builtin_prefetch(part + k * 16, 0, 2);
}

template <int kRows, int kVectors>
HWY_INLINE void clear(V (&acc)[kRows][kVectors]) {
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) acc[m][v] = hn::Zero(D());
  }
}

template <int kRows, int kPanels>
HWY_INLINE void prefetch_destination(const TileRows& rows, const TileJob& job, std::int64_t first) {
  if (job.outputs_are_far) prefetch_lines<kRows, kPanels>(rows.out, first);
  if (job.has_residual) prefetch_lines<kRows, kPanels>(rows.residual, first);
}

template <int kRows>
HWY_INLINE float* sums_of(const TileJob& job, int p) {
  return job.sums + p * 16 * kRows;
}

/// From 0, or from the unfinished sums.
template <int kRows, int kVectors>
HWY_INLINE void begin(V (&acc)[kRows][kVectors], const TileJob& job, int p) {
  const D d;
  clear(acc);
  if (!kKeepsSums || job.begins) return;
  const float* sums = sums_of<kRows>(job, p);
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) acc[m][v] = hn::LoadU(d, sums + (m * kVectors + v) * kVectorLanes);
  }
}

/// In the output, or in the unfinished sums.
template <int kRows, int kVectors>
HWY_INLINE void end(V (&acc)[kRows][kVectors], const TileRows& rows, const TileJob& job, int p) {
  if (!kKeepsSums || job.ends) return finish(acc, rows, job, std::int64_t{p} * 16);
  const D d;
  float* sums = sums_of<kRows>(job, p);
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(acc[m][v], d, sums + (m * kVectors + v) * kVectorLanes);
  }
}

HWY_INLINE void set_run(const PixelRun& run, std::int64_t x, int count, TileRows& rows) {
  rows.count = count;
  const float* a = run.a + x * run.a_pixel;
  float* out = run.out + x * run.out_pixel;
  const float* residual = run.residual + x * run.residual_pixel;
  for (int m = 0; m < count; ++m, a += run.a_pixel, out += run.out_pixel, residual += run.residual_pixel) {
    rows.a[m] = in_general(a);
    rows.out[m] = in_general(out);
    rows.residual[m] = in_general(residual);
  }
}

/// Calls body(rows, x, tile) for the tiles of at most kRows pixels, split evenly, that `run` consists of; `x` is a tile's first pixel.
template <int kRows, class Body>
HWY_INLINE void for_each_tile_of(const PixelRun& run, const Body& body) {
  const std::int64_t tiles = ceil_div(run.count, std::int64_t{kRows});
  std::int64_t x = 0;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    TileRows rows;
    set_run(run, x, static_cast<int>(ceil_div(run.count - x, tiles - tile)), rows);
    body(rows, x, tile);
    x += rows.count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_TILE_ROWS_INL_H_
