// Softmax and layer normalisation over the last axis, and local response normalisation over channels.
#include <algorithm>
#include <cmath>

#include "sluice/operators/parameters/elementwise.h"
#include "sluice/operators/parameters/transformer.h"
#include "src/kernels/generic/rows.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {

void softmax(const KernelCall& call) noexcept {
  const bool log = call.parameters<operators::SoftmaxParameters>().log;
  const RowView& view = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    generic::softmax(same_pixel<float>(call.inputs[0].view, view, row, pixel), view.at<float>(row, pixel), view.channels, 1, log);
  });
}

void layer_norm(const KernelCall& call) noexcept {
  const float epsilon = call.parameters<operators::LayerNormParameters>().epsilon;
  const RowView& view = call.outputs[0].view;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, view, row, pixel);
    float* out = view.at<float>(row, pixel);
    const generic::Moments moments = generic::moments_of(in, view.channels, epsilon);
    for (std::int64_t c = 0; c < view.channels; ++c) out[c] = generic::normalised(in[c], moments, scale[c], shift[c]);
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
