// What padding puts beside a tensor: where each value comes from, and the one that comes from nowhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sluice/core/dtype.h"
#include "sluice/core/window.h"

namespace sluice::kernels::reference {

/// The source of padded position `i`, or -1 where the constant belongs. Reflection does not repeat the edge.
inline std::int64_t pad_source(PadMode mode, std::int64_t i, std::int64_t extent) noexcept {
  if (i >= 0 && i < extent) return i;
  if (mode == PadMode::kConstant || extent == 0) return -1;
  if (mode == PadMode::kEdge || extent == 1) return i < 0 ? 0 : extent - 1;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t folded = (i % period + period) % period;
  return folded < extent ? folded : period - folded;
}

/// `value` as one element of `dtype`, in the first bytes of the result.
inline std::array<std::byte, 8> element_of(DType dtype, float value) noexcept {
  std::array<std::byte, 8> bytes{};
  const auto store = [&](auto typed) { std::memcpy(bytes.data(), &typed, sizeof typed); };
  // Two's complement: the low bytes of a 64-bit integer are the narrower integer.
  if (dtype == DType::kF32)
    store(value);
  else if (dtype == DType::kF64)
    store(static_cast<double>(value));
  else
    store(static_cast<std::int64_t>(std::clamp(value, -9.0e18f, 9.0e18f)));
  return bytes;
}

}  // namespace sluice::kernels::reference
