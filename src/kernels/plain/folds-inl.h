// Sums and products of doubles, sixteen of them side by side (vectors.h).
#if defined(SLUICE_PLAIN_FOLDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_PLAIN_FOLDS_INL_H_
#undef SLUICE_PLAIN_FOLDS_INL_H_
#else
#define SLUICE_PLAIN_FOLDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "src/kernels/elementwise/doubles-inl.h"
#include "src/kernels/elementwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::plain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace lanes = kernels::HWY_NAMESPACE::lanes;

using kernels::HWY_NAMESPACE::doubles::D64;
using kernels::HWY_NAMESPACE::doubles::kWideLanes;
using kernels::HWY_NAMESPACE::doubles::Narrow;
using kernels::HWY_NAMESPACE::doubles::V64;
using kernels::HWY_NAMESPACE::doubles::widened;

inline constexpr std::int64_t kSums = 16;
inline constexpr std::int64_t kSumVectors = kSums / kWideLanes;

/// What is done with the values of a sum or product: from 0 or 1 on.
struct Added {
  static constexpr double kStart = 0;
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return hn::Add(a, b);
  }
  static HWY_INLINE double join(double a, double b) { return a + b; }
};
struct Multiplied {
  static constexpr double kStart = 1;
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return hn::Mul(a, b);
  }
  static HWY_INLINE double join(double a, double b) { return a * b; }
};

/// The sum or product of kCount values, no more than eight, in the order of `fold_of`: sums that stay at the start change nothing there.
template <class Join, std::int64_t kCount, class ScalarTerm>
HWY_INLINE double fold_few(const float* x, const ScalarTerm& term) {
  double sums[kCount];
  HWY_UNROLL(8)
  for (std::int64_t i = 0; i < kCount; ++i) sums[i] = Join::join(Join::kStart, term(static_cast<double>(x[i])));
  HWY_UNROLL(3)
  for (std::int64_t half = 4; half >= 1; half /= 2) {
    HWY_UNROLL(4)
    for (std::int64_t lane = 0; lane < half; ++lane)
      if (lane + half < kCount) sums[lane] = Join::join(sums[lane], sums[lane + half]);
  }
  return sums[0];
}
template <class Join, class ScalarTerm>
HWY_INLINE double fold_up_to_eight(const float* x, std::int64_t n, const ScalarTerm& term) {
  switch (n) {
    case 1:
      return fold_few<Join, 1>(x, term);
    case 2:
      return fold_few<Join, 2>(x, term);
    case 3:
      return fold_few<Join, 3>(x, term);
    case 4:
      return fold_few<Join, 4>(x, term);
    case 5:
      return fold_few<Join, 5>(x, term);
    case 6:
      return fold_few<Join, 6>(x, term);
    case 7:
      return fold_few<Join, 7>(x, term);
    default:
      return fold_few<Join, 8>(x, term);
  }
}

/// The lanes of a vector, the upper half onto the lower one until one is left.
template <class Join, class D>
HWY_INLINE double fold_lanes(D d, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 2) {
    const hn::Half<D> half;
    return fold_lanes<Join>(half, Join::join(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  HWY_ALIGN double values[hn::MaxLanes(D())];
  hn::Store(v, d, values);
  return hn::MaxLanes(D()) == 1 ? values[0] : Join::join(values[0], values[hn::MaxLanes(D()) - 1]);
}

/// `term(V64)` and `term(double)` are the same function.
template <class Join, class VectorTerm, class ScalarTerm>
HWY_INLINE double fold_of(const float* x, std::int64_t n, const VectorTerm& term, const ScalarTerm& scalar_term) {
  if (n >= 1 && n <= 8) return fold_up_to_eight<Join>(x, n, scalar_term);
  V64 parts[kSumVectors];
  const V64 start = hn::Set(D64(), Join::kStart);
  for (V64& part : parts) part = start;
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    HWY_UNROLL(16)
    for (std::int64_t v = 0; v < kSumVectors; ++v) parts[v] = Join::join(parts[v], term(widened(x + i + v * kWideLanes)));
  }
  for (std::int64_t v = 0; i < n; ++v, i += kWideLanes) {
    if (n - i >= kWideLanes) {
      parts[v] = Join::join(parts[v], term(widened(x + i)));
      continue;
    }
    const auto count = static_cast<std::size_t>(n - i);
    const V64 last = term(hn::PromoteTo(D64(), lanes::load_first(Narrow(), x + i, count)));
    parts[v] = Join::join(parts[v], hn::IfThenElse(hn::FirstN(D64(), count), last, start));
  }
  for (std::int64_t half = kSumVectors / 2; half >= 1; half /= 2)
    for (std::int64_t v = 0; v < half; ++v) parts[v] = Join::join(parts[v], parts[v + half]);
  return fold_lanes<Join>(D64(), parts[0]);
}
template <class VectorTerm, class ScalarTerm>
HWY_INLINE double sum_of(const float* x, std::int64_t n, const VectorTerm& term, const ScalarTerm& scalar_term) {
  return fold_of<Added>(x, n, term, scalar_term);
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_PLAIN_FOLDS_INL_H_
