// QuantizeLinear and DequantizeLinear of bytes, as the rewrites to integers see them: one scale and zero point that are known at convert.
//
// Signed bytes become unsigned ones with the zero point moved by 128: the sums that follow are the same integers, and kernels see u8 alone.
#pragma once

#include <cstdint>
#include <optional>

#include "src/importer/draft.h"

namespace sluice::importer {

bool is_quantise(const DraftNode& node) noexcept;
bool is_dequantise(const DraftNode& node) noexcept;

/// The scale of a QuantizeLinear from f32 or a DequantizeLinear, of u8 or i8. Nothing: it is another node, of several scales, of other
/// integers, or its scale is none that a kernel divides by.
std::optional<ByteScale> byte_scale_of(const Draft& draft, const DraftNode& node);

/// QuantizeLinear; what is no number becomes the least, as its generic kernel has it.
std::uint8_t byte_of(float real, const ByteScale& scale) noexcept;
/// DequantizeLinear.
inline float real_of(std::uint8_t byte, const ByteScale& scale) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(byte) - scale.zero) * scale.scale;
}

}  // namespace sluice::importer
