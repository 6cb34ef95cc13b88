// Sums of a few outputs over rows that lie at one distance: rows are the lanes. A vector holds one product of each of its rows; blocks of four
// neighbours of four rows are turned in registers on the way. Each sum is one chain of fused multiply-adds in the order of k, as everywhere.
//
//     rows:  r0: k0 k1 k2 k3 ..     turned:  k0: r0 r1 r2 r3 ..
//            r1: k0 k1 k2 k3 ..              k1: r0 r1 r2 r3 ..
#if defined(SLUICE_ELEMENTWISE_TURNED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_ELEMENTWISE_TURNED_INL_H_
#undef SLUICE_ELEMENTWISE_TURNED_INL_H_
#else
#define SLUICE_ELEMENTWISE_TURNED_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels {
namespace HWY_NAMESPACE {
namespace turned {

namespace hn = hwy::HWY_NAMESPACE;

using Vector = hn::CappedTag<float, 16>;
using Lanes = hn::Vec<Vector>;
inline constexpr int kRows = static_cast<int>(HWY_LANES(float) < 16 ? HWY_LANES(float) : 16);  // of a vector

/// How many outputs the loops have code for: beyond them other ways are as fast. 0: none.
inline constexpr int kMostOutputs = HWY_TARGET == HWY_SCALAR || kSmallCode ? 0 : HWY_TARGET == HWY_AVX3 ? 8 : 4;
/// Sums of fewer products are not worth the turning.
inline constexpr std::int64_t kLeastDepth = 8;

/// One matrix: row r, product k is at `first` + r * step + k, its weight for output o at `weights` + k * weight_step + o.
struct Rows {
  const float* first = nullptr;
  std::int64_t step = 0;
  std::int64_t depth = 0;
  const float* weights = nullptr;
  std::int64_t weight_step = 0;
  std::int64_t fetch_ahead = 0;  // what lies so many floats behind each row is fetched meanwhile, a line at a time; 0: nothing
};

#if HWY_TARGET != HWY_SCALAR

/// Four neighbours of each fourth row of kCount, the first of them at `row`, side by side.
template <int kCount>
HWY_INLINE hn::Vec<hn::FixedTag<float, kCount> > load_fours(const float* row, std::int64_t step) {
  if constexpr (kCount == 4) {
    return hn::LoadU(hn::FixedTag<float, 4>(), row);
  } else {
    return hn::Combine(hn::FixedTag<float, kCount>(), load_fours<kCount / 2>(row + kCount / 2 * step, step),
                       load_fours<kCount / 2>(row, step));
  }
}

/// Four neighbours of kRows rows `step` floats apart from `at` on: lane r of to[j] is neighbour j of row r.
HWY_INLINE void turn_four(const float* at, std::int64_t step, Lanes (&to)[4]) {
  const Vector d;
  Lanes a[4];
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) a[i] = load_fours<kRows>(at + i * step, step);
  const Lanes low = hn::InterleaveLower(d, a[0], a[2]), high = hn::InterleaveUpper(d, a[0], a[2]);
  const Lanes odd_low = hn::InterleaveLower(d, a[1], a[3]), odd_high = hn::InterleaveUpper(d, a[1], a[3]);
  to[0] = hn::InterleaveLower(d, low, odd_low);
  to[1] = hn::InterleaveUpper(d, low, odd_low);
  to[2] = hn::InterleaveLower(d, high, odd_high);
  to[3] = hn::InterleaveUpper(d, high, odd_high);
}

/// A line holds so many floats.
inline constexpr std::int64_t kLineFloats = 16;

/// One line of each fourth of kRows rows from `at` on, at product `k`: after four of them, a line of every row.
HWY_INLINE void fetch_fours(const float* at, std::int64_t step, std::int64_t k) {
  const float* const line = at - k % kLineFloats + k % kLineFloats / 4 * step;
  for (int r = 0; r < kRows; r += 4) __builtin_prefetch(line + r * step);
}

/// Adds the products of kGroups * kRows rows to the sums of kOutputs outputs.
template <int kGroups, int kOutputs>
HWY_INLINE void add_products(const Rows& rows, Lanes (&acc)[kGroups][kOutputs]) {
  const Vector d;
  namespace fn = functions;
  const float* at = rows.first;
  const float* weight = rows.weights;
  const std::int64_t step = rows.step;
  std::int64_t k = 0;
  for (; k + 4 <= rows.depth; k += 4, at += 4, weight += 4 * rows.weight_step) {
    HWY_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) {
      Lanes in[4];
      turn_four(at + g * kRows * step, step, in);
      if (rows.fetch_ahead != 0) fetch_fours(at + g * kRows * step + rows.fetch_ahead, step, k);
      HWY_UNROLL(4)
      for (int j = 0; j < 4; ++j) {
        HWY_UNROLL(8)
        for (int o = 0; o < kOutputs; ++o) acc[g][o] = fn::fused(in[j], hn::Set(d, weight[j * rows.weight_step + o]), acc[g][o]);
      }
    }
  }
  HWY_ALIGN float line[kRows];
  for (; k < rows.depth; ++k, ++at, weight += rows.weight_step)
    for (int g = 0; g < kGroups; ++g) {
      for (int r = 0; r < kRows; ++r) line[r] = at[(g * kRows + r) * step];
      const Lanes in = hn::Load(d, line);
      for (int o = 0; o < kOutputs; ++o) acc[g][o] = fn::fused(in, hn::Set(d, weight[o]), acc[g][o]);
    }
}

/// A vector of rows of each output, to rows `step` floats apart.
template <int kOutputs>
HWY_INLINE void put(const Lanes (&sums)[kOutputs], float* to, std::int64_t step) {
  const Vector d;
  if (step == kOutputs) {
    if constexpr (kOutputs == 1) return hn::StoreU(sums[0], d, to);
    if constexpr (kOutputs == 2) return hn::StoreInterleaved2(sums[0], sums[1], d, to);
    if constexpr (kOutputs == 3) return hn::StoreInterleaved3(sums[0], sums[1], sums[2], d, to);
    if constexpr (kOutputs == 4) return hn::StoreInterleaved4(sums[0], sums[1], sums[2], sums[3], d, to);
  }
  HWY_ALIGN float line[kRows];
  for (int o = 0; o < kOutputs; ++o) {
    hn::Store(sums[o], d, line);
    for (int r = 0; r < kRows; ++r) to[r * step + o] = line[r];
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace turned
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_ELEMENTWISE_TURNED_INL_H_
