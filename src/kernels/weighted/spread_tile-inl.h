// Groups of fewer than 16 outputs with a single tap, whose inputs fill no more than a vector for each vector of lanes: as in all groups of
// as many inputs as outputs. They are loaded once and spread to the lanes in registers.
#if defined(SLUICE_WEIGHTED_SPREAD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_SPREAD_TILE_INL_H_
#undef SLUICE_WEIGHTED_SPREAD_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_SPREAD_TILE_INL_H_
#endif

#include <algorithm>
#include <array>

#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

/// Inputs that lanes [first, end) of the panel read lie within so many floats.
HWY_INLINE std::int64_t floats_of_lanes(const TileJob& job, const std::int32_t* sources, int first) {
  return sources[std::min(first + kVectorLanes, 16) - 1] - sources[first] + job.depth;
}

bool spreads_within_vectors(const TileJob& job, const std::int32_t* sources) {
  for (int first = 0; first < 16; first += kVectorLanes)
    if (floats_of_lanes(job, sources, first) > kVectorLanes) return false;
  return true;
}

template <int kRows>
HWY_NOINLINE void spread_tile(const TileRows& rows, const TileJob& job, const std::int32_t* sources) {
  const D d;
  const hn::RebindToSigned<D> whole;
  V acc[kRows][kPanelVectors];
  clear(acc);
  HWY_UNROLL(16)
  for (int v = 0; v < kPanelVectors; ++v) {
    const int first = v * kVectorLanes, count = static_cast<int>(floats_of_lanes(job, sources, first));
    V inputs[kRows];
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) inputs[m] = load_lanes(rows.a[m] + sources[first], count);
    auto place = hn::Sub(hn::LoadU(whole, sources + first), hn::Set(whole, sources[first]));
    const float* HWY_RESTRICT b = job.panels + first;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16) {
      const V weights = hn::LoadU(d, b);
      const auto lanes = hn::IndicesFromVec(d, place);
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) acc[m][v] = functions::fused(hn::TableLookupLanes(inputs[m], lanes), weights, acc[m][v]);
      place = hn::Add(place, hn::Set(whole, 1));
    }
  }
  finish(acc, rows, job, 0);
}

using SpreadTile = void (*)(const TileRows&, const TileJob&, const std::int32_t*);

template <std::size_t... kRow>
constexpr std::array<SpreadTile, sizeof...(kRow)> spread_tiles(std::index_sequence<kRow...>) {
  return {spread_tile<static_cast<int>(kRow) + 1>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif
