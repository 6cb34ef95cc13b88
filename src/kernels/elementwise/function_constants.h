// Polynomials and limits of the transcendental functions, one copy for the scalar and the vector form.
//
// Minimax in relative error of the function (Remez, in double precision, rounded to f32); the comment gives range and error. Coefficients
// rise with the power.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::kernels::constants {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2High = 0.693147182f;
inline constexpr float kLn2Low = -1.90465421e-9f;  // ln 2 - kLn2High
/// 1.5 * 2^23: a sum with it has the nearest whole number in its low bits.
inline constexpr float kRoundMagic = 12582912.0f;
/// Beyond these exp is 0 or infinite in f32, and below this expm1 is -1.
inline constexpr float kExpLow = -104.0f, kExpHigh = 89.0f, kExpm1Low = -30.0f;
/// expm1(r) = r + r^2 Q(r), |r| <= ln2 / 2, 2^-26.
inline constexpr std::array<float, 5> kExpm1 = {0x1p-1f, 0x1.5554aep-3f, 0x1.555486p-5f, 0x1.12288p-7f, 0x1.6d99bep-10f};
/// log(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2), 2^-27.
inline constexpr std::array<float, 8> kLog = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547244p-3f,
                                              0x1.22da1cp-3f, -0x1.0d8542p-3f, 0x1.055b6ap-3f, -0x1.38b584p-4f};
inline constexpr std::uint32_t kSqrtHalfBits = 0x3f3504f3u;
inline constexpr std::uint32_t kMantissaBits = 0x007fffffu;
/// tanh(x) = x + x^3 P(x^2), |x| < 5/8, 2^-27.
inline constexpr std::array<float, 5> kTanh = {-0x1.55553ap-2f, 0x1.1107acp-3f, -0x1.b83a1p-5f, 0x1.51c5c2p-6f, -0x1.733f28p-8f};
inline constexpr float kTanhSmall = 0.625f;
/// erf(x) = x + x P(x^2), |x| < 1, 2^-29.
inline constexpr std::array<float, 7> kErfSmall = {0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                                                   0x1.5405bp-8f,  -0x1.a3f6f6p-11f, 0x1.496a18p-14f};
/// erf(x) = 1 - exp(-P(x)), 1 <= x <= 4, 2^-29; 1 beyond.
inline constexpr std::array<float, 7> kErfLarge = {0x1.65e3d6p-12f, 0x1.2088f8p+0f, 0x1.46babep-1f, 0x1.a65472p-4f,
                                                   -0x1.65cda6p-6f, 0x1.825f2ep-9f, -0x1.86e42p-13f};
inline constexpr float kErfLimit = 4.0f;
inline constexpr float kSqrtHalf = 0.707106769f;
/// -2 sqrt(2 / pi) and 0.044715 times that: gelu_tanh(x) = x / (1 + exp(x * (linear + cubic x^2))).
inline constexpr float kGeluLinear = -1.59576912f;
inline constexpr float kGeluCubic = -0.0713548163f;

}  // namespace sluice::kernels::constants
