// Activations, one value at a time. Each is a fixed sequence of correctly rounded operations, so that every CPU computes the same bits;
// `elementwise/functions-inl.h` is the same text for vectors, and a test compares the two bit by bit.
//
// Conditions are written `x < limit ? limit : x`, which lets NaN through and keeps the sign of zero.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sluice/core/activation.h"
#include "src/kernels/elementwise/function_constants.h"

namespace sluice::kernels::reference {

inline float at_least(float x, float low) noexcept { return x < low ? low : x; }
inline float at_most(float x, float high) noexcept { return high < x ? high : x; }

/// The polynomial with these coefficients at x, highest power first.
template <std::size_t n>
float polynomial(float x, const std::array<float, n>& coefficients) noexcept {
  float sum = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

/// x = n ln 2 + r: n and exp(r) - 1.
struct ExpParts {
  std::int32_t n;
  float expm1_r;
};

inline ExpParts exp_parts(float x) noexcept {
  const float shifted = std::fma(x, constants::kLog2E, constants::kRoundMagic);
  const float n = shifted - constants::kRoundMagic;
  const float r = std::fma(n, -constants::kLn2Low, std::fma(n, -constants::kLn2High, x));
  const float expm1_r = std::fma(r * r, polynomial(r, constants::kExpm1), r);
  return {static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(constants::kRoundMagic)), expm1_r};
}

/// 2^n for -126 <= n <= 127.
inline float power_of_two(std::int32_t n) noexcept { return std::bit_cast<float>((static_cast<std::uint32_t>(n) + 127u) << 23); }

/// The scale is applied in two halves: 2^128 is no f32, and a subnormal result must round once.
inline float exp(float x) noexcept {
  const ExpParts parts = exp_parts(at_most(at_least(x, constants::kExpLow), constants::kExpHigh));
  const std::int32_t half = parts.n >> 1;
  return (1.0f + parts.expm1_r) * power_of_two(half) *
         power_of_two(static_cast<std::int32_t>(static_cast<std::uint32_t>(parts.n) - static_cast<std::uint32_t>(half)));
}

/// exp(x) - 1 for x <= 0.
inline float expm1_negative(float x) noexcept {
  const ExpParts parts = exp_parts(at_most(at_least(x, constants::kExpm1Low), 0.0f));
  const float scale = power_of_two(parts.n);
  return std::fma(scale, parts.expm1_r, scale - 1.0f);
}

/// x = 2^e (1 + f). Subnormal x is scaled into the normal range first.
inline float log(float x) noexcept {
  const bool tiny = x < std::numeric_limits<float>::min();
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(tiny ? x * 0x1p23f : x) - constants::kSqrtHalfBits;
  const float e = static_cast<float>(static_cast<std::int32_t>(bits) >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = std::bit_cast<float>((bits & constants::kMantissaBits) + constants::kSqrtHalfBits) - 1.0f;
  const float f2 = f * f;
  const float tail = std::fma(f2 * f, polynomial(f, constants::kLog), e * constants::kLn2Low);
  const float result = std::fma(e, constants::kLn2High, f + std::fma(f2, -0.5f, tail));
  if (x < 0.0f) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0.0f) return -std::numeric_limits<float>::infinity();
  return x < std::numeric_limits<float>::infinity() ? result : x;
}

inline float sigmoid(float x) noexcept { return 1.0f / (1.0f + exp(-x)); }

inline float tanh(float x) noexcept {
  const float z = x * x, magnitude = std::fabs(x);
  const float small = std::fma(x * z, polynomial(z, constants::kTanh), x);
  const float large = 1.0f - 2.0f / (1.0f + exp(magnitude + magnitude));
  return magnitude < constants::kTanhSmall ? small : std::copysign(large, x);
}

inline float erf(float x) noexcept {
  const float magnitude = std::fabs(x);
  const float small = std::fma(x, polynomial(x * x, constants::kErfSmall), x);
  const float large = 1.0f - exp(-polynomial(at_most(magnitude, constants::kErfLimit), constants::kErfLarge));
  return magnitude < 1.0f ? small : std::copysign(large, x);
}

inline float gelu(float x) noexcept { return 0.5f * x * (1.0f + erf(x * constants::kSqrtHalf)); }

/// x / 2 * (1 + tanh(u)) is x * sigmoid(2 u), which loses nothing where the tangent comes near -1.
inline float gelu_tanh(float x) noexcept { return x / (1.0f + exp(x * std::fma(x * x, constants::kGeluCubic, constants::kGeluLinear))); }

/// log(1 + y) = log(u) + (y - (u - 1)) / u with u the rounded 1 + y: what the rounding took away comes back.
inline float softplus(float x) noexcept {
  const float y = exp(-std::fabs(x));
  const float u = 1.0f + y;
  return at_least(x, 0.0f) + (log(u) + (y - (u - 1.0f)) / u);
}

/// y = f(x).
inline float apply(const Activation& f, float x) noexcept {
  switch (f.function) {
    case Function::kNone:
      return x;
    case Function::kRelu:
      return at_least(x, 0.0f);
    case Function::kClip:
      return at_most(at_least(x, f.a), f.b);
    case Function::kLeakyRelu:
      return x < 0.0f ? f.a * x : x;
    case Function::kSigmoid:
      return sigmoid(x);
    case Function::kHardSigmoid:
      return at_least(at_most(std::fma(f.a, x, f.b), 1.0f), 0.0f);
    case Function::kHardSwish:
      return x * at_least(at_most(std::fma(x, 1.0f / 6.0f, 0.5f), 1.0f), 0.0f);
    case Function::kSilu:
      return x / (1.0f + exp(-x));
    case Function::kTanh:
      return tanh(x);
    case Function::kExp:
      return exp(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kErf:
      return erf(x);
    case Function::kGelu:
      return gelu(x);
    case Function::kNeg:
      return -x;
    case Function::kAbs:
      return std::fabs(x);
    case Function::kLog:
      return log(x);
    case Function::kReciprocal:
      return 1.0f / x;
    case Function::kElu:
      return x < 0.0f ? f.a * expm1_negative(x) : x;
    case Function::kSoftplus:
      return softplus(x);
    case Function::kFloor:
      return std::floor(x);
    case Function::kCeil:
      return std::ceil(x);
    case Function::kGeluTanh:
      return gelu_tanh(x);
  }
  return x;
}

}  // namespace sluice::kernels::reference
