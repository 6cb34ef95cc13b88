// Pooling: the maximum or the mean of a window, channel by channel.
//
// Order of a mean's sum: each row of the window from left to right, then the rows' sums from top to bottom. Two short chains lose less
// than one long one, which matters for global averages. Long rows of a single channel, which is what means over a last axis are, are summed
// as lane_sum.h says (generic/folds.h).
#include "src/kernels/generic/folds.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/pool_window.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

float maximum(const RowView& in, const PoolWindow& window, std::int64_t channel) noexcept {
  generic::Greatest<float> greatest;
  for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step)
    for (std::int64_t ix = window.x.begin; ix < window.x.end; ix += window.x.step)
      greatest.add(in.at<const float>(window.first_row + iy, ix)[channel]);
  return greatest.value();
}

float mean(const RowView& in, const PoolWindow& window, std::int64_t channel) noexcept {
  generic::Mean mean(in.channels == 1 && window.x.step == 1);
  for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step) {
    for (std::int64_t ix = window.x.begin; ix < window.x.end; ix += window.x.step)
      mean.add(in.at<const float>(window.first_row + iy, ix)[channel]);
    mean.end_row();
  }
  return mean.over(window.divisor);
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
