// Rounding into a quantised type, the one way for all operators: to the nearest, halves to even, cut at the type's ends.
#pragma once

#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

// Adding and taking away so much leaves a double that is at most 2^51 rounded to a whole number, halves to even: what nearbyint does, but
// in vectors. Larger ones are beyond every type's end already, whatever they become.
inline constexpr double kRounding = 0x1.8p52;

/// NaN becomes the type's least value.
template <class T>
T quantized(float scaled, double zero) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return scaled;
  } else {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min()), kHigh = static_cast<double>(std::numeric_limits<T>::max());
    constexpr double kFar = 0x1p40;
    const double x = static_cast<double>(scaled), near = x > -kFar ? x < kFar ? x : kFar : -kFar;
    const double value = (near + kRounding) - kRounding + zero;
    const double high = value < kHigh ? value : kHigh;
    return static_cast<T>(high > kLow ? high : kLow);
  }
}

inline void store_quantized(const PlainTensor& out, std::int64_t i, float scaled, std::int64_t zero) noexcept {
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>) out.as<T>()[i] = quantized<T>(scaled, static_cast<double>(zero));
  });
}

/// The zero point of channel c: none, one for all, or one for each.
inline std::int64_t zero_point(const PlainNode& node, int input, std::int64_t channel) noexcept {
  if (!node.has(input)) return 0;
  return integer_at(node.in(input), node.in(input).count() == 1 ? 0 : channel);
}
inline float scale_of(const PlainNode& node, int input, std::int64_t channel) noexcept {
  return node.in(input).as<const float>()[node.in(input).count() == 1 ? 0 : channel];
}

}  // namespace sluice::kernels::plain
