// Panels: how trained values are stored, and which panels hold which output channels. The model file stores them (model/weight.h), plans
// cut them, kernels multiply by them.
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
//   kSparse     as kPanels, without the blocks of 16 lanes that are zero; panels differ in size (model/weight.h).
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

enum class WeightLayout : std::uint8_t { kPlain = 0, kPanels = 1, kDepthwise = 2, kSparse = 3 };
inline constexpr int kWeightLayoutCount = 4;

/// The scales that lie in a panel, before the values that they belong to.
enum class PanelScale : std::uint8_t {
  kNone = 0,  // values alone; of integers, scales belong to the node that multiplies by them
  kF32 = 1,   // f32, and a zero point
  kF16 = 2,   // f16; the zero point is the middle: 8 of four bits, 2 of two bits, 0 of i8
};
inline constexpr int kPanelScaleCount = 3;

/// The axis of a product that the panels cut.
enum class PanelSide : std::uint8_t {
  kOutputs = 0,  // a panel is 16 output channels
  kInputs = 1,   // a panel is 16 input features of all outputs, [K/16][taps][N][16]: a range of k is a run of panels
};
inline constexpr int kPanelSideCount = 2;

/// How a panel's values lie: `lanes` channels; `k_block` consecutive values share a byte; `k_group` values share one scale (0: all of a
/// lane); the values of a lane for `k_interleave` consecutive k are neighbours, as needed by instructions that add four products.
///
/// With i = tap * K + k counting a lane's values, a panel is one of these, which kernels of this build read (those with scales they widen):
///
///     f32                                [i][16] f32
///     i8, scale kF32                     scale [16] f32 | zero [16] f32 | [i][16] i8
///     i8, k_group g, kF32                for each g of i: scale [16] f32 | zero [16] i8 | [g][16] i8
///     u8, k_block 2, k_group g, kF32     for each g of i: scale [16] f32 | zero [16] u8 | [g / 2][16] bytes, i in the low half of each
///     u8, k_block 4, k_group g, kF32     for each g of i: scale [16] f32 | zero [16] u8 | [g / 4][16] bytes, i in the lowest two bits
///     i8, k_interleave 4, kNone          [tap][K / 4][16][4] i8, K padded to 4 with zeros
///     i8, kDepthwise, kNone              [tap][16] i8
///     f16 or bf16                        [i][16], two bytes each
///     kSparse, of f32, f16 or bf16,      bitmap, a bit for each block [16] in order of i, lowest bit first, padded to 64 bytes |
///         kNone                              the blocks that have a bit, in order; the last bytes are padded to 64
///     i8, k_group g, kF16                for each g of i: scale [16] f16 | [g][16] i8
///     u8, k_block 2 or 4, k_group g,     for each g of i: scale [16] f16 | [g / k_block][16] bytes; of 32 values and four bits,
///         kF16                               that is 4.5 bits a value
///
/// or one of these, which the file's format has too and `validate` refuses by name (model/features.h):
///
///     side kInputs, not sparse           as above; lanes and i change their parts
struct PanelLayout {
  WeightLayout layout = WeightLayout::kPlain;
  DType dtype = DType::kF32;
  std::uint8_t lanes = 16;
  std::uint8_t k_block = 1;
  std::uint16_t k_group = 0;
  std::uint8_t k_interleave = 1;
  PanelScale scale = PanelScale::kNone;
  PanelSide side = PanelSide::kOutputs;

  friend bool operator==(const PanelLayout&, const PanelLayout&) = default;
};

/// Whether the panels contain scales.
constexpr bool is_quantised(const PanelLayout& layout) noexcept {
  return layout.layout == WeightLayout::kPanels && layout.scale != PanelScale::kNone;
}
/// Whether its values mean floats of more bits, so that f32 kernels widen them first.
constexpr bool is_narrow(const PanelLayout& layout) noexcept {
  return layout.layout == WeightLayout::kPanels && layout.k_interleave == 1 && layout.dtype != DType::kF32;
}
/// Bits of a quantised value: 8, 4 or 2.
constexpr int bits_of(const PanelLayout& layout) noexcept { return 8 / layout.k_block; }
/// Bytes before the values of a group of k_group, or before those of all.
constexpr std::int64_t quantised_head_bytes(const PanelLayout& layout) noexcept {
  if (layout.scale == PanelScale::kF16) return kPanelLanes * std::int64_t{2};
  return kPanelLanes * static_cast<std::int64_t>(sizeof(float)) * (layout.k_group == 0 ? 2 : 1) + (layout.k_group == 0 ? 0 : kPanelLanes);
}
/// Bytes from one group of a quantised panel to the next.
constexpr std::int64_t quantised_group_bytes(const PanelLayout& layout) noexcept {
  return quantised_head_bytes(layout) + std::int64_t{layout.k_group} / layout.k_block * kPanelLanes;
}

/// Bytes of a panel whose lanes have `values` values each; of a sparse panel, the most that it can take. Returns nothing if the form is
/// none of those above, or the size overflows.
std::optional<Bytes> panel_bytes_of(const PanelLayout& layout, std::uint64_t values) noexcept;

/// The panels that hold output channels [c.begin, c.end). c.begin must be a panel's first channel within its group.
/// `outputs_per_group` is N/g (N without groups): groups of 16 or more are padded to whole panels each.
PanelRange panels_of_channels(ChannelRange c, std::int64_t outputs_per_group) noexcept;

/// Output channels covered by panels `p`; the inverse of `panels_of_channels`, cut to `outputs` in all.
ChannelRange channels_of_panels(PanelRange p, std::int64_t outputs_per_group, std::int64_t outputs) noexcept;

/// Panels of a weight with `outputs` output channels in groups of `outputs_per_group`.
std::int64_t panel_count(std::int64_t outputs, std::int64_t outputs_per_group) noexcept;

}  // namespace sluice
