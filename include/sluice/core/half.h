// Floats of 16 bits and of 32: every 16-bit one is an f32, exactly; the way back rounds to nearest, ties to even.
//
//     f16    1 sign, 5 exponent, 10 fraction: up to 65504, steps of a 2048th
//     bf16   the upper half of an f32: its range, steps of a 256th
#pragma once

#include <bit>
#include <cstdint>

namespace sluice {

/// Subnormals, infinities and NaN included.
constexpr float float_of_f16(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // a subnormal one
  return sign != 0 ? -magnitude : magnitude;
}

/// Values beyond 65504 by half a step or more become infinite; a NaN stays a NaN.
constexpr std::uint16_t f16_of_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  // The last bit of an f32 between 1/2 and 1 is the step of subnormal halves, 2^-24: adding 1/2 rounds to it.
  if (magnitude < 0x38800000u) {
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  const std::uint32_t odd = magnitude >> 13 & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

constexpr float float_of_bf16(std::uint16_t half) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

/// A NaN stays one.
constexpr std::uint16_t bf16_of_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace sluice
