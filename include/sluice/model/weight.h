// Weights: how trained values lie in the model file, and which bytes a slice of them is.
//
// A weight that kernels multiply by is packed in panels of 16 output channels, once, for every CPU: core/panels.h has the picture.
//
// Invariants: `offset` is a multiple of 64; bytes = panels * panel_bytes (kPlain: the values, padded to 64); the weight's stretches tile
// [offset, offset + bytes) without gap, in whole panels up to 64 KiB (one panel if larger); only `panel_range` multiplies sizes.
// Weights lie in the file in the order of the nodes that use them; those of less than 16 KiB lie together in the resident segment.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/core/dtype.h"
#include "sluice/core/interval.h"
#include "sluice/core/panels.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"

namespace sluice::model {

// What kernels know of panels without knowing of files.
using sluice::bits_of;
using sluice::channels_of_panels;
using sluice::is_quantised;
using sluice::kPanelLanes;
using sluice::kWeightAlignment;
using sluice::panel_bytes_of;
using sluice::panel_count;
using sluice::PanelLayout;
using sluice::panels_of_channels;
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

/// The unit of checksum.
struct Stretch {
  Bytes offset;            // in the file
  Bytes stored_size;       // in the file
  Bytes raw_size;          // after decoding; equal today
  std::uint64_t xxh3 = 0;  // XXH3-64 of the stored bytes
};

/// One weight of a graph.
struct Weight {
  std::string name;  // of the ONNX initialiser
  PanelLayout panel_layout;
  Shape shape;  // logical: conv [N, KH, KW, K], dense [N, K], depthwise [C, KH, KW], plain: as used
  std::int64_t panels = 1;
  Bytes panel_bytes;
  Bytes offset;  // in the file
  Bytes bytes;
  std::uint32_t first_stretch = 0;  // index into Graph::stretches
  std::uint32_t stretch_count = 0;
  bool always_resident = false;  // lies in the resident segment

  FileRange range() const noexcept { return {offset, bytes}; }
};

/// Values that each lane of a panel has: taps times K. Not for kPlain.
std::uint64_t values_of_lane(const Weight& weight) noexcept;

/// The bytes of panels [p.begin, p.end) of a weight. The only place where panel sizes are multiplied.
FileRange panel_range(const Weight& weight, PanelRange p) noexcept;

}  // namespace sluice::model
