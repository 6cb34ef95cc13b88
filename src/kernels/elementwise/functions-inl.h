// Activations for vectors: reference/functions.h with vectors for floats, the same operations in the same order, so the same bits.
// Included once for each instruction set, by any kernel with an activation to fuse: `apply(d, activation, x)`.
#if defined(SLUICE_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_FUNCTIONS_INL_H_
#undef SLUICE_FUNCTIONS_INL_H_
#else
#define SLUICE_FUNCTIONS_INL_H_
#endif

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "sluice/core/activation.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/function_constants.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels {
namespace HWY_NAMESPACE {
namespace functions {

namespace hn = hwy::HWY_NAMESPACE;

/// a * b + c, rounded once. Highway's one-lane target rounds twice.
template <class V>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#else
  return hn::MulAdd(a, b, c);
#endif
}

// x86's maximum and minimum return their second operand on a tie or a NaN: just what `x < low ? low : x` says.
template <class V>
HWY_INLINE V at_least(V x, V low) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(low, x);
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

template <class V>
HWY_INLINE V at_most(V x, V high) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Lt(high, x), high, x);
#endif
}

// Highway's one-lane floor and ceiling lose the sign of zero.
template <class V>
HWY_INLINE V floor(V x) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::floor(hn::GetLane(x)));
#else
  return hn::Floor(x);
#endif
}

template <class V>
HWY_INLINE V ceil(V x) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::ceil(hn::GetLane(x)));
#else
  return hn::Ceil(x);
#endif
}

template <class D, class V = hn::Vec<D>, std::size_t n>
HWY_INLINE V polynomial(D d, V x, const std::array<float, n>& coefficients) {
  V sum = hn::Set(d, coefficients[n - 1]);
  HWY_UNROLL(8)
  for (std::size_t i = n - 1; i > 0; --i) sum = fused(sum, x, hn::Set(d, coefficients[i - 1]));
  return sum;
}

template <class D>
struct ExpParts {
  hn::Vec<hn::RebindToSigned<D>> n;
  hn::Vec<D> real_n;
  hn::Vec<D> expm1_r;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<D> exp_parts(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, constants::kRoundMagic);
  const V shifted = fused(x, hn::Set(d, constants::kLog2E), magic);
  const V n = hn::Sub(shifted, magic);
  const V r = fused(n, hn::Set(d, -constants::kLn2Low), fused(n, hn::Set(d, -constants::kLn2High), x));
  const V expm1_r = fused(hn::Mul(r, r), polynomial(d, r, constants::kExpm1), r);
  return {hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic)), n, expm1_r};
}

template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// The parts of exp(x), of any x: beyond the range it is 0 or infinite.
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpParts<D> exp_parts_in_range(D d, V x) {
  return exp_parts(d, at_most(at_least(x, hn::Set(d, constants::kExpLow)), hn::Set(d, constants::kExpHigh)));
}

/// mantissa * 2^n, rounded once; real_n is n.
template <class D, class VI, class V = hn::Vec<D>>
HWY_INLINE V times_power_of_two(D d, V mantissa, [[maybe_unused]] VI n, [[maybe_unused]] V real_n) {
#if HWY_TARGET == HWY_AVX3
  (void)d;
  // The same two halves in one instruction, rounded once. (The unmasked form reads an undefined register, of which g++ warns.)
  return V{_mm512_mask_scalef_ps(mantissa.raw, 0xffff, mantissa.raw, real_n.raw)};
#else
  const auto half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(mantissa, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const auto parts = exp_parts_in_range(d, x);
  return times_power_of_two(d, hn::Add(hn::Set(d, 1.0f), parts.expm1_r), parts.n, parts.real_n);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_negative(D d, V x) {
  const auto parts = exp_parts(d, at_most(at_least(x, hn::Set(d, constants::kExpm1Low)), hn::Zero(d)));
  const V scale = power_of_two(d, parts.n);
  return fused(scale, parts.expm1_r, hn::Sub(scale, hn::Set(d, 1.0f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto tiny = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p23f)), x);
  const auto origin = hn::Set(di, static_cast<std::int32_t>(constants::kSqrtHalfBits));
  const auto bits = hn::Sub(hn::BitCast(di, normal), origin);
  const V e = hn::Sub(hn::ConvertTo(d, hn::ShiftRight<23>(bits)), hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  const auto mantissa = hn::And(bits, hn::Set(di, static_cast<std::int32_t>(constants::kMantissaBits)));
  const V f = hn::Sub(hn::BitCast(d, hn::Add(mantissa, origin)), hn::Set(d, 1.0f));
  const V f2 = hn::Mul(f, f);
  const V tail = fused(hn::Mul(f2, f), polynomial(d, f, constants::kLog), hn::Mul(e, hn::Set(d, constants::kLn2Low)));
  V result = fused(e, hn::Set(d, constants::kLn2High), hn::Add(f, fused(f2, hn::Set(d, -0.5f), tail)));
  result = hn::IfThenElse(hn::Lt(x, infinity), result, x);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), result);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Mul(x, x), magnitude = hn::Abs(x);
  const V small = fused(hn::Mul(x, z), polynomial(d, z, constants::kTanh), x);
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(one, exp(d, hn::Add(magnitude, magnitude)))));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, constants::kTanhSmall)), small, hn::CopySign(large, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V magnitude = hn::Abs(x);
  const V small = fused(x, polynomial(d, hn::Mul(x, x), constants::kErfSmall), x);
  const V power = polynomial(d, at_most(magnitude, hn::Set(d, constants::kErfLimit)), constants::kErfLarge);
  return hn::IfThenElse(hn::Lt(magnitude, one), small, hn::CopySign(hn::Sub(one, exp(d, hn::Neg(power))), x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  const V erf_plus_one = hn::Add(hn::Set(d, 1.0f), erf(d, hn::Mul(x, hn::Set(d, constants::kSqrtHalf))));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), erf_plus_one);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V slope = fused(hn::Mul(x, x), hn::Set(d, constants::kGeluCubic), hn::Set(d, constants::kGeluLinear));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp(d, hn::Mul(x, slope))));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V y = exp(d, hn::Neg(hn::Abs(x)));
  const V u = hn::Add(one, y);
  const V rest = hn::Div(hn::Sub(y, hn::Sub(u, one)), u);
  return hn::Add(at_least(x, hn::Zero(d)), hn::Add(log(d, u), rest));
}

