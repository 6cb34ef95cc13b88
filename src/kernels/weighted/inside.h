// The part of a window that lies inside the image: kernels that read their inputs in place leave out the taps that meet padding. A product
// with zero changes no sum, so the bits are those of a padded copy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/window.h"

namespace sluice::kernels::weighted {

/// Taps [begin, end) of `kernel` that fall on [0, extent) when tap 0 falls on `first`.
inline Interval<std::int64_t> taps_inside(std::int64_t first, std::int64_t kernel, std::int64_t dilation, std::int64_t extent) noexcept {
  const std::int64_t begin = first >= 0 ? 0 : std::min(kernel, ceil_div(-first, dilation));
  const std::int64_t end = first >= extent ? 0 : std::min(kernel, (extent - 1 - first) / dilation + 1);
  return {begin, std::max(begin, end)};
}

/// Outputs [begin, end) of one axis whose taps are all inside.
inline Interval<std::int64_t> interior(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                       std::int64_t pad) noexcept {
  const std::int64_t begin = std::min(out, ceil_div(pad, stride));  // validate: pads are not negative
  const std::int64_t room = in - 1 - (kernel - 1) * dilation + pad;
  const std::int64_t end = room < 0 ? 0 : std::min(out, room / stride + 1);
  return {begin, std::max(begin, end)};
}
inline Interval<std::int64_t> interior_rows(const Window& w) noexcept {
  return interior(w.in_h, w.out_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
}
inline Interval<std::int64_t> interior_columns(const Window& w) noexcept {
  return interior(w.in_w, w.out_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
}

/// The input rows of one output row: distances, in floats, from the first of them that lies inside the image.
struct InputRows {
  const float* first = nullptr;
  const std::int64_t* offsets = nullptr;
  Interval<std::int64_t> taps;
};

/// `row` counts the rows of all images; `offsets` has room for kernel_h.
inline InputRows input_rows(const RowView& in, const Window& w, std::int64_t row, std::int64_t* offsets) noexcept {
  const std::int64_t image = row / w.out_h * w.in_h;
  const std::int64_t first = row % w.out_h * w.stride_h - w.pad_top;
  InputRows rows{in.at<float>(0), offsets, taps_inside(first, w.kernel_h, w.dilation_h, w.in_h)};
  if (!rows.taps.empty()) rows.first = in.at<float>(image + first + rows.taps.begin * w.dilation_h);
  for (std::int64_t ky = rows.taps.begin; ky < rows.taps.end; ++ky)
    *offsets++ = in.at<float>(image + first + ky * w.dilation_h) - rows.first;
  return rows;
}

}  // namespace sluice::kernels::weighted
