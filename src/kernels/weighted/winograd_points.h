// F(4x4, 3x3): the numbers of the numeric class `winograd4`, shared by the kernel and the reference.
//
//     Y = A' [(G g G') * (B' d B)] A        d: 6x6 inputs, g: 3x3 weights, Y: 4x4 outputs; * multiplies element by element
//
// and the products are summed over channels, each as one chain of fused multiply-adds from 0. The transforms evaluate polynomials at 0,
// +-a, +-b and infinity. One axis, in the order of operations that the class fixes (fma rounds once); of two axes, columns go first:
//
//     B' x    fma(x0, a2b2, fma(x2, -(a2+b2), x4))
//             fma(o, +-a, e)  with  e = fma(x2, -b2, x4), o = fma(x1, -b2, x3);  the same with a and b exchanged
//             fma(x1, a2b2, fma(x3, -(a2+b2), x5))
//     G g     g0 / a2b2
//             fma(g1, +-a c, fma(g2, a2 c, c g0))  with  c = 1 / (2 a2 (a2 - b2));  the same with a and b exchanged
//             g2
//     A' m    (m0 + (m1 + m2)) + (m3 + m4)
//             fma(m3 - m4, b, a (m1 - m2))
//             fma(m3 + m4, b2, a2 (m1 + m2))
//             fma(m3 - m4, b3, fma(m1 - m2, a3, m5))
//
// a = 3/4, b = 3/2: all products of B and A are exact in f32, and the error is a quarter of that of the usual 1 and 2 (largest error over
// largest output, K = 512, rectified normal inputs: 3.0e-6 against 1.2e-5; direct sums: 1.8e-6). 1/sqrt(2) and sqrt(2) are no better.
#pragma once

#include <cstdint>

namespace sluice::kernels::winograd {

inline constexpr std::int64_t kOutTile = 4;  // outputs of a tile along one axis
inline constexpr std::int64_t kInTile = 6;   // inputs
inline constexpr std::int64_t kPoints = kInTile * kInTile;

namespace points {
inline constexpr double a = 0.75, b = 1.5;
inline constexpr double a2 = a * a, b2 = b * b;
inline constexpr float kA = static_cast<float>(a), kB = static_cast<float>(b);
inline constexpr float kA2 = static_cast<float>(a2), kB2 = static_cast<float>(b2);
inline constexpr float kA3 = static_cast<float>(a2 * a), kB3 = static_cast<float>(b2 * b);
inline constexpr float kProduct = static_cast<float>(a2 * b2), kSum = static_cast<float>(a2 + b2);
// The factors of G: 1 over the product of a point's distances from the other points, times the powers of the point.
inline constexpr double ca = 1.0 / (2.0 * a2 * (a2 - b2)), cb = 1.0 / (2.0 * b2 * (b2 - a2));
inline constexpr float kWeight0 = static_cast<float>(1.0 / (a2 * b2));
inline constexpr float kWeightA0 = static_cast<float>(ca), kWeightA1 = static_cast<float>(a * ca), kWeightA2 = static_cast<float>(a2 * ca);
inline constexpr float kWeightB0 = static_cast<float>(cb), kWeightB1 = static_cast<float>(b * cb), kWeightB2 = static_cast<float>(b2 * cb);
}  // namespace points

}  // namespace sluice::kernels::winograd
