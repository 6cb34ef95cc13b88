// How the output of a node depends on its inputs and weights, axis by axis, as data: what bands, slices, extents and emission follow from.
//
// The question is asked from the side of what is read: for each axis of an input, which positions of it does an output element read?
//
//     conv 3x3, stride 2     axis 0 (image)   same as output axis 0
//     [N,H,W,C]->[N,h,w,C']  axis 1 (row)     a window along output axis 1: 3 taps, stride 2, pad 1
//                            axis 2 (column)  a window along output axis 2
//                            axis 3 (channel) reduced: every output element reads all of it
//
// An output element reads the product of these positions and nothing else. Output axes that no axis of an input names do not matter to it:
// the input is repeated along them. The operators declare it (`Relations` asks them); the planner derives rows from it, and so does the
// verifier with code of its own. A wrong declaration would deceive both, so tests/operators/relations_test.cc probes each one.
//
// Invariants: (R1) kSame joins axes of one extent; (R2) `output_axis` names an axis of the output for kSame, kWindow and kBlocks, and for
// kBroadcast the one along which the position is repeated; kReduced and kAny have none; (R3) too much may be declared, too little never;
// (R4) they speak of what is computed: winograd4 computes squares of 4 x 4 outputs at once, so its windows are those of whole squares.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/core/check.h"
#include "sluice/core/interval.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"

namespace sluice::operators {

inline constexpr int kNoAxis = -1;

enum class AxisKind : std::uint8_t {
  kSame,       // output position o reads position o
  kWindow,     // o reads positions (o * stride - pad_before + tap * dilation) / divisor, for each tap, where they are whole and inside
  kBlocks,     // o reads the whole block of input_block positions that has the number o / output_block: groups, heads
  kBroadcast,  // every o reads position 0, the only one
  kReduced,    // every output element reads the whole axis
  kAny,        // which positions are read depends on values or on more than one output axis: it may be any
};

/// How one axis of an input is read. Make it with the functions below.
struct AxisRelation {
  AxisKind kind = AxisKind::kAny;
  std::int8_t output_axis = kNoAxis;

  // kWindow. A divisor of more than 1 is the stride of a transposed convolution, or the output's extent under a resize. What is padded
  // after follows from the extents.
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t divisor = 1;

  // kBlocks
  std::int64_t output_block = 1;
  std::int64_t input_block = 1;

  friend bool operator==(const AxisRelation&, const AxisRelation&) = default;
};

constexpr AxisRelation same(int output_axis) noexcept { return {AxisKind::kSame, static_cast<std::int8_t>(output_axis)}; }
constexpr AxisRelation broadcast(int output_axis) noexcept { return {AxisKind::kBroadcast, static_cast<std::int8_t>(output_axis)}; }
constexpr AxisRelation reduced() noexcept { return {AxisKind::kReduced}; }
constexpr AxisRelation any() noexcept { return {AxisKind::kAny}; }
constexpr AxisRelation blocks(int output_axis, std::int64_t output_block, std::int64_t input_block) noexcept {
  return {.kind = AxisKind::kBlocks,
          .output_axis = static_cast<std::int8_t>(output_axis),
          .output_block = output_block,
          .input_block = input_block};
}

/// The axes of one input, outermost first; or those of a weight: one for its values (kPlain), or lanes, taps and depth of its panels.
class AxisRelations {
 public:
  constexpr AxisRelations() noexcept = default;
  constexpr explicit AxisRelations(int rank) noexcept : rank_(rank) {
    SLUICE_DCHECK(rank <= Shape::kMaxRank, "a tensor has at most kMaxRank axes");
  }
  /// Axis a is the same as output axis a.
  static constexpr AxisRelations all_same(int rank) noexcept {
    AxisRelations made(rank);
    for (int axis = 0; axis < rank; ++axis) made[axis] = same(axis);
    return made;
  }

  constexpr int rank() const noexcept { return rank_; }
  constexpr const AxisRelation& operator[](int axis) const noexcept { return axes_[static_cast<std::size_t>(axis)]; }
  constexpr AxisRelation& operator[](int axis) noexcept { return axes_[static_cast<std::size_t>(axis)]; }

 private:
  std::array<AxisRelation, Shape::kMaxRank> axes_{};
  int rank_ = 0;
};

/// The axes of a weight in panels.
enum PanelAxis : int { kLanes = 0, kTaps = 1, kDepth = 2, kPanelAxes = 3 };

/// The axis along which a node's sums of products run, if it is one whose ranges a step may take: every output element is one chain of
/// additions in which k rises and is outermost, so that a range of k continues the chain that the range before it began.
struct Reduction {
  int input_axis = kNoAxis;   // of the first input
  int second_axis = kNoAxis;  // of the second input, where that is an activation (a matrix product); else the depth of weights[0]
  std::int64_t extent = 0;
  bool there() const noexcept { return input_axis != kNoAxis; }
};

/// A node whose output also depends on what it has computed before: earlier positions on `axis` (later ones if `falling`), all channels.
/// The relations then say what else is read.
struct Recurrence {
  int axis = kNoAxis;
  bool falling = false;
  bool there() const noexcept { return axis != kNoAxis; }
};

/// The positions of an input axis of `extent` that the output positions `outputs` (not empty) read. A window that lies in the padding
/// gives an empty range at the edge.
constexpr Interval<std::int64_t> positions_read(const AxisRelation& r, Interval<std::int64_t> outputs, std::int64_t extent) noexcept {
  switch (r.kind) {
    case AxisKind::kSame:
      return outputs;
    case AxisKind::kWindow: {
      // A falling slice has a negative stride.
      const std::int64_t low = r.stride < 0 ? outputs.end - 1 : outputs.begin, high = r.stride < 0 ? outputs.begin : outputs.end - 1;
      const std::int64_t first = -floor_div(r.pad_before - low * r.stride, r.divisor);  // rounded up
      const std::int64_t last = floor_div(high * r.stride - r.pad_before + (r.kernel - 1) * r.dilation, r.divisor);
      const std::int64_t begin = std::clamp<std::int64_t>(first, 0, extent);
      return {begin, std::clamp<std::int64_t>(last + 1, begin, extent)};
    }
    case AxisKind::kBlocks:
      return {outputs.begin / r.output_block * r.input_block, ((outputs.end - 1) / r.output_block + 1) * r.input_block};
    case AxisKind::kBroadcast:
    case AxisKind::kReduced:
    case AxisKind::kAny:
      break;
  }
  return {0, extent};
}

}  // namespace sluice::operators
