// Softmax of rows that fit a few vectors: two rows at once, whose exponentials stay in registers. The simple equivalent is `softmax` of runs.cc.
#if defined(SLUICE_SHORT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SHORT_ROWS_INL_H_
#undef SLUICE_SHORT_ROWS_INL_H_
#else
#define SLUICE_SHORT_ROWS_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "src/kernels/elementwise/functions-inl.h"
#include "src/kernels/elementwise/lane_sum-inl.h"
#include "src/kernels/elementwise/subnormal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::elementwise {
namespace HWY_NAMESPACE {
namespace short_rows {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;
namespace lanes = kernels::HWY_NAMESPACE::lanes;
namespace subnormal = kernels::HWY_NAMESPACE::subnormal;

#if HWY_TARGET == HWY_AVX3

/// Of sixteen lanes: with them the order of `lane_sum` is one sum, vector after vector.
inline constexpr std::int64_t kMostVectors = 4;

using Sixteen = hn::FixedTag<float, 16>;

/// kRows rows of n values, more than kVectors - 1 vectors and no more than kVectors.
template <int kVectors, int kRows>
HWY_INLINE void softmax_rows(const float* in, float* out, std::int64_t n) {
  using V = hn::Vec<Sixteen>;
  const Sixteen d;
  constexpr std::int64_t kWhole = (kVectors - 1) * 16;
  const auto last = hn::FirstN(d, static_cast<std::size_t>(n - kWhole));
  const V least = hn::Set(d, -HUGE_VALF);
  V e[kRows][kVectors], top[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) {
    top[r] = least;
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const float* const from = in + r * n + v * 16;
      e[r][v] = v + 1 < kVectors ? hn::LoadU(d, from) : hn::IfThenElse(last, hn::MaskedLoad(last, d, from), least);
      top[r] = fn::at_least(top[r], e[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) top[r] = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, top[r])));
  for (int r = 0; r < kRows; ++r) {
    sum[r] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      e[r][v] = subnormal::exp(d, hn::Sub(e[r][v], top[r]));
      if (v + 1 == kVectors) e[r][v] = hn::IfThenElseZero(last, e[r][v]);
      sum[r] = hn::Add(sum[r], e[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) sum[r] = hn::Set(d, lanes::sum_in_halves(d, sum[r]));
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const V y = subnormal::quotient(d, e[r][v], sum[r]);
      float* const to = out + r * n + v * 16;
      v + 1 < kVectors ? hn::StoreU(y, d, to) : hn::BlendedStore(y, last, d, to);
    }
  }
}

template <int kVectors>
void softmax_all(const float* in, float* out, std::int64_t n, std::int64_t count) {
  std::int64_t row = 0;
  for (; row + 2 <= count; row += 2) softmax_rows<kVectors, 2>(in + row * n, out + row * n, n);
  if (row < count) softmax_rows<kVectors, 1>(in + row * n, out + row * n, n);
}

#endif

/// `count` rows of n values behind each other; false, and nothing done, where they do not fit.
inline bool softmax(const float* in, float* out, std::int64_t n, std::int64_t count) {
#if HWY_TARGET == HWY_AVX3
  if (n >= 1 && n <= kMostVectors * 16) {
    constexpr void (*kRuns[])(const float*, float*, std::int64_t, std::int64_t) = {softmax_all<1>, softmax_all<2>, softmax_all<3>,
                                                                                   softmax_all<4>};
    kRuns[(n - 1) / 16](in, out, n, count);
    return true;
  }
#endif
  (void)in, (void)out, (void)n, (void)count;
  return false;
}

}  // namespace short_rows
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::elementwise
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_SHORT_ROWS_INL_H_
