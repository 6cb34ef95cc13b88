// Loads and stores of the last, partial vector of a run: nothing beyond the run is read or written, because another thread may be
// writing there.
#if defined(SLUICE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_LANES_INL_H_
#undef SLUICE_LANES_INL_H_
#else
#define SLUICE_LANES_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels {
namespace HWY_NAMESPACE {
namespace lanes {

namespace hn = hwy::HWY_NAMESPACE;

/// The first `count` < Lanes(d) values, then zeros.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const float* from, std::size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#else
  HWY_ALIGN float buffer[HWY_LANES(float)] = {};
  for (std::size_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
#endif
}

template <class D>
HWY_INLINE void store_first(hn::Vec<D> v, D d, float* to, std::size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#else
  HWY_ALIGN float buffer[HWY_LANES(float)];
  hn::Store(v, d, buffer);
  for (std::size_t i = 0; i < count; ++i) to[i] = buffer[i];
#endif
}

}  // namespace lanes
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_LANES_INL_H_