/// From `low` to `high`; what is no number stays so.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V within(D d, float low, float high, V x) {
  return at_most(at_least(x, hn::Set(d, low)), hn::Set(d, high));
}

/// y = f(x). Called with a constant function inside a loop, or with any outside of one: the switch is not free. Of those that are many
/// instructions, a trimmed build has what its models need (core/build_list.h); it opens no others.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V apply(D d, const Activation& f, V x) {
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Set(d, f.a), b = hn::Set(d, f.b);
  switch (f.function) {
    case Function::kNone:
      return x;
    case Function::kRelu:
      return at_least(x, zero);
    case Function::kClip:
      return at_most(at_least(x, a), b);
    case Function::kLeakyRelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, x), x);
    case Function::kSigmoid:
      if constexpr (has_function(static_cast<int>(Function::kSigmoid))) return sigmoid(d, x);
      break;
    case Function::kHardSigmoid:
      return at_least(at_most(fused(a, x, b), one), zero);
    case Function::kHardSwish:
      return hn::Mul(x, at_least(at_most(fused(x, hn::Set(d, 1.0f / 6.0f), hn::Set(d, 0.5f)), one), zero));
    case Function::kSilu:
      if constexpr (has_function(static_cast<int>(Function::kSilu))) return hn::Div(x, hn::Add(one, exp(d, hn::Neg(x))));
      break;
    case Function::kTanh:
      if constexpr (has_function(static_cast<int>(Function::kTanh))) return tanh(d, x);
      break;
    case Function::kExp:
      if constexpr (has_function(static_cast<int>(Function::kExp))) return exp(d, x);
      break;
    case Function::kSqrt:
      return hn::Sqrt(x);
    case Function::kErf:
      if constexpr (has_function(static_cast<int>(Function::kErf))) return erf(d, x);
      break;
    case Function::kGelu:
      if constexpr (has_function(static_cast<int>(Function::kGelu))) return gelu(d, x);
      break;
    case Function::kNeg:
      return hn::Neg(x);
    case Function::kAbs:
      return hn::Abs(x);
    case Function::kLog:
      if constexpr (has_function(static_cast<int>(Function::kLog))) return log(d, x);
      break;
    case Function::kReciprocal:
      return hn::Div(one, x);
    case Function::kElu:
      if constexpr (has_function(static_cast<int>(Function::kElu)))
        return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, expm1_negative(d, x)), x);
      break;
    case Function::kSoftplus:
      if constexpr (has_function(static_cast<int>(Function::kSoftplus))) return softplus(d, x);
      break;
    case Function::kFloor:
      return functions::floor(x);
    case Function::kCeil:
      return functions::ceil(x);
    case Function::kGeluTanh:
      if constexpr (has_function(static_cast<int>(Function::kGeluTanh))) return gelu_tanh(d, x);
      break;
  }
  return x;
}

}  // namespace functions
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_FUNCTIONS_INL_H_
