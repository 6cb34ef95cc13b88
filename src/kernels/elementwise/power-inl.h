// generic::power in vectors: the same operations, lane by lane (generic/power.h).
#if defined(SLUICE_ELEMENTWISE_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_ELEMENTWISE_POWER_INL_H_
#undef SLUICE_ELEMENTWISE_POWER_INL_H_
#else
#define SLUICE_ELEMENTWISE_POWER_INL_H_
#endif

#include "hwy/highway.h"
#include "src/kernels/elementwise/doubles-inl.h"
#include "src/kernels/generic/power.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE::powers {

namespace hn = hwy::HWY_NAMESPACE;
namespace constants = generic::power_constants;

using doubles::D64;
using doubles::Narrow;
using doubles::V64;
using U64 = hn::RebindToUnsigned<D64>;

template <std::size_t n>
HWY_INLINE V64 polynomial(V64 x, const std::array<double, n>& coefficients) {
  V64 sum = hn::Set(D64(), coefficients[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = hn::Add(hn::Mul(sum, x), hn::Set(D64(), coefficients[i]));
  return sum;
}

HWY_INLINE V64 of_positive(V64 x, V64 y) {
  const D64 d;
  const U64 du;
  const V64 one = hn::Set(d, 1.0), most = hn::Set(d, constants::kMostExponent), round = hn::Set(d, constants::kRound);
  const auto bits = hn::Add(hn::BitCast(du, x), hn::Set(du, (constants::kExponentShift << 52) - constants::kSqrtHalf));
  const auto whole = hn::Or(hn::ShiftRight<52>(bits), hn::BitCast(du, hn::Set(d, constants::kWhole)));
  const V64 e = hn::Sub(hn::BitCast(d, whole), hn::Set(d, constants::kWhole + static_cast<double>(constants::kExponentShift)));
  const V64 m = hn::BitCast(d, hn::Add(hn::And(bits, hn::Set(du, constants::kMantissa)), hn::Set(du, constants::kSqrtHalf)));
  const V64 f = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V64 exponent = hn::Mul(y, hn::Add(e, hn::Mul(f, polynomial(hn::Mul(f, f), constants::kLog))));
  const V64 z = hn::Max(hn::Min(exponent, most), hn::Neg(most));
  const V64 shifted = hn::Add(z, round), n = hn::Sub(shifted, round);
  const auto scale = hn::Add(hn::ShiftLeft<52>(hn::BitCast(du, shifted)), hn::Set(du, std::uint64_t{1023} << 52));
  return hn::Mul(polynomial(hn::Sub(z, n), constants::kExp), hn::BitCast(d, scale));
}

/// `D` has as many floats as fit a vector, at most 16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power(D d, V x, V y) {
  constexpr int kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;
  HWY_ALIGN float xs[kLanes], ys[kLanes], out[kLanes];
  const V infinity = hn::Set(d, HUGE_VALF);
  const auto known = hn::And(hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, infinity)), hn::Lt(hn::Abs(y), infinity));
  hn::Store(hn::IfThenElse(known, x, hn::Set(d, 1.0f)), d, xs);
  hn::Store(hn::IfThenElseZero(known, y), d, ys);
  for (int i = 0; i < kLanes; i += doubles::kWideLanes) {
    const V64 wide_x = doubles::widened(xs + i), wide_y = doubles::widened(ys + i);
    hn::StoreU(doubles::narrowed(of_positive(wide_x, wide_y)), Narrow(), out + i);
  }
  const V square = hn::Mul(x, x);
  const auto is = [&](float whole) HWY_ATTR { return hn::Eq(y, hn::Set(d, whole)); };
  const auto two = is(2.0f), three = is(3.0f), inverse = is(-1.0f);
  const auto others = hn::Or(hn::Or(known, two), hn::Or(three, inverse));
  if (!hn::AllTrue(d, others)) {
    hn::Store(x, d, xs);
    hn::Store(y, d, ys);
    for (int i = 0; i < kLanes; ++i)
      if (!(xs[i] > 0.0f && xs[i] < HUGE_VALF && std::fabs(ys[i]) < HUGE_VALF)) out[i] = std::pow(xs[i], ys[i]);
  }
  V result = hn::IfThenElse(two, square, hn::Load(d, out));
  result = hn::IfThenElse(three, hn::Mul(square, x), result);
  return hn::IfThenElse(inverse, hn::Div(hn::Set(d, 1.0f), x), result);
}

}  // namespace sluice::kernels::HWY_NAMESPACE::powers
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_ELEMENTWISE_POWER_INL_H_
