// The inner loops. Compiled once for each target of targets.h by including itself; start reading at `curve_of`.
#include "src/kernels/plain/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "src/kernels/plain/curve_constants.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/plain/curves.cc"
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
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
inline constexpr std::int64_t kLanes = HWY_LANES(float) < 16 ? HWY_LANES(float) : 16;

HWY_INLINE V constant(float value) { return hn::Set(D(), value); }

/// r + r^3 P(r^2)
template <std::size_t n>
HWY_INLINE V odd_polynomial(V r, const std::array<float, n>& coefficients) {
  const V r2 = hn::Mul(r, r);
  return fn::fused(hn::Mul(r, r2), fn::polynomial(D(), r2, coefficients), r);
}

/// log(1 + y) for y > -1 as in fn::softplus: what the rounding of 1 + y took away comes back.
HWY_INLINE V log1p(V y) {
  const V one = constant(1.0f), u = hn::Add(one, y);
  const V whole = fn::log(D(), u), rest = hn::Div(hn::Sub(y, hn::Sub(u, one)), u);
  return hn::IfThenElse(hn::Eq(u, constant(HUGE_VALF)), whole, hn::Add(whole, rest));
}

/// |x| <= kMostAngle.
template <Curve curve>
HWY_INLINE V angle_curve(V x) {
  const D d;
  const DI di;
  const V magic = constant(constants::kRoundMagic), shifted = fn::fused(x, constant(kQuartersOfOne), magic);
  const V turns = hn::Sub(shifted, magic);
  const V high = fn::fused(turns, constant(-kQuarterHigh), x), middle = fn::fused(turns, constant(-kQuarterMiddle), high);
  const V r = fn::fused(turns, constant(-kQuarterLow), middle), r2 = hn::Mul(r, r);
  const V sine = odd_polynomial(r, kSine);
  const V cosine = fn::fused(hn::Mul(r2, r2), fn::polynomial(d, r2, kCosine), fn::fused(r2, constant(-0.5f), constant(1.0f)));
  // The number of quarter turns is in the low bits. A cosine is the sine of a quarter turn more.
  const VI quarter = hn::Add(hn::BitCast(di, shifted), hn::Set(di, curve == Curve::kCos ? 1 : 0));
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(quarter, hn::Set(di, 1)), hn::Zero(di)));
  V y;
  if constexpr (curve == Curve::kTan) {
    y = hn::Div(hn::IfThenElse(odd, hn::Neg(cosine), sine), hn::IfThenElse(odd, sine, cosine));
  } else {
    const VI sign = hn::ShiftLeft<30>(hn::And(quarter, hn::Set(di, 2)));
    y = hn::BitCast(d, hn::Xor(hn::BitCast(di, hn::IfThenElse(odd, cosine, sine)), sign));
  }
  return curve == Curve::kCos ? y : hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // the parts of a turn lose the sign of zero
}

HWY_INLINE V arc_tangent(V x) {
  const V magnitude = hn::Abs(x), one = constant(1.0f);
  const auto beyond = hn::Gt(magnitude, one);
  const V y = odd_polynomial(hn::IfThenElse(beyond, hn::Div(one, magnitude), magnitude), kArcTangent);
  const V rest = hn::Add(hn::Sub(constant(kQuarterHigh), y), constant(kQuarterMiddle));
  return hn::CopySign(hn::IfThenElse(beyond, rest, y), x);
}

/// Beyond 1/2 the angle is found from its half.
template <Curve curve>
HWY_INLINE V arc(V x) {
  const V magnitude = hn::Abs(x), half = constant(0.5f), quarter = constant(kQuarterHigh);
  const auto near = hn::Le(magnitude, half);
  const V far_root = hn::Sqrt(hn::Mul(half, hn::Sub(constant(1.0f), magnitude)));
  const V y = odd_polynomial(hn::IfThenElse(near, magnitude, far_root), kArcSine);
  const V twice = hn::Add(y, y);
  if constexpr (curve == Curve::kAsin) return hn::CopySign(hn::IfThenElse(near, y, hn::Sub(quarter, twice)), x);
  const V far_angle = hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Sub(hn::Add(quarter, quarter), twice), twice);
  return hn::IfThenElse(near, hn::Sub(quarter, hn::CopySign(y, x)), far_angle);
}

/// Computes from t = exp(|x| / 2): exp(|x|) can overflow where half of it does not.
template <Curve curve>
HWY_INLINE V hyperbolic(V x) {
  const V magnitude = hn::Abs(x), half = constant(0.5f);
  const V t = fn::exp(D(), hn::Mul(half, magnitude));
  const V rising = hn::Mul(hn::Mul(half, t), t), falling = hn::Div(hn::Div(half, t), t);
  if constexpr (curve == Curve::kCosh) return hn::Add(rising, falling);
  const V y = hn::IfThenElse(hn::Lt(magnitude, constant(1.0f)), odd_polynomial(magnitude, kHyperbolicSine), hn::Sub(rising, falling));
  return hn::CopySign(y, x);
}

