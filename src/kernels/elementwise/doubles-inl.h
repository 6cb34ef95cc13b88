// Doubles: as many lanes as one vector has, and floats of half the width beside them.
#if defined(SLUICE_DOUBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_DOUBLES_INL_H_
#undef SLUICE_DOUBLES_INL_H_
#else
#define SLUICE_DOUBLES_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE::doubles {

namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::CappedTag<double, 8>;
using V64 = hn::Vec<D64>;
using Narrow = hn::Rebind<float, D64>;
inline constexpr std::int64_t kWideLanes = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;

HWY_INLINE V64 widened(const float* x) { return hn::PromoteTo(D64(), hn::LoadU(Narrow(), x)); }

/// Highway's one-lane target makes infinities finite.
HWY_INLINE hn::Vec<Narrow> narrowed(V64 x) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Vec<Narrow>(static_cast<float>(hn::GetLane(x)));
#else
  return hn::DemoteTo(Narrow(), x);
#endif
}

}  // namespace sluice::kernels::HWY_NAMESPACE::doubles
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_DOUBLES_INL_H_
