// Resize: its words, its arguments, and what the arguments of a run come to.
//
// Two lines of the table: ResizeOfExtents states every extent and scale; ResizeAtRun has some of them, and becomes a ResizeOfExtents when
// the run knows the rest (`Resolved`). Read by the definitions (src/operators/generic/resize.cc) and by the generic kernels
// (src/kernels/plain/resize.cc). Enumerators and arguments are stored in model files by their numbers: append only.
#pragma once

#include <bit>
#include <cmath>

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::resize {

// ---- Resize: axis by axis, each output index a weighted sum of at most a window of input indices

enum Mode : std::int64_t { kNearest = 0, kLinear = 1, kCubic = 2 };

enum Coordinates : std::int64_t { kHalfPixel = 0, kSymmetric = 1, kPytorch = 2, kAlignCorners = 3, kAsymmetric = 4, kCrop = 5 };

// Arguments in their order; `extents` and `scales` have one value an axis.
enum ResizeArgument : std::size_t {
  kExtents,
  kScales,
  kMode,
  kCoordinates,
  kRounding,
  kCubicA,
  kExclude,
  kExtrapolation,
  kAntialias,
  kRoi
};

// ---- ResizeAtRun: scales or sizes, or the extents of the input, come at run

enum AtRunArgument : std::size_t { kAxes, kPolicy, kAtScales, kAtSizes };

/// Then kMode to kAntialias, as above.
constexpr std::size_t common(std::size_t argument) noexcept { return argument - kMode + 4; }

/// The same as a ResizeOfExtents, whose extents and scales follow from those of the run.
class Resolved {
 public:
  PlainRefusal read(const PlainNode& node) noexcept {
    const Shape& in = node.in(0).shape;
    std::array<std::int64_t, Shape::kMaxRank> extents{}, scales{};
    for (int axis = 0; axis < in.rank(); ++axis) {
      extents[static_cast<std::size_t>(axis)] = in[axis];
      scales[static_cast<std::size_t>(axis)] = std::bit_cast<std::int64_t>(1.0);
    }
    const auto axes = node.list(kAxes);
    const bool by_scales = node.given(kAtScales);
    const std::size_t given = node.list(by_scales ? kAtScales : kAtSizes).size();
    if (given != axes.size() || given > Shape::kMaxRank) return "it wants one scale or size for each axis";
    if (node.given(kAtSizes) && by_scales) return "it has both scales and sizes";
    double shared = 0;  // of all axes, where the aspect is kept
    for (std::size_t i = 0; i < given && !by_scales && node.integer(kPolicy) != 0; ++i) {
      const int axis = axis_of(axes[i], in.rank());
      if (axis < 0 || in[axis] == 0) return kWrongAxis;
      const double scale = static_cast<double>(node.list(kAtSizes)[i]) / static_cast<double>(in[axis]);
      shared = i == 0 ? scale : node.integer(kPolicy) == 1 ? std::min(shared, scale) : std::max(shared, scale);
    }
    for (std::size_t i = 0; i < given; ++i) {
      const int axis = axis_of(axes[i], in.rank());
      if (axis < 0 || in[axis] == 0) return kWrongAxis;
      const auto extent = static_cast<double>(in[axis]);
      double scale = shared, size = std::floor(shared * extent + 0.5);
      if (by_scales) {
        scale = node.real(kAtScales, i);
        size = std::floor(static_cast<double>(static_cast<float>(extent) * static_cast<float>(scale)));
      } else if (shared == 0) {
        size = static_cast<double>(node.list(kAtSizes)[i]);
        scale = size / extent;
      }
      if (!(scale > 0) || !(size >= 1 && size < 1e12)) return "a scale or a size is out of range";
      extents[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(size);
      scales[static_cast<std::size_t>(axis)] = std::bit_cast<std::int64_t>(scale);
    }
    const auto rank = static_cast<std::size_t>(in.rank());
    add(std::span<const std::int64_t>(extents).first(rank));
    add(std::span<const std::int64_t>(scales).first(rank));
    for (std::size_t i = kMode; i <= kAntialias; ++i) {
      const auto list = node.list(common(i));
      add(list.first(std::min<std::size_t>(1, list.size())));
    }
    add({});  // the region
    return node.integer(common(kCoordinates)) == kCrop ? "its region comes at run" : nullptr;
  }
  /// Lives as long as this and `of`.
  PlainNode node(const PlainNode& of) const noexcept;

 private:
  void add(std::span<const std::int64_t> list) noexcept {
    words_[count_++] = static_cast<std::int64_t>(list.size());
    for (const std::int64_t word : list) words_[count_++] = word;
  }
  std::array<std::int64_t, 2 * (Shape::kMaxRank + 1) + 2 * (kAntialias - kMode + 1) + 1> words_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::operators::generic::resize
