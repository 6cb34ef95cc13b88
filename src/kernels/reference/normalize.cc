// Softmax over the last axis, and local response normalisation over channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// The order in which softmax sums, the same for every ISA: sixteen partial sums, value i to sum i mod 16, then folded in halves.
class LaneSum {
 public:
  void add(std::int64_t i, float value) noexcept { lanes_[i % kLanes] += value; }
  float total() noexcept {
    for (int half = kLanes / 2; half >= 1; half /= 2)
      for (int lane = 0; lane < half; ++lane) lanes_[lane] += lanes_[lane + half];
    return lanes_[0];
  }

 private:
  static constexpr int kLanes = 16;
  float lanes_[kLanes] = {};
};

}  // namespace

/// exp(x - max) / sum, or x - max - log(sum).
void softmax(const KernelCall& call) noexcept {
  const bool log = call.node->as<model::SoftmaxAttributes>().log;
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

/// x / (bias + alpha / size * sum of squares of `size` neighbouring channels) ^ beta
void lrn(const KernelCall& call) noexcept {
  const auto& a = call.node->as<model::LrnAttributes>();
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
