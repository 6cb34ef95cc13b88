// Exponentials, quotients and sums of products that may be subnormal, with the bits of the plain operations. Where a CPU stops for each
// subnormal operand or result (some 150 cycles on Intel's), rows of a softmax with a mask of -100, and products with its weights, took twenty
// times as long. Here such values are computed 2^64 times as large, where they are normal, or left out where they change nothing.
//
//     rounding to whole subnormals:    2^-62 + x has whole steps of 2^-85 = 2^64 * 2^-149, for 0 <= x < 2^-62
//
// Included once for each target.
#if defined(SLUICE_SUBNORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_SUBNORMAL_INL_H_
#undef SLUICE_SUBNORMAL_INL_H_
#else
#define SLUICE_SUBNORMAL_INL_H_
#endif

#include <bit>
#include <cstdint>

#include "hwy/highway.h"
#include "src/core/build_list.h"
#include "src/kernels/elementwise/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels {
namespace HWY_NAMESPACE {
namespace subnormal {

namespace hn = hwy::HWY_NAMESPACE;
namespace fn = kernels::HWY_NAMESPACE::functions;

/// Arm's cores compute with subnormals as fast as with others.
inline constexpr bool kAreSlow = (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3) && !kSmallCode;

inline constexpr float kScale = 0x1p64f, kUnscale = 0x1p-64f;
/// The least subnormal, 2^64 times as large.
inline constexpr float kScaledUnit = 0x1p-85f;
inline constexpr std::uint32_t kMagnitude = 0x7fffffffu, kLeastNormal = 0x00800000u;

/// functions::exp(x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  if constexpr (!kAreSlow) return fn::exp(d, x);
  const hn::RebindToSigned<D> di;
  const auto parts = fn::exp_parts_in_range(d, x);
  const V mantissa = hn::Add(hn::Set(d, 1.0f), parts.expm1_r);
  const auto tiny = hn::Lt(parts.real_n, hn::Set(d, -126.0f));  // less than 2^-126: the mantissa is less than sqrt(2)
  if (hn::AllFalse(d, tiny)) return fn::times_power_of_two(d, mantissa, parts.n, parts.real_n);
  const V normal =
      fn::times_power_of_two(d, mantissa, hn::IfThenZeroElse(hn::RebindMask(di, tiny), parts.n), hn::IfThenZeroElse(tiny, parts.real_n));
  const V one = hn::Set(d, 0x1p-62f);
  const V scaled = hn::Mul(mantissa, fn::power_of_two(d, hn::Add(parts.n, hn::Set(di, 64))));
  const auto units = hn::Sub(hn::BitCast(di, hn::Add(scaled, one)), hn::BitCast(di, one));
  return hn::IfThenElse(tiny, hn::BitCast(d, units), normal);
}

/// e / total, of e >= 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quotient(D d, V e, V total) {
  if constexpr (!kAreSlow) return hn::Div(e, total);
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, e);
  const auto tiny = hn::And(hn::Lt(bits, hn::Set(di, static_cast<std::int32_t>(kLeastNormal))), hn::Gt(bits, hn::Zero(di)));
  if (hn::AllFalse(di, tiny)) return hn::Div(e, total);
  const auto tiny_floats = hn::RebindMask(d, tiny);
  const V one = hn::Set(d, 1.0f);
  const auto usual = hn::And(hn::Ge(total, one), hn::Le(total, hn::Set(d, 0x1p20f)));
  if (!hn::AllTrue(d, usual)) return hn::Div(e, total);
  const V normal = hn::Div(hn::IfThenElse(tiny_floats, one, e), total);
  // A whole number of least subnormals, divided; then rounded, as one rounding would do it: the quotient before may have been rounded to a
  // half that it is not.
  const V magic = hn::Set(d, 0x1p23f);
  const V units = hn::ConvertTo(d, hn::IfThenElseZero(tiny, bits));
  const V divided = hn::Div(units, total);
  const V left = hn::NegMulAdd(divided, total, units);
  const V nearest = hn::Sub(hn::Add(divided, magic), magic);
  const V half = hn::Set(d, 0.5f);
  const auto rounded_to_half = hn::And(hn::Eq(hn::Abs(hn::Sub(divided, nearest)), half), hn::Ne(left, hn::Zero(d)));
  const V whole = hn::IfThenElse(rounded_to_half, hn::Add(divided, hn::CopySign(half, left)), nearest);
  return hn::IfThenElse(tiny_floats, hn::BitCast(d, hn::ConvertTo(di, whole)), normal);
}

inline std::uint32_t magnitude_of(float x) noexcept { return std::bit_cast<std::uint32_t>(x) & kMagnitude; }

/// Sums of products that share their left factors: chains of fused multiply-adds, kVectors vectors of them.
template <class D, int kVectors>
class Chains {
 public:
  using V = hn::Vec<D>;

  /// From 0.
  HWY_INLINE Chains() {
    for (V& sum : sums_) sum = hn::Zero(D());
  }

