// Polynomials and limits of the functions in curves.h.
//
// Minimax in relative error of the function, fitted in double and rounded to f32; the comment gives range and error. Coefficients rise with
// the power.
#pragma once

#include <array>

namespace sluice::kernels::plain {

/// sin(r) = r + r^3 P(r^2), |r| <= pi / 4, 2^-28; cos(r) = 1 - r^2 / 2 + r^4 Q(r^2), 2^-33.
inline constexpr std::array<float, 3> kSine = {-0.16666655f, 0.008332178f, -0.0001951731f};
inline constexpr std::array<float, 3> kCosine = {0.041666646f, -0.0013887368f, 2.4438461e-05f};
/// pi / 2 in three parts.
inline constexpr float kQuarterHigh = 0x1.921fb6p+0f, kQuarterMiddle = -0x1.777a5cp-25f, kQuarterLow = -0x1.ee59dap-50f;
inline constexpr float kQuartersOfOne = 0x1.45f306p-1f;
/// atan(r) = r + r^3 P(r^2), |r| <= 1, 2^-28.
inline constexpr std::array<float, 9> kArcTangent = {-0.333332986f, 0.199985489f,   -0.142642424f, 0.109521858f,   -0.0840345025f,
                                                     0.0579575859f, -0.0311778374f, 0.0109146014f, -0.00179362053f};
/// asin(r) = r + r^3 P(r^2), |r| <= 1/2, 2^-31.
inline constexpr std::array<float, 6> kArcSine = {0.166666597f, 0.0750051066f, 0.0445157215f, 0.031817615f, 0.0144025851f, 0.0375652313f};
/// sinh(r) = r + r^3 P(r^2), |r| <= 1, 2^-34.
inline constexpr std::array<float, 4> kHyperbolicSine = {0.166666672f, 0.00833335053f, 0.000198360663f, 2.81743951e-06f};
/// From here on asinh(x) and acosh(x) are log(2 x).
inline constexpr float kFarOut = 4096.0f;
/// From here on mish(x) is x.
inline constexpr float kMishStraight = 20.0f;

}  // namespace sluice::kernels::plain
