// Compiled once for each target of targets.h by including itself; start reading at `block`.
#include "src/kernels/plain/line_chains.h"

#include <cstddef>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/plain/line_chains.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::plain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;
/// How many outputs are computed at once, and how many vectors of neighbours of each: as many as the registers hold, and chains enough to
/// hide the latency of an addition.
inline constexpr int kMostOutputs = HWY_TARGET == HWY_AVX3 ? 8 : 4;
template <int kOutputs>
inline constexpr int kMany = kOutputs == kMostOutputs ? 2 : 4;

/// A vector of neighbours: all of them, or the first `live`.
template <bool kPartial>
HWY_INLINE V load(const float* from, std::size_t live) {
  if constexpr (kPartial) return lanes::load_first(D(), from, live);
  return hn::LoadU(D(), from);
}
template <bool kPartial>
HWY_INLINE void store(V v, float* to, std::size_t live) {
  if constexpr (kPartial) return lanes::store_first(v, D(), to, live);
  hn::StoreU(v, D(), to);
}

/// kVectors vectors of neighbours from sum `i` on, the last of them partial or not, of kOutputs outputs from `first` on.
template <int kOutputs, int kVectors, bool kPartial>
HWY_INLINE void block(const LineChains& line, std::int64_t first, std::int64_t i, std::size_t live) {
  constexpr int kLast = kVectors - 1;
  const float *const x = line.x + i, *const w = line.w + first * line.w_row;
  float* const sums = line.sums + first * line.sum_row + i;
  V acc[kOutputs][kVectors];
  HWY_UNROLL(8)
  for (int o = 0; o < kOutputs; ++o) {
    float* const of = sums + o * line.sum_row;
    HWY_UNROLL(8)
    for (int v = 0; v < kLast; ++v) acc[o][v] = hn::LoadU(D(), of + v * kLanes);
    acc[o][kLast] = load<kPartial>(of + kLast * kLanes, live);
  }
  for (std::int64_t t = 0; t < line.taps; ++t) {
    const float *from = x + line.offsets[t], *weight = w + line.places[t];
    for (std::int64_t c = 0; c < line.channels; ++c, from += line.x_channel, weight += line.w_channel) {
      V in[kVectors];
      HWY_UNROLL(8)
      for (int v = 0; v < kLast; ++v) in[v] = hn::LoadU(D(), from + v * kLanes);
      in[kLast] = load<kPartial>(from + kLast * kLanes, live);
      HWY_UNROLL(8)
      for (int o = 0; o < kOutputs; ++o) {
        const V factor = hn::Set(D(), weight[o * line.w_row]);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) acc[o][v] = fn::fused(in[v], factor, acc[o][v]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int o = 0; o < kOutputs; ++o) {
    float* const of = sums + o * line.sum_row;
    HWY_UNROLL(8)
    for (int v = 0; v < kLast; ++v) hn::StoreU(acc[o][v], D(), of + v * kLanes);
    store<kPartial>(acc[o][kLast], of + kLast * kLanes, live);
  }
}

/// The last vectors of a line, as many as `left` sums want.
template <int kOutputs, int kVectors>
HWY_INLINE void last_block(const LineChains& line, std::int64_t first, std::int64_t i, std::int64_t left) {
  if constexpr (kVectors > 1)
    if (left <= (kVectors - 1) * kLanes) return last_block<kOutputs, kVectors - 1>(line, first, i, left);
  const auto live = static_cast<std::size_t>(left - (kVectors - 1) * kLanes);
  if (live == static_cast<std::size_t>(kLanes)) return block<kOutputs, kVectors, false>(line, first, i, live);
  block<kOutputs, kVectors, true>(line, first, i, live);
}

template <int kOutputs>
HWY_INLINE void outputs(const LineChains& line, std::int64_t first) {
  std::int64_t i = 0;
  for (; line.count - i > kMany<kOutputs> * kLanes; i += kMany<kOutputs> * kLanes)
    block<kOutputs, kMany<kOutputs>, false>(line, first, i, static_cast<std::size_t>(kLanes));
  if (i < line.count) last_block<kOutputs, kMany<kOutputs>>(line, first, i, line.count - i);
}

void run(const LineChains& line) noexcept {
  std::int64_t o = 0;
  for (; o + kMostOutputs <= line.outputs; o += kMostOutputs) outputs<kMostOutputs>(line, o);
  for (; o + 2 <= line.outputs; o += 2) outputs<2>(line, o);
  if (o < line.outputs) outputs<1>(line, o);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::plain {

LineChainsRun line_chains_run(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, run) }

}  // namespace sluice::kernels::plain
#endif  // HWY_ONCE
