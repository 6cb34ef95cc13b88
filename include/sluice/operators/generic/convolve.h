// Windows of convolutions, of transposed ones and of columns, from a node's arguments and the shapes of its operands.
//
// Read by the definitions (src/operators/generic/convolve.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/convolve.cc).
//
// Invariant: after true, channels divide into the groups without rest and every extent of the output is at least 1.
#pragma once

#include "sluice/operators/generic/windows.h"

namespace sluice::operators::generic::convolve {

/// x [N, C, ...], w [M, C / groups, ...]; argument 6 is `group`. The weight is input `weight`.
inline bool convolution_of(const PlainNode& node, int weight, Windows& w) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(weight).shape;
  const std::int64_t groups = node.integer(6);
  if (x.rank() < 3 || k.rank() != x.rank() || groups < 1) return false;
  if (x[1] % groups != 0 || k[0] % groups != 0 || k[1] != x[1] / groups) return false;
  return read_windows(node, x, k.dims().subspan(2), w) && slide(node, w);
}

// ---- ConvTranspose: x [N, C, ...], w [C, M / groups, ...]; arguments 7 and 8: output_padding, output_shape

inline bool transposed_of(const PlainNode& node, Windows& w) noexcept {
  const Shape &x = node.in(0).shape, &k = node.in(1).shape;
  const std::int64_t groups = node.integer(6), auto_pad = node.integer(4);
  if (x.rank() < 3 || k.rank() != x.rank() || groups < 1 || k[0] != x[1] || x[1] % groups != 0) return false;
  if (!read_windows(node, x, k.dims().subspan(2), w)) return false;
  Extents extra{}, wanted{};
  if (!read_axes(node, 7, w.axes, 0, 0, extra) || !read_axes(node, 8, w.axes, 0, 0, wanted)) return false;
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
    const std::int64_t full = w.stride[a] * (w.in[a] - 1) + extra[a] + (w.kernel[a] - 1) * w.dilation[a] + 1;
    const bool same = auto_pad == kSameUpper || auto_pad == kSameLower;
    if (same && wanted[a] == 0) wanted[a] = w.in[a] * w.stride[a];
    if (auto_pad == kValid) w.before[a] = w.after[a] = 0;
    if (wanted[a] > 0) {
      const std::int64_t total = std::max<std::int64_t>(0, full - wanted[a]);
      w.before[a] = auto_pad == kSameUpper ? total / 2 : total - total / 2;
      w.after[a] = total - w.before[a];
    }
    w.out[a] = wanted[a] > 0 ? wanted[a] : full - w.before[a] - w.after[a];
    if (w.out[a] < 1 || w.out[a] > kMaxWindowExtent) return false;
  }
  return true;
}

// ---- Col2Im: columns [N, C * taps, positions] summed into an image; arguments 6, 7: image_shape, block_shape

inline bool columns_of(const PlainNode& node, Windows& w) noexcept {
  const auto image = node.list(6), block = node.list(7);
  const Shape& x = node.in(0).shape;
  if (x.rank() != 3 || image.empty() || image.size() != block.size() || image.size() > kMaxSpatial) return false;
  Dims dims;
  dims.add(1);
  dims.add(1);
  for (const std::int64_t extent : image) dims.add(extent);
  Shape shape;
  if (!make_shape(dims.span(), shape) || shape.element_count() == 0) return false;
  return read_windows(node, shape, block, w) && slide(node, w) && x[2] == w.outputs() && x[1] % w.taps() == 0;
}

}  // namespace sluice::operators::generic::convolve
