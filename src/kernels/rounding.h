// Floats of a panel as whole numbers and scales: `convert --weights int8` and `int4` (docs/quantisation.md). `values` are those of an f32
// panel, [i][16]; `out` has the bytes of the panel that they become (core/panels.h) and is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::kernels {

/// Values of an output that share a scale of four bits.
inline constexpr std::uint16_t kFourBitGroup = 32;

/// i8, scale kF32, no k_group: the largest magnitude of a lane becomes 127.
void round_to_eight_bits(std::span<const float> values, std::byte* out) noexcept;
/// Writes the panel layout {u8, k_block 2, k_group 32, scale f16}.
void round_to_four_bits(std::span<const float> values, std::byte* out) noexcept;

}  // namespace sluice::kernels
