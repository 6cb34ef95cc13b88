// Rounding into a quantised type, the one way for all operators: to the nearest, halves to even, cut at the type's ends.
#pragma once

#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

/// Adding and taking away so much leaves a float of less than 2^22 rounded to a whole number, halves to even: what nearbyint does, but in
/// vectors. Types end before 2^17, and a zero point is one of their values, so what is larger is beyond their end and is cut first.
template <class T>
T quantized(float scaled, std::int64_t zero_point) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return scaled;
  } else {
    constexpr float kRounding = 0x1.8p23f, kFar = 0x1p20f;
    constexpr float kLow = static_cast<float>(std::numeric_limits<T>::min()), kHigh = static_cast<float>(std::numeric_limits<T>::max());
    const float above = scaled > -kFar ? scaled : -kFar;  // NaN becomes the type's least value
    const float near = above < kFar ? above : kFar;
    const float value = (near + kRounding) - kRounding + static_cast<float>(zero_point);
    const float low = value > kLow ? value : kLow;
    return static_cast<T>(static_cast<std::int32_t>(low < kHigh ? low : kHigh));
  }
}

inline void store_quantized(const PlainTensor& out, std::int64_t i, float scaled, std::int64_t zero) noexcept {
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>) out.as<T>()[i] = quantized<T>(scaled, zero);
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
