// Sums over a row in the order that reference/lane_sum.h states, whatever the width of a vector.
#if defined(SLUICE_LANE_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_LANE_SUM_INL_H_
#undef SLUICE_LANE_SUM_INL_H_
#else
#define SLUICE_LANE_SUM_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "src/kernels/elementwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels {
namespace HWY_NAMESPACE {
namespace lanes {

/// How a vector of a row is read and written: whole, or its first lanes.
struct Whole {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, float* to) const {
    hn::StoreU(v, d, to);
  }
};
struct First {
  std::size_t count;
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    return load_first(d, from, count);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, float* to) const {
    store_first(v, d, to, count);
  }
};

/// The sum of a vector's lanes, those of its upper half added to the lower ones until one is left.
template <class D>
HWY_INLINE float sum_in_halves(D d, hn::Vec<D> v) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kLanes > 4) {
    const hn::Half<D> half;
    return sum_in_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
  if constexpr (kLanes == 4) {
    const hn::Vec<D> halves = hn::Add(v, hn::Shuffle1032(v));
    return hn::GetLane(hn::Add(halves, hn::Shuffle2301(halves)));
  }
#endif
  HWY_ALIGN float values[kLanes];
  hn::Store(v, d, values);
  for (std::size_t half = kLanes / 2; half >= 1; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) values[lane] += values[lane + half];
  return values[0];
}

/// Sixteen partial sums, folded in halves. `add(sum, part, i)` gives `sum` with the values from i on added; `part` is Whole or First.
template <class D, class Add>
HWY_INLINE float lane_sum(D d, std::int64_t n, const Add& add) {
  using V = hn::Vec<D>;
  constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;
  constexpr int kVectors = static_cast<int>(16 / kLanes);
  V sums[kVectors];
  for (V& sum : sums) sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) sums[v] = add(sums[v], Whole(), i + v * kLanes);
  }
  for (int v = 0; i < n; ++v, i += kLanes) {
    const auto count = static_cast<std::size_t>(std::min(kLanes, n - i));
    sums[v] = hn::IfThenElse(hn::FirstN(d, count), add(sums[v], First{count}, i), sums[v]);
  }
  for (int half = kVectors / 2; half >= 1; half /= 2)
    for (int v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[v + half]);
  return sum_in_halves(d, sums[0]);
}

/// Calls body(part, i) for each vector of a row.
template <class Body>
HWY_INLINE void each_part(std::int64_t n, const Body& body) {
  constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(Whole(), i);
  if (i < n) body(First{static_cast<std::size_t>(n - i)}, i);
}

}  // namespace lanes
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_LANE_SUM_INL_H_
