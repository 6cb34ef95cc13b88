// Weights: how trained values are stored in the model file, and which bytes a slice of them has.
//
// A weight that kernels multiply by is packed in panels of 16 output channels, once, for every CPU: core/panels.h has the picture.
//
// Invariants: `offset` is a multiple of 64; bytes = panels * panel_bytes (kPlain: the values, padded to 64; kSparse: the last of
// `panel_ends`, panel_bytes is the most that a panel could take); the weight's stretches tile it without gap, in whole panels up to 64 KiB
// (one panel if larger); only `panel_range` multiplies sizes.
// Weights are stored in the order of the nodes that use them; those of less than 16 KiB are together in the resident segment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/core/check.h"
#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/panels.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"

namespace sluice::model {

// What kernels know of panels without knowing of files.
using sluice::bits_of;
using sluice::channels_of_panels;
using sluice::is_narrow;
using sluice::is_quantised;
using sluice::kPanelLanes;
using sluice::kPanelScaleCount;
using sluice::kPanelSideCount;
using sluice::kWeightAlignment;
using sluice::kWeightLayoutCount;
using sluice::panel_bytes_of;
using sluice::panel_count;
using sluice::PanelLayout;
using sluice::panels_of_channels;
using sluice::PanelScale;
using sluice::PanelSide;
using sluice::quantised_group_bytes;
using sluice::quantised_head_bytes;
using sluice::WeightLayout;

inline constexpr Bytes kStretchBytes{64 * 1024};          // the unit of integrity
inline constexpr Bytes kAlwaysResidentBelow{16 * 1024};   // smaller weights are not worth a load
inline constexpr std::uint64_t kSegmentAlignment = 4096;  // of segments in the file

/// A run of bytes of the model file.
struct FileRange {
  Bytes offset;
  Bytes size;
  Bytes end() const noexcept { return offset + size; }
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

/// How the bytes of a stretch are stored: a sum of these, undone from the last to the first.
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
constexpr StretchForm operator|(StretchForm a, StretchForm b) noexcept {
  return static_cast<StretchForm>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether its stretches are stored smaller than they are.
constexpr bool shrinks(StretchForm form) noexcept { return has_form(form, StretchForm::kZerosLeftOut | StretchForm::kCoded); }

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
/// The largest size of a panel, and so of a stretch.
inline constexpr Bytes kMaxPanelBytes{(std::uint64_t{1} << 32) - kWeightAlignment};

/// Takes the place of the hash of an encrypted stretch.
using StretchTag = std::array<std::byte, 16>;

/// The unit of integrity.
struct Stretch {
  Bytes offset;              // in the file
  StretchBytes stored_size;  // in the file
  StretchBytes raw_size;     // after decoding
  std::uint64_t xxh3 = 0;    // XXH3-64 of the stored bytes; of an encrypted stretch nothing: see Graph::tags
  StretchForm form = StretchForm::kRaw;
};

/// An index into Graph::quantisations that is none; one into Graph::codes.
inline constexpr std::uint32_t kNoQuantisation = 0xffffffffu;
inline constexpr std::uint32_t kNoCode = 0xffffffffu;

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
  std::uint32_t code = kNoCode;                  // valid: the table of its coded stretches, see Graph::codes
  std::vector<std::uint32_t> panel_ends;         // kSparse only: where each panel ends, from `offset`, in units of 64 bytes

  FileRange range() const noexcept { return {offset, bytes}; }
};

/// Values that each lane of a panel has: taps times K, K padded to `k_interleave`. Not for kPlain.
std::uint64_t values_of_lane(const Weight& weight) noexcept;

/// The bytes of panels [p.begin, p.end) of a weight, raw: where they lie in the file, if no stretch of it is stored smaller than it is,
/// else where they would. The only place where panel sizes are multiplied.
FileRange panel_range(const Weight& weight, PanelRange p) noexcept;

}  // namespace sluice::model
