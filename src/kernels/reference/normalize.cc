// Softmax and layer normalisation over the last axis, and local response normalisation over channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sluice/operators/parameters/elementwise.h"
#include "sluice/operators/parameters/transformer.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/lane_sum.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
/// exp(x - max) / sum, or x - max - log(sum).
void softmax(const KernelCall& call) noexcept {
  const bool log = call.parameters<operators::SoftmaxParameters>().log;
  const RowView& view = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, view, row, pixel);
    float* out = view.at<float>(row, pixel);
    float greatest = -std::numeric_limits<float>::infinity();
    for (std::int64_t c = 0; c < view.channels; ++c) greatest = greatest < in[c] ? in[c] : greatest;
    LaneSum sum;
    for (std::int64_t c = 0; c < view.channels; ++c) {
      const float shifted = in[c] - greatest;
      const float e = exp(shifted);
      sum.add(c, e);
      out[c] = log ? shifted : e;
    }
    const float total = sum.total();
    const float log_total = reference::log(total);
    for (std::int64_t c = 0; c < view.channels; ++c) out[c] = log ? out[c] - log_total : out[c] / total;
  });
}

/// (x - mean) / sqrt(variance + epsilon) * scale + shift
void layer_norm(const KernelCall& call) noexcept {
  const float epsilon = call.parameters<operators::LayerNormParameters>().epsilon;
  const RowView& view = call.outputs[0].view;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  const auto count = static_cast<float>(view.channels);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, view, row, pixel);
    float* out = view.at<float>(row, pixel);
    LaneSum sum, squares;
    for (std::int64_t c = 0; c < view.channels; ++c) sum.add(c, in[c]);
    const float mean = sum.total() / count;
    for (std::int64_t c = 0; c < view.channels; ++c) squares.add_square(c, in[c] - mean);
    const float factor = 1.0f / std::sqrt(squares.total() / count + epsilon);
    for (std::int64_t c = 0; c < view.channels; ++c) out[c] = std::fma((in[c] - mean) * factor, scale[c], shift[c]);
  });
}

/// x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta
void lrn(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::LrnParameters>();
  const RowView& view = call.outputs[0].view;
  const std::int64_t before = (a.size - 1) / 2, after = a.size / 2;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, view, row, pixel);
    for (std::int64_t c = 0; c < view.channels; ++c) {
      const std::int64_t last = std::min(view.channels - 1, c + after);
      float sum = 0.0f;
      for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= last; ++k) sum = std::fma(in[k], in[k], sum);
      view.at<float>(row, pixel)[c] = in[c] * exp(-a.beta * reference::log(std::fma(a.alpha / static_cast<float>(a.size), sum, a.bias)));
    }
  });
}

}  // namespace sluice::kernels::reference
