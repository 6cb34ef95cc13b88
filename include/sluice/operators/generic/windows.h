// Windows that move over any number of spatial axes: the geometry of convolutions and pools in ONNX's words.
//
// Arguments of every operator here begin with SLUICE_WINDOW_ARGUMENTS, in this order.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic {

/// A macro, so that an operator's line can append its own to the literal.
#define SLUICE_WINDOW_ARGUMENTS "kernel_shape:I strides:I dilations:I pads:I auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID ceil_mode:i=0 "
enum AutoPad : std::int64_t { kNotSet = 0, kSameUpper = 1, kSameLower = 2, kValid = 3 };
inline constexpr int kMaxSpatial = Shape::kMaxRank - 2;
inline constexpr std::int64_t kMaxWindowExtent = std::int64_t{1} << 30;

struct Windows {
  int axes = 0;
  Extents in{}, out{}, kernel{}, stride{}, dilation{}, before{}, after{};

  std::int64_t taps() const noexcept { return product(kernel); }
  std::int64_t outputs() const noexcept { return product(out); }
  std::int64_t inputs() const noexcept { return product(in); }
  std::int64_t product(const Extents& extents) const noexcept {
    std::int64_t all = 1;
    for (int a = 0; a < axes; ++a) all *= extents[static_cast<std::size_t>(a)];
    return all;
  }
};

/// One value an axis from an argument, or `otherwise` for all.
inline bool read_axes(const PlainNode& node, std::size_t argument, int axes, std::int64_t otherwise, std::int64_t least,
                      Extents& to) noexcept {
  const auto values = node.list(argument);
  if (!values.empty() && static_cast<int>(values.size()) != axes) return false;
  for (std::size_t a = 0; a < static_cast<std::size_t>(axes); ++a) {
    to[a] = values.empty() ? otherwise : values[a];
    if (to[a] < least || to[a] > kMaxWindowExtent) return false;
  }
  return true;
}

/// No kernel of a real model comes near; the product of its extents must stay a number.
inline bool taps_bounded(const Windows& w) noexcept {
  std::int64_t taps = 1;
  for (int a = 0; a < w.axes; ++a)
    if (__builtin_mul_overflow(taps, w.kernel[static_cast<std::size_t>(a)], &taps) || taps > kMaxWindowExtent) return false;
  return true;
}

/// Everything but `out`; `kernel` is given by a weight's shape, or read when it is empty.
inline bool read_windows(const PlainNode& node, const Shape& x, std::span<const std::int64_t> kernel, Windows& w) noexcept {
  w.axes = x.rank() - 2;
  if (w.axes < 1 || w.axes > kMaxSpatial) return false;
  if (!read_axes(node, 0, w.axes, 0, 0, w.kernel) || !read_axes(node, 1, w.axes, 1, 1, w.stride) ||
      !read_axes(node, 2, w.axes, 1, 1, w.dilation))
    return false;
  const auto pads = node.list(3);
  if (!pads.empty() && static_cast<int>(pads.size()) != 2 * w.axes) return false;
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
    w.in[a] = x[static_cast<int>(a) + 2];
    if (!kernel.empty()) {
      if (w.kernel[a] != 0 && w.kernel[a] != kernel[a]) return false;
      w.kernel[a] = kernel[a];
    }
    if (w.kernel[a] < 1 || w.kernel[a] > kMaxWindowExtent || w.in[a] > kMaxWindowExtent) return false;
    w.before[a] = pads.empty() ? 0 : pads[a];
    w.after[a] = pads.empty() ? 0 : pads[a + static_cast<std::size_t>(w.axes)];
    if (w.before[a] < 0 || w.after[a] < 0 || w.before[a] > kMaxWindowExtent || w.after[a] > kMaxWindowExtent) return false;
  }
  return taps_bounded(w);
}

/// The extents of a convolution's or pool's output; applies auto_pad.
inline bool slide(const PlainNode& node, Windows& w) noexcept {
  const std::int64_t auto_pad = node.integer(4);
  const bool same = auto_pad == kSameUpper || auto_pad == kSameLower, ceil_mode = node.integer(5) != 0;
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
    const std::int64_t reach = (w.kernel[a] - 1) * w.dilation[a] + 1;
    if (auto_pad == kValid) w.before[a] = w.after[a] = 0;
    if (same) {
      w.out[a] = (w.in[a] + w.stride[a] - 1) / w.stride[a];
      const std::int64_t total = std::max<std::int64_t>(0, (w.out[a] - 1) * w.stride[a] + reach - w.in[a]);
      w.before[a] = auto_pad == kSameUpper ? total / 2 : total - total / 2;
      w.after[a] = total - w.before[a];
      continue;
    }
    const std::int64_t room = w.in[a] + w.before[a] + w.after[a] - reach;
    if (room < 0) return false;
    w.out[a] = (room + (ceil_mode ? w.stride[a] - 1 : 0)) / w.stride[a] + 1;
    // A last window that would begin beyond the input and its leading padding is dropped.
    if (ceil_mode && (w.out[a] - 1) * w.stride[a] >= w.in[a] + w.before[a]) --w.out[a];
  }
  return true;
}

inline bool window_shape(const Windows& w, std::int64_t batches, std::int64_t channels, Shape& out) noexcept {
  Dims dims;
  dims.add(batches);
  dims.add(channels);
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) dims.add(w.out[a]);
  return make_shape(dims.span(), out);
}

/// Output position `at`, tap `tap`: the place in the input, or -1 in the padding. `padded`: inside the padded input.
inline std::int64_t tap_place(const Windows& w, std::int64_t at, std::int64_t tap, bool* padded = nullptr) noexcept {
  std::int64_t place = 0, scale = 1;
  bool inside = true;
  if (padded != nullptr) *padded = true;
  for (int axis = w.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t i = at % w.out[a] * w.stride[a] + tap % w.kernel[a] * w.dilation[a] - w.before[a];
    at /= w.out[a];
    tap /= w.kernel[a];
    inside = inside && i >= 0 && i < w.in[a];
    if (padded != nullptr && i >= w.in[a] + w.after[a]) *padded = false;
    if (inside) place += i * scale;
    scale *= w.in[a];
  }
  return inside ? place : -1;
}

}  // namespace sluice::operators::generic
