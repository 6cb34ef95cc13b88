// x to the power of y in f32: 2^(y * log2(x)) in doubles, whose errors of 2^-33 leave the rounding to f32. Products are not fused with
// additions, so that vectors (elementwise/power-inl.h) and this, their readable form, give the same bits on every instruction set.
//
//     x = 2^e m, sqrt(1/2) <= m < sqrt(2)       log2(x) = e + f P(f^2), f = (m - 1) / (m + 1)       2^z = 2^n Q(z - n), n whole
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace sluice::kernels::generic {

namespace power_constants {
inline constexpr double kTwoOverLn2 = 0x1.71547652b82fep+1;
/// log2((1 + f) / (1 - f)) = f P(f^2), the first terms of its series: |f| <= 0.1716, 2^-39 of it.
inline constexpr std::array<double, 7> kLog = {kTwoOverLn2,     kTwoOverLn2 / 3,  kTwoOverLn2 / 5, kTwoOverLn2 / 7,
                                               kTwoOverLn2 / 9, kTwoOverLn2 / 11, kTwoOverLn2 / 13};
/// 2^r = Q(r), the first terms of its series: |r| <= 1/2, 2^-37.
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2To4 = kLn2 * kLn2 * kLn2 * kLn2, kLn2To8 = kLn2To4 * kLn2To4;
inline constexpr std::array<double, 10> kExp = {1,
                                                kLn2,
                                                kLn2* kLn2 / 2,
                                                kLn2* kLn2* kLn2 / 6,
                                                kLn2To4 / 24,
                                                kLn2To4* kLn2 / 120,
                                                kLn2To4* kLn2* kLn2 / 720,
                                                kLn2To4* kLn2* kLn2* kLn2 / 5040,
                                                kLn2To8 / 40320,
                                                kLn2To8* kLn2 / 362880};
inline constexpr std::uint64_t kSqrtHalf = 0x3fe6'a09e'667f'3bcd;
inline constexpr std::uint64_t kMantissa = 0x000f'ffff'ffff'ffff;
inline constexpr std::uint64_t kExponentShift = 1024;  // exponents are counted from here, so that none is negative
inline constexpr double kWhole = 0x1p52;               // its last bits are those of a whole number that is added
inline constexpr double kRound = 0x1.8p52;             // what is added to it becomes whole
inline constexpr double kMostExponent = 200;           // beyond all of f32
}  // namespace power_constants

template <std::size_t n>
double unfused_polynomial(double x, const std::array<double, n>& coefficients) noexcept {
  double sum = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

/// Of a positive finite x and a finite y.
inline float power_of_positive(float x, float y) noexcept {
  namespace k = power_constants;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(x)) - k::kSqrtHalf + (k::kExponentShift << 52);
  const double e =
      std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(k::kWhole)) - (k::kWhole + static_cast<double>(k::kExponentShift));
  const double m = std::bit_cast<double>((bits & k::kMantissa) + k::kSqrtHalf);
  const double f = (m - 1) / (m + 1);
  double z = static_cast<double>(y) * (e + f * unfused_polynomial(f * f, k::kLog));
  z = z < -k::kMostExponent ? -k::kMostExponent : z > k::kMostExponent ? k::kMostExponent : z;
  const double shifted = z + k::kRound, n = shifted - k::kRound;
  const double scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + (std::uint64_t{1023} << 52));
  return static_cast<float>(unfused_polynomial(z - n, k::kExp) * scale);
}

/// Whole powers of which products are nearer and faster; elsewhere zeros, negative numbers, infinities and NaN are the standard library's.
inline float power(float x, float y) noexcept {
  if (y == 2.0f) return x * x;
  if (y == 3.0f) return x * x * x;
  if (y == -1.0f) return 1.0f / x;
  if (x > 0.0f && x < HUGE_VALF && std::fabs(y) < HUGE_VALF) return power_of_positive(x, y);
  return std::pow(x, y);
}

}  // namespace sluice::kernels::generic
