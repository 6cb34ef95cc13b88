// The rule of rounding in scalar code: what generic kernels compute, and every vector of the others must equal (parameters/integer.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "sluice/operators/parameters/integer.h"

namespace sluice::kernels::integer {

using operators::IntegerRange;

/// To the nearest integer, halves to the even one; |value| must be below 2^22.
inline float round_half_even(float value) noexcept {
  constexpr float kMagic = 0x1.8p23f;  // above it, neighbouring floats are integers apart
  return (value + kMagic) - kMagic;
}

inline std::uint8_t to_u8(float value, const IntegerRange& range) noexcept {
  const auto least = static_cast<float>(range.low - range.zero), most = static_cast<float>(range.high - range.zero);
  // In this order of operands NaN gives `least`, as the vectors' maximum does.
  value = value > least ? value : least;
  value = value < most ? value : most;
  return static_cast<std::uint8_t>(static_cast<int>(round_half_even(value)) + range.zero);
}

/// The same with the zero point, less `offset`, in the value that is rounded: of halves, the byte that is even.
inline std::uint8_t to_u8_with_zero(float value, const IntegerRange& range, std::uint8_t offset = 0) noexcept {
  return to_u8(value + static_cast<float>(range.zero - offset), {.zero = offset, .low = range.low, .high = range.high});
}

/// Two bytes added as `sum` says.
inline std::uint8_t added(const operators::IntegerSum& sum, std::uint8_t a, std::uint8_t b, const IntegerRange& range) noexcept {
  const auto value = [&](std::uint8_t byte) { return static_cast<float>(byte - sum.offset); };
  const float real = std::fma(value(a), sum.ratio_a, std::fma(value(b), sum.ratio_b, sum.constant));
  return to_u8(real, {.zero = sum.offset, .low = range.low, .high = range.high});
}

inline float to_real(std::uint8_t value, std::uint8_t zero, float scale) noexcept { return static_cast<float>(value - zero) * scale; }

}  // namespace sluice::kernels::integer