HWY_INLINE V inverse_hyperbolic_sine(V x) {
  const V magnitude = hn::Abs(x), square = hn::Mul(magnitude, magnitude), one = constant(1.0f);
  const auto far_out = hn::Ge(magnitude, constant(kFarOut));
  const V beside = hn::Div(square, hn::Add(one, hn::Sqrt(hn::Add(one, square))));
  const V near = log1p(hn::Add(magnitude, beside)), far_away = hn::Add(fn::log(D(), magnitude), constant(constants::kLn2High));
  return hn::CopySign(hn::IfThenElse(far_out, far_away, near), x);
}

HWY_INLINE V inverse_hyperbolic_cosine(V x) {
  const V one = constant(1.0f), above = hn::Sub(x, one);
  const V near = log1p(hn::Add(above, hn::Sqrt(hn::Mul(above, hn::Add(x, one)))));
  const V y = hn::IfThenElse(hn::Ge(x, constant(kFarOut)), hn::Add(fn::log(D(), x), constant(constants::kLn2High)), near);
  return hn::IfThenElse(hn::Lt(x, one), constant(std::numeric_limits<float>::quiet_NaN()), y);
}

HWY_INLINE V inverse_hyperbolic_tangent(V x) {
  const V magnitude = hn::Abs(x);
  const V y = log1p(hn::Div(hn::Add(magnitude, magnitude), hn::Sub(constant(1.0f), magnitude)));
  return hn::CopySign(hn::Mul(constant(0.5f), y), x);
}

/// tanh(log(1 + e)) is w / (w + 2) with w = e (e + 2).
HWY_INLINE V mish(V x) {
  const V two = constant(2.0f), e = fn::exp(D(), fn::at_most(x, constant(kMishStraight)));
  const V w = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(w, hn::Add(w, two)));
}

template <Curve curve>
HWY_INLINE V curve_of(V x, float a, float b) {
  const V one = constant(1.0f), zero = hn::Zero(D());
  if constexpr (curve == Curve::kAtan) return arc_tangent(x);
  if constexpr (curve == Curve::kAsin || curve == Curve::kAcos) return arc<curve>(x);
  if constexpr (curve == Curve::kSinh || curve == Curve::kCosh) return hyperbolic<curve>(x);
  if constexpr (curve == Curve::kAsinh) return inverse_hyperbolic_sine(x);
  if constexpr (curve == Curve::kAcosh) return inverse_hyperbolic_cosine(x);
  if constexpr (curve == Curve::kAtanh) return inverse_hyperbolic_tangent(x);
  if constexpr (curve == Curve::kMish) return mish(x);
  if constexpr (curve == Curve::kSwish) return hn::Div(x, hn::Add(one, fn::exp(D(), hn::Mul(constant(-a), x))));
  if constexpr (curve == Curve::kSoftsign) return hn::Div(x, hn::Add(one, hn::Abs(x)));
  if constexpr (curve == Curve::kSelu) {
    const V below = hn::Mul(constant(a), fn::expm1_negative(D(), x));
    return hn::Mul(constant(b), hn::IfThenElse(hn::Gt(x, zero), x, below));
  }
  if constexpr (curve == Curve::kCelu)
    return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(constant(a), fn::expm1_negative(D(), hn::Div(x, constant(a)))), x);
  return angle_curve<curve>(x);
}

constexpr bool is_angle_curve(Curve curve) noexcept { return curve == Curve::kSin || curve == Curve::kCos || curve == Curve::kTan; }

template <Curve curve>
float large_angle(float x) noexcept {
  return curve == Curve::kSin ? std::sin(x) : curve == Curve::kCos ? std::cos(x) : std::tan(x);
}

template <Curve curve>
void run_as(const CurveCall& call, const float* x, float* out, std::int64_t n) noexcept {
  const D d;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto count = static_cast<std::size_t>(std::min(kLanes, n - i));
    const bool whole = count == static_cast<std::size_t>(kLanes);
    const V v = whole ? hn::LoadU(d, x + i) : lanes::load_first(d, x + i, count);
    if (is_angle_curve(curve) && !hn::AllTrue(d, hn::Le(hn::Abs(v), constant(kMostAngle)))) {
      for (std::int64_t k = i; k < i + static_cast<std::int64_t>(count); ++k) {
        const bool large = !(std::fabs(x[k]) <= kMostAngle);
        out[k] = large ? large_angle<curve>(x[k]) : hn::GetLane(curve_of<curve>(constant(x[k]), call.a, call.b));
      }
      continue;
    }
    const V y = curve_of<curve>(v, call.a, call.b);
    whole ? hn::StoreU(y, d, out + i) : lanes::store_first(y, d, out + i, count);
  }
}

template <int... curve>
constexpr std::array<CurveRun, sizeof...(curve)> runs_of(std::integer_sequence<int, curve...>) {
  return {run_as<static_cast<Curve>(curve)>...};
}

void run(const CurveCall& call, const float* x, float* out, std::int64_t n) noexcept {
  static constexpr auto kRuns = runs_of(std::make_integer_sequence<int, kCurveCount>());
  kRuns[static_cast<std::size_t>(call.curve)](call, x, out, n);
}

constexpr CurveRun kRun = run;

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::plain
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::plain {

CurveRun curve_run(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kRun) }

}  // namespace sluice::kernels::plain
#endif  // HWY_ONCE
