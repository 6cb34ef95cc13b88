// Rounding into a quantised type, the one way for all operators: to the nearest, halves to even, cut at the type's ends.
#pragma once

#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

inline void store_quantized(const PlainTensor& out, std::int64_t i, float scaled, std::int64_t zero) noexcept {
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (!std::is_same_v<T, float>) {
      const double value = std::nearbyint(static_cast<double>(scaled)) + static_cast<double>(zero);
      const double low = static_cast<double>(std::numeric_limits<T>::min()), high = static_cast<double>(std::numeric_limits<T>::max());
      out.as<T>()[i] = value >= high ? std::numeric_limits<T>::max() : value > low ? static_cast<T>(value) : std::numeric_limits<T>::min();
    }
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
