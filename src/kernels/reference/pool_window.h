// Which input pixels an output pixel of a pool sees. Shared by the reference and the SIMD kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/units.h"
#include "sluice/operators/parameters/elementwise.h"
#include "src/kernels/generic/folds.h"

namespace sluice::kernels {

/// The taps of one axis that lie inside the image: begin, begin + step, ... below end.
struct PoolAxis {
  std::int64_t begin = 0, end = 0, step = 1;
  std::int64_t count = 0;         // taps inside the image
  std::int64_t padded_count = 0;  // taps inside the padded image
};

struct PoolWindow {
  std::int64_t first_row = 0;  // of the input's image
  PoolAxis y, x;
  std::int64_t divisor = 1;  // of a mean
};

/// Are the rows of a mean's window summed in sixteen lanes (reference/lane_sum.h)? It depends on the tensor and the window alone.
inline bool sums_lanes(const RowView& in, const PoolWindow& window) noexcept {
  return in.channels == 1 && window.x.step == 1 && window.x.count >= generic::kLeastOfLanes;
}

/// Can they be: are windows wide enough that lie inside the image?
inline bool sums_in_lanes(const operators::PoolParameters& a, const RowView& in) noexcept {
  return a.kind == PoolingKind::kAverage && in.channels == 1 && a.window.dilation_w == 1 && a.window.kernel_w >= generic::kLeastOfLanes;
}

/// `in` pixels; `kernel` taps from `start` on (which padding makes negative), `dilation` apart; padding `pad_after` behind the image.
inline PoolAxis pool_axis(std::int64_t in, std::int64_t kernel, std::int64_t start, std::int64_t dilation,
                          std::int64_t pad_after) noexcept {
  const auto taps_below = [&](std::int64_t limit) {
    const std::int64_t distance = limit - start;
    // A division costs more than the window of a small pool.
    return std::clamp<std::int64_t>(dilation == 1 ? distance : (distance + dilation - 1) / dilation, 0, kernel);
  };
  const std::int64_t first = taps_below(0);
  PoolAxis axis;
  axis.step = dilation;
  axis.begin = start + first * dilation;
  axis.count = taps_below(in) - first;
  axis.end = axis.begin + axis.count * dilation;
  axis.padded_count = taps_below(in + pad_after);
  return axis;
}

/// Moves the window along its row to output column `x`.
inline void move_to_column(const operators::PoolParameters& a, std::int64_t x, PoolWindow& window) noexcept {
  const Window& w = a.window;
  window.x = pool_axis(w.in_w, w.kernel_w, x * w.stride_w - w.pad_left, w.dilation_w, w.pad_right);
  const std::int64_t taps = a.count_include_pad ? window.y.padded_count * window.x.padded_count : window.y.count * window.x.count;
  window.divisor = std::max<std::int64_t>(1, taps);
}

/// The outputs of a row whose windows lie inside along it.
inline Interval<std::int64_t> inner_columns(const Window& w) noexcept {
  const std::int64_t last = w.in_w + w.pad_left - (w.kernel_w - 1) * w.dilation_w - 1;  // where the last of their windows may begin
  const std::int64_t begin = std::min(w.out_w, ceil_div(w.pad_left, w.stride_w));
  return {begin, last < 0 ? begin : std::clamp(last / w.stride_w + 1, begin, w.out_w)};
}

/// The window of output row `row` (of N * out_h) and output column `x`.
inline PoolWindow pool_window(const operators::PoolParameters& a, std::int64_t row, std::int64_t x) noexcept {
  const Window& w = a.window;
  PoolWindow window;
  window.first_row = row / w.out_h * w.in_h;
  window.y = pool_axis(w.in_h, w.kernel_h, row % w.out_h * w.stride_h - w.pad_top, w.dilation_h, w.pad_bottom);
  move_to_column(a, x, window);
  return window;
}

}  // namespace sluice::kernels
