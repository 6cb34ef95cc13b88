// Pooling: the maximum or the mean of a window, channel by channel.
//
// Order of a mean's sum: each row of the window from left to right, then the rows' sums from top to bottom. Two short chains lose less
// than one long one, which matters for global averages. Long rows of a single channel, which is what means over a last axis are, are summed
// as lane_sum.h says.
#include <algorithm>
#include <limits>

#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/lane_sum.h"
#include "src/kernels/reference/pool_window.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

float maximum(const RowView& in, const PoolWindow& window, std::int64_t channel) noexcept {
  float best = -std::numeric_limits<float>::infinity();
  for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step)
    for (std::int64_t ix = window.x.begin; ix < window.x.end; ix += window.x.step) {
      const float value = in.at<const float>(window.first_row + iy, ix)[channel];
      best = best < value ? value : best;
    }
  return best;
}

float mean(const RowView& in, const PoolWindow& window, std::int64_t channel) noexcept {
  float sum = 0.0f;
  for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step) {
    if (sums_lanes(in, window)) {
      LaneSum row_sum;
      for (std::int64_t i = 0; i < window.x.count; ++i) row_sum.add(i, *in.at<const float>(window.first_row + iy, window.x.begin + i));
      sum += row_sum.total();
      continue;
    }
    float row_sum = 0.0f;
    for (std::int64_t ix = window.x.begin; ix < window.x.end; ix += window.x.step)
      row_sum += in.at<const float>(window.first_row + iy, ix)[channel];
    sum += row_sum;
  }
  return sum / static_cast<float>(window.divisor);
}

}  // namespace

void pool(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::PoolParameters>();
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const PoolWindow window = pool_window(a, row, x);
    for (std::int64_t c = call.channels.begin; c < call.channels.end; ++c) {
      const float value = a.kind == PoolingKind::kMax ? maximum(in, window, c) : mean(in, window, c);
      out.at<float>(row, x)[c] = apply(a.activation, value);
    }
  });
}

}  // namespace sluice::kernels::reference