  HWY_INLINE void add(float left, const V (&right)[kVectors]) {
    const std::uint32_t magnitude = magnitude_of(left);
    if (magnitude >= kLeastNormal) {
      is_scaled_ ? add_first(left, right) : multiply(left, right);
    } else if (is_scaled_) {
      add_scaled(left, magnitude, right);
    } else if (magnitude == 0 || !changes_nothing(right)) {
      multiply(left, right);
    }
  }

  HWY_INLINE const V (&sums())[kVectors] {
    unscale();
    return sums_;
  }

 private:
  HWY_INLINE void multiply(float left, const V (&right)[kVectors]) {
    for (int v = 0; v < kVectors; ++v) sums_[v] = fn::fused(hn::Set(D(), left), right[v], sums_[v]);
  }

  HWY_INLINE void unscale() {
    if (!is_scaled_) return;
    is_scaled_ = false;
    for (V& sum : sums_) sum = hn::Mul(sum, hn::Set(D(), kUnscale));  // exact: all are whole numbers of units
  }

  /// All factors so far were subnormal or 0, and so are the sums, less than half the least normal number: kScale times as large they are
  /// rounded to whole units. The second product has the sign that a 0 gets.
  HWY_INLINE void add_scaled(float left, std::uint32_t magnitude, const V (&right)[kVectors]) {
    const D d;
    const float scaled = static_cast<float>(static_cast<std::int32_t>(magnitude)) * kScaledUnit;
    const V factor = hn::Set(d, std::signbit(left) ? -scaled : scaled);
    const V magic = hn::Set(d, 0x1.8p-62f), limit = hn::Set(d, 0x1p-63f);
    V next[kVectors];
    bool are_small = true;
    for (int v = 0; v < kVectors; ++v) {
      const V rounded = hn::Sub(fn::fused(factor, right[v], hn::Add(sums_[v], magic)), magic);
      are_small = are_small && hn::AllTrue(d, hn::Lt(hn::Abs(rounded), limit));
      next[v] = hn::CopySign(rounded, fn::fused(factor, right[v], sums_[v]));
    }
    if (!are_small) {
      unscale();
      return multiply(left, right);
    }
    for (int v = 0; v < kVectors; ++v) sums_[v] = next[v];
  }

  /// The first factor that is a normal number. Where its products are not tiny, of the sums before only the sign matters, and that they are less
  /// than any bit of the product: they are made larger, up to 2^-103, so as to be no subnormals.
  HWY_INLINE void add_first(float left, const V (&right)[kVectors]) {
    const D d;
    bool are_usual = true;
    for (int v = 0; v < kVectors; ++v) {
      const V product = hn::Abs(hn::Mul(hn::Set(d, left), right[v]));
      const auto usual = hn::And(hn::Ge(product, hn::Set(d, 0x1p-50f)), hn::Le(product, hn::Set(d, 0x1p100f)));
      const auto nothing = hn::And(hn::Eq(product, hn::Zero(d)), hn::Eq(sums_[v], hn::Zero(d)));  // a channel of zeros
      are_usual = are_usual && hn::AllTrue(d, hn::Or(usual, nothing));
    }
    if (are_usual) {
      is_scaled_ = false;
      for (V& sum : sums_) sum = hn::Mul(sum, hn::Set(d, 0x1p-40f));
    } else {
      unscale();
    }
    multiply(left, right);
  }

  /// Is the product with a subnormal factor less than a quarter of the last bit of each sum, or a 0 that leaves the sum as it is?
  HWY_INLINE bool changes_nothing(const V (&right)[kVectors]) const {
    const D d;
    const hn::RebindToUnsigned<D> du;
    bool changes = false;
    for (int v = 0; v < kVectors; ++v) {
      const auto small = hn::And(hn::Ge(hn::Abs(sums_[v]), hn::Set(d, 0x1p-50f)), hn::Le(hn::Abs(right[v]), hn::Set(d, 0x1p20f)));
      const auto is_minus_zero = hn::RebindMask(d, hn::Eq(hn::BitCast(du, sums_[v]), hn::Set(du, 0x80000000u)));
      const auto zero = hn::AndNot(is_minus_zero, hn::Eq(right[v], hn::Zero(d)));
      changes = changes || !hn::AllTrue(d, hn::Or(small, zero));
    }
    return !changes;
  }

  V sums_[kVectors];
  bool is_scaled_ = true;  // sums_ are kScale times the sums
};

/// Is one of the values subnormal?
template <class D>
HWY_INLINE bool is_among(D, const float* values, std::int64_t n) {
  const hn::RebindToUnsigned<D> du;
  constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  const auto magnitude = hn::Set(du, kMagnitude), one = hn::Set(du, 1u);
  auto least = magnitude;
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values);
  std::int64_t i = 0;
  // 0 becomes the largest number of all.
  for (; i + kLanes <= n; i += kLanes) least = hn::Min(least, hn::Sub(hn::And(hn::LoadU(du, bits + i), magnitude), one));
  bool found = !hn::AllFalse(du, hn::Lt(least, hn::Set(du, kLeastNormal - 1)));
  for (; i < n; ++i) found = found || magnitude_of(values[i]) - 1 < kLeastNormal - 1;
  return found;
}

}  // namespace subnormal
}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_SUBNORMAL_INL_H_
