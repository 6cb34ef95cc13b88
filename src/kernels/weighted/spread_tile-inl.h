// Groups of fewer than 16 outputs with a single tap, whose inputs fill no more than four vectors for each vector of lanes: as in all groups
// whose outputs divide a vector and whose inputs are up to four times as many. They are loaded once and spread to the lanes in registers.
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

/// The most vectors that the inputs of a vector's lanes fill.
std::int64_t vectors_to_spread(const TileJob& job, const std::int32_t* sources) {
  std::int64_t most = 0;
  for (int first = 0; first < 16; first += kVectorLanes) most = std::max(most, floats_of_lanes(job, sources, first));
  return (most + kVectorLanes - 1) / kVectorLanes;
}

/// kInputs: the vectors that they fill, one, two or four.
template <int kRows, int kInputs>
HWY_NOINLINE void spread_tile(const TileRows& rows, const TileJob& job, const std::int32_t* sources) {
  const D d;
  const hn::RebindToSigned<D> whole;
  const auto lanes_of_vector = hn::Set(whole, kVectorLanes - 1);
  V acc[kRows][kPanelVectors];
  clear(acc);
  HWY_UNROLL(16)
  for (int v = 0; v < kPanelVectors; ++v) {
    const int first = v * kVectorLanes, count = static_cast<int>(floats_of_lanes(job, sources, first));
    V inputs[kRows][kInputs];
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      HWY_UNROLL(4)
      for (int i = 0; i < kInputs; ++i) inputs[m][i] = load_lanes(rows.a[m] + sources[first] + i * kVectorLanes, count - i * kVectorLanes);
    }
    auto place = hn::Sub(hn::LoadU(whole, sources + first), hn::Set(whole, sources[first]));
    const float* HWY_RESTRICT b = job.panels + first;
    for (std::int64_t k = 0; k < job.depth; ++k, b += 16) {
      const V weights = hn::LoadU(d, b);
      const auto lanes = hn::IndicesFromVec(d, hn::And(place, lanes_of_vector));
      hn::Mask<D> behind[kInputs];
      HWY_UNROLL(4)
      for (int i = 1; i < kInputs; ++i) behind[i] = hn::RebindMask(d, hn::Gt(place, hn::Set(whole, i * kVectorLanes - 1)));
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) {
        V input = hn::TableLookupLanes(inputs[m][0], lanes);
        HWY_UNROLL(4)
        for (int i = 1; i < kInputs; ++i) input = hn::IfThenElse(behind[i], hn::TableLookupLanes(inputs[m][i], lanes), input);
        acc[m][v] = functions::fused(input, weights, acc[m][v]);
      }
      place = hn::Add(place, hn::Set(whole, 1));
    }
  }
  finish(acc, rows, job, 0);
}

using SpreadTile = void (*)(const TileRows&, const TileJob&, const std::int32_t*);

template <int kInputs, std::size_t... kRow>
constexpr std::array<SpreadTile, sizeof...(kRow)> spread_tiles(std::index_sequence<kRow...>) {
  return {spread_tile<static_cast<int>(kRow) + 1, kInputs>...};
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif
