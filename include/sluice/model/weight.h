// Weights: how trained values lie in the model file, and which bytes a slice of them is.
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
//   kSparse     as kPanels, without the blocks of 16 lanes that are zero; panels differ in size, `panel_ends` says where each ends.
// Unused lanes hold zero. Panels start on 64 bytes.
//
// Invariants: `offset` is a multiple of 64; bytes = panels * panel_bytes (kPlain: the values, padded to 64; kSparse: the last of
// `panel_ends`, panel_bytes is the most that a panel could take); the weight's stretches tile it without gap, in whole panels up to 64 KiB
// (one panel if larger); only `panel_range` multiplies sizes.
// Weights lie in the file in the order of the nodes that use them; those of less than 16 KiB lie together in the resident segment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/core/check.h"
#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"

namespace sluice::model {

inline constexpr std::int64_t kPanelLanes = 16;
inline constexpr Bytes kStretchBytes{64 * 1024};          // the unit of integrity
inline constexpr Bytes kAlwaysResidentBelow{16 * 1024};   // smaller weights are not worth a load
inline constexpr std::uint64_t kWeightAlignment = 64;     // of panels, in the file and in the arena
inline constexpr std::uint64_t kSegmentAlignment = 4096;  // of segments in the file

enum class WeightLayout : std::uint8_t { kPlain = 0, kPanels = 1, kDepthwise = 2, kSparse = 3 };
inline constexpr int kWeightLayoutCount = 4;

/// The scales that lie in a panel, before the values that they belong to.
enum class PanelScale : std::uint8_t {
  kNone = 0,  // values alone; of integers, scales belong to the node that multiplies by them
  kF32 = 1,   // f32, and a zero point
  kF16 = 2,   // f16; the zero point is the middle: 8 of four bits, 2 of two bits, 0 of i8
};
inline constexpr int kPanelScaleCount = 3;

/// Which axis of a product the panels cut.
enum class PanelSide : std::uint8_t {
  kOutputs = 0,  // a panel is 16 output channels
  kInputs = 1,   // a panel is 16 input features of all outputs, [K/16][taps][N][16]: a range of k is a run of panels
};
inline constexpr int kPanelSideCount = 2;

/// How a panel's values lie: `lanes` channels; `k_block` consecutive values share a byte; `k_group` values share one scale (0: all of a
/// lane); of `k_interleave` consecutive k, the values of a lane are neighbours, as instructions that add four products want them.
///
/// With i = tap * K + k counting a lane's values, a panel is one of these, which kernels of this build read (the last four they widen):
///
///     f32                                [i][16] f32
///     i8, scale kF32                     scale [16] f32 | zero [16] f32 | [i][16] i8
///     i8, k_group g, kF32                for each g of i: scale [16] f32 | zero [16] i8 | [g][16] i8
///     u8, k_block 2, k_group g, kF32     for each g of i: scale [16] f32 | zero [16] u8 | [g / 2][16] bytes, i in the low half of each
///     u8, k_block 4, k_group g, kF32     for each g of i: scale [16] f32 | zero [16] u8 | [g / 4][16] bytes, i in the lowest two bits
///
/// or one of these, which the file's format has too and `validate` refuses by name (model/features.h):
///
///     f16 or bf16                        [i][16], two bytes each
///     i8, k_group g, kF16                for each g of i: scale [16] f16 | [g][16] i8
///     u8, k_block 2 or 4, k_group g,     for each g of i: scale [16] f16 | [g / k_block][16] bytes; of 32 values and four bits,
///         kF16                               that is 4.5 bits a value
///     i8, k_interleave 4, kNone          [tap][K / 4][16][4] i8, K padded to 4 with zeros
///     kSparse, of f32, f16, bf16 or i8,  bitmap, a bit for each block [16][k_interleave] in order of i, lowest bit first, padded to
///         kNone                              64 bytes | the blocks that have a bit, in order
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

/// A run of bytes of the model file.
struct FileRange {
  Bytes offset;
  Bytes size;
  Bytes end() const noexcept { return offset + size; }
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

/// How the bytes of a stretch lie in the file: a sum of these, undone from the last to the first.
enum class StretchForm : std::uint8_t {
  kRaw = 0,
  kZerosLeftOut = 1,  // a bitmap of the elements that are not zero, and those
  kCoded = 2,         // entropy-coded by byte plane, in blocks of at most 64 KiB raw
  kEncrypted = 0x80,  // AES-256-GCM, its tag in place of the hash
};
inline constexpr std::uint8_t kKnownStretchForms = 0x83;
constexpr bool has_form(StretchForm form, StretchForm part) noexcept {
  return (static_cast<unsigned>(form) & static_cast<unsigned>(part)) != 0;
}

/// Bytes of a stretch, below 4 GiB: stretches come by the ten thousand, and half the room is kept for each.
class StretchBytes {
 public:
  constexpr StretchBytes() noexcept = default;
  constexpr StretchBytes(Bytes bytes) noexcept : count_(static_cast<std::uint32_t>(bytes.count())) {  // NOLINT: the same thing, smaller
    SLUICE_DCHECK(bytes.count() <= UINT32_MAX, "writer and validator see to it that no panel is as large as that");
  }
  constexpr operator Bytes() const noexcept { return Bytes(count_); }  // NOLINT: the same thing, larger
  constexpr std::uint64_t count() const noexcept { return count_; }

 private:
  std::uint32_t count_ = 0;
};
/// Of a panel, and so of a stretch.
inline constexpr Bytes kMaxPanelBytes{(std::uint64_t{1} << 32) - kWeightAlignment};

/// What stands in place of the hash of an encrypted stretch.
using StretchTag = std::array<std::byte, 16>;

/// The unit of integrity.
struct Stretch {
  Bytes offset;              // in the file
  StretchBytes stored_size;  // in the file
  StretchBytes raw_size;     // after decoding
  std::uint64_t xxh3 = 0;    // XXH3-64 of the stored bytes; of an encrypted stretch nothing: see Graph::tags
  StretchForm form = StretchForm::kRaw;
};

/// An index into Graph::quantisations that is none.
inline constexpr std::uint32_t kNoQuantisation = 0xffffffffu;

/// One weight of a graph.
struct Weight {
  std::string name;  // of the ONNX initialiser
  PanelLayout panel_layout;
  Shape shape;  // logical: conv [N, KH, KW, K], dense [N, K], depthwise [C, KH, KW], plain: as used
  std::int64_t panels = 1;
  Bytes panel_bytes;
  Bytes offset;                     // in the file
  Bytes bytes;                      // raw: after decoding, as in memory
  std::uint32_t first_stretch = 0;  // index into Graph::stretches
  std::uint32_t stretch_count = 0;
  bool always_resident = false;                  // lies in the resident segment
  std::uint32_t quantisation = kNoQuantisation;  // valid: its values stand for reals, see Graph::quantisations
  std::vector<std::uint32_t> panel_ends;         // kSparse only: where each panel ends, from `offset`, in units of 64 bytes

  FileRange range() const noexcept { return {offset, bytes}; }
};

/// Do scales lie in the panels?
constexpr bool is_quantised(const PanelLayout& layout) noexcept {
  return layout.layout == WeightLayout::kPanels && layout.scale != PanelScale::kNone;
}
/// Bits of a quantised value: 8, 4 or 2.
constexpr int bits_of(const PanelLayout& layout) noexcept { return 8 / layout.k_block; }
/// Bytes before the values of a group of k_group, or before those of all.
constexpr std::int64_t quantised_head_bytes(const PanelLayout& layout) noexcept {
  if (layout.scale == PanelScale::kF16) return kPanelLanes * std::int64_t{2};
  return kPanelLanes * static_cast<std::int64_t>(sizeof(float)) * (layout.k_group == 0 ? 2 : 1) + (layout.k_group == 0 ? 0 : kPanelLanes);
}
/// From one group of a quantised panel to the next.
constexpr std::int64_t quantised_group_bytes(const PanelLayout& layout) noexcept {
  return quantised_head_bytes(layout) + std::int64_t{layout.k_group} / layout.k_block * kPanelLanes;
}

/// Values that each lane of a panel has: taps times K, K padded to `k_interleave`. Not for kPlain.
std::uint64_t values_of_lane(const Weight& weight) noexcept;

/// Bytes of a panel whose lanes have `values` values each; of a sparse panel, the most that it can take. Nothing: the form is none of
/// those above, or the size overflows.
std::optional<Bytes> panel_bytes_of(const PanelLayout& layout, std::uint64_t values) noexcept;

/// The bytes of panels [p.begin, p.end) of a weight. The only place where panel sizes are multiplied.
FileRange panel_range(const Weight& weight, PanelRange p) noexcept;

/// The panels that hold output channels [c.begin, c.end). c.begin must be a panel's first channel within its group.
/// `outputs_per_group` is N/g (N without groups): groups of 16 or more are padded to whole panels each.
PanelRange panels_of_channels(ChannelRange c, std::int64_t outputs_per_group) noexcept;

/// Output channels covered by panels `p`; the inverse of `panels_of_channels`, cut to `outputs` in all.
ChannelRange channels_of_panels(PanelRange p, std::int64_t outputs_per_group, std::int64_t outputs) noexcept;

/// Panels of a weight with `outputs` output channels in groups of `outputs_per_group`.
std::int64_t panel_count(std::int64_t outputs, std::int64_t outputs_per_group) noexcept;

}  // namespace sluice::model
