// Panels: how trained values lie, and which of them hold which output channels. The model file stores them (model/weight.h), plans cut
// them, kernels multiply by them.
//
// A weight that kernels multiply by is packed in *panels* of 16 output channels, once, for every CPU:
//
//     f32 panels of a convolution: [panel][tap][input channel][16]     lane = output channel, tap = (ky, kx) row-major
//
//         file:  | panel 0           | panel 1           | ...        a slice is a run of whole panels, so that
//                | tap 0 | tap 1 |...|                                 cutting a weight for a new budget rewrites nothing
//
// Layouts (`WeightLayout`):
//   kPanels     [N/16][taps][K][16]. Groups with N/g >= 16: the outputs of each group padded to whole panels. Groups with N/g < 16 (not
//               depthwise): 16 consecutive outputs a panel whatever their group; lane l multiplies channels of its own group (K = C/g).
//   kDepthwise  [C/16][taps][16], lane = channel.
//   kPlain      row-major values of the logical shape: biases, scales, constants of elementwise operators. One "panel".
// Unused lanes hold zero. Panels start on 64 bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/units.h"

namespace sluice {

inline constexpr std::int64_t kPanelLanes = 16;
inline constexpr std::uint64_t kWeightAlignment = 64;  // of panels, in the file and in the arena

enum class WeightLayout : std::uint8_t { kPlain = 0, kPanels = 1, kDepthwise = 2 };

/// Four forms hold quantised values, which kernels widen as they read them; i counts a lane's values, i = tap * K + k:
///
///     i8, k_block 1              scale [16] f32 | zero [16] f32 | [i][16] i8
///     i8, k_block 1, k_group g   for each g of i:  scale [16] f32 | zero [16] i8 | [g][16] i8
///     u8, k_block 2, k_group g   for each g of i:  scale [16] f32 | zero [16] u8 | [g / 2][16] bytes, i in the low half, i + 1 in the high
///     u8, k_block 4, k_group g   the same of two bits: [g / 4][16] bytes, i in the lowest two bits
///
/// How a panel's values lie. `lanes` output channels; `k_block` consecutive values share a byte; `k_group` values share
/// one scale (0: all of a lane). f16 is reserved.
struct PanelLayout {
  WeightLayout layout = WeightLayout::kPlain;
  DType dtype = DType::kF32;
  std::uint8_t lanes = 16;
  std::uint8_t k_block = 1;
  std::uint16_t k_group = 0;
};

constexpr bool is_quantised(const PanelLayout& layout) noexcept {
  return layout.layout == WeightLayout::kPanels && (layout.dtype == DType::kI8 || layout.dtype == DType::kU8);
}
/// Bits of a quantised value: 8, 4 or 2.
constexpr int bits_of(const PanelLayout& layout) noexcept { return 8 / layout.k_block; }
/// Bytes before the values of a group of k_group, or before those of all.
constexpr std::int64_t quantised_head_bytes(const PanelLayout& layout) noexcept {
  return kPanelLanes * static_cast<std::int64_t>(sizeof(float)) * (layout.k_group == 0 ? 2 : 1) + (layout.k_group == 0 ? 0 : kPanelLanes);
}
/// From one group of a quantised panel to the next.
constexpr std::int64_t quantised_group_bytes(const PanelLayout& layout) noexcept {
  return quantised_head_bytes(layout) + std::int64_t{layout.k_group} / layout.k_block * kPanelLanes;
}

/// Bytes of a panel whose lanes have `values` values each. Nothing: the form is none of those above, or the size overflows.
std::optional<Bytes> panel_bytes_of(const PanelLayout& layout, std::uint64_t values) noexcept;

/// The panels that hold output channels [c.begin, c.end). c.begin must be a panel's first channel within its group.
/// `outputs_per_group` is N/g (N without groups): groups of 16 or more are padded to whole panels each.
PanelRange panels_of_channels(ChannelRange c, std::int64_t outputs_per_group) noexcept;

/// Output channels covered by panels `p`; the inverse of `panels_of_channels`, cut to `outputs` in all.
ChannelRange channels_of_panels(PanelRange p, std::int64_t outputs_per_group, std::int64_t outputs) noexcept;

/// Panels of a weight with `outputs` output channels in groups of `outputs_per_group`.
std::int64_t panel_count(std::int64_t outputs, std::int64_t outputs_per_group) noexcept;

}  // namespace sluice
