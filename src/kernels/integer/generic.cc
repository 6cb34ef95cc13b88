#include "src/kernels/integer/generic.h"

#include <algorithm>

#include "src/kernels/generic/arithmetic.h"
#include "src/kernels/integer/matmul.h"
#include "src/kernels/integer/rounding.h"
#include "src/kernels/integer/walk.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/matrix_lines.h"
#include "src/kernels/reference/pool_window.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::integer::generic {
namespace {

using operators::IntegerConvolutionParameters;
using operators::IntegerDenseParameters;
using operators::IntegerWeightedParameters;
using reference::address;
using reference::broadcast_index;
using reference::for_pixels;
using reference::Index;
using reference::index_at;
using reference::same_pixel;

/// The i8 panels of a step, seen as values w(n, tap, k) (core/panels.h has the picture).
class Panels {
 public:
  Panels(const WeightOperand& operand, const operators::PanelGeometry& geometry, std::int64_t depth) noexcept
      : operand_(operand),
        outputs_per_group_(geometry.outputs_per_group),
        interleave_(geometry.layout.k_interleave),
        tap_values_(ceil_div(depth, interleave_) * interleave_) {}

  std::int32_t at(std::int64_t n, std::int64_t tap, std::int64_t k) const noexcept {
    const std::int64_t lane = (outputs_per_group_ < kPanelLanes ? n : n % outputs_per_group_) % kPanelLanes;
    const std::int64_t panel = panels_of_channels({n - lane, n + 1}, outputs_per_group_).begin - operand_.panels.begin;
    const std::int64_t i = tap * tap_values_ + k;
    const auto* values =
        reinterpret_cast<const std::int8_t*>(operand_.data) + panel * static_cast<std::int64_t>(operand_.panel_bytes.count());
    return values[(i / interleave_ * kPanelLanes + lane) * interleave_ + i % interleave_];
  }

 private:
  const WeightOperand& operand_;
  std::int64_t outputs_per_group_, interleave_, tap_values_;
};

/// What becomes of a finished sum (operators/parameters/integer.h).
class Finish {
 public:
  explicit Finish(const KernelCall& call) noexcept : call_(call), epilogue_(call.parameters<IntegerWeightedParameters>().epilogue) {
    bias_ = reinterpret_cast<const std::int32_t*>(call.weights[1].data);
    if (call.weights.size() > 2) multipliers_ = reinterpret_cast<const float*>(call.weights[2].data);
  }

  /// Sums wrap round: a model must not be able to stop the process.
  void operator()(std::uint32_t products, std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept {
    const RowView& out = call_.outputs[0].view;
    const auto addend = static_cast<std::uint32_t>(bias_[n]);
    const auto sum = static_cast<std::int32_t>(epilogue_.run_time == 0 ? products + addend : products - zero_of(call_) * addend);
    if (out.dtype == DType::kI32) {
      out.at<std::int32_t>(row, pixel)[n] = sum;
      return;
    }
    const float value = epilogue_.run_time == 0 ? static_cast<float>(sum) * multipliers_[n] : scaled_at_run_time(sum, n);
    if (out.dtype == DType::kF32)
      out.at<float>(row, pixel)[n] = reference::apply(epilogue_.activation, value);
    else
      out.at<std::uint8_t>(row, pixel)[n] = epilogue_.has_residual ? with_residual(value, row, pixel, n) : to_u8(value, epilogue_.range);
  }

 private:
  float scaled_at_run_time(std::int32_t sum, std::int64_t n) const noexcept {
    const Operand& scale = call_.inputs[2];
    const float real = static_cast<float>(sum) * scale.view.at<const float>(0)[scale.shape.element_count() == 1 ? 0 : n];
    return real + multipliers_[n];  // which are the bias
  }

  std::uint8_t with_residual(float value, std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept {
    const IntegerEpilogue& e = epilogue_;
    const std::uint8_t residual = call_.inputs.back().view.at<const std::uint8_t>(row, pixel)[n], sum = to_u8(value, {.zero = e.sum_zero});
    return e.residual_first ? added(e.addition, residual, sum, e.range) : added(e.addition, sum, residual, e.range);
  }

  using IntegerEpilogue = operators::IntegerEpilogue;
  const KernelCall& call_;
  const IntegerEpilogue& epilogue_;
  const std::int32_t* bias_ = nullptr;
  const float* multipliers_ = nullptr;
};

std::uint32_t product(std::uint8_t value, std::int32_t weight) noexcept { return static_cast<std::uint32_t>(value * weight); }

bool inside(std::int64_t i, std::int64_t extent) noexcept { return i >= 0 && i < extent; }

}  // namespace

void conv(const KernelCall& call) noexcept {
  const auto& a = call.parameters<IntegerConvolutionParameters>();
  const Window& w = a.window;
  const RowView& in = call.inputs[0].view;
  const std::int64_t depth = a.group_depth();
  const std::uint8_t zero = zero_of(call);
  const Panels weights(call.weights[0], a.weighted.panels, depth);
  const Finish finish(call);
  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      const std::int64_t first = n / a.group_outputs() * depth;
      std::uint32_t sum = 0;
      for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
        const std::int64_t iy = row % w.out_h * w.stride_h - w.pad_top + tap / w.kernel_w * w.dilation_h;
        const std::int64_t ix = x * w.stride_w - w.pad_left + tap % w.kernel_w * w.dilation_w;
        const bool padded = !inside(iy, w.in_h) || !inside(ix, w.in_w);
        const auto* pixel = padded ? nullptr : in.at<const std::uint8_t>(row / w.out_h * w.in_h + iy, ix) + first;
        for (std::int64_t k = 0; k < depth; ++k) sum += product(padded ? zero : pixel[k], weights.at(n, tap, k));
      }
      finish(sum, row, x, n);
    }
  });
}

void dense(const KernelCall& call) noexcept {
  const auto& a = call.parameters<IntegerDenseParameters>();
  const Panels weights(call.weights[0], a.weighted.panels, a.in_features);
  const Finish finish(call);
  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const auto* in = call.inputs[0].view.at<const std::uint8_t>(row, x);
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      std::uint32_t sum = 0;
      for (std::int64_t k = 0; k < a.in_features; ++k) sum += product(in[k], weights.at(n, 0, k));
      finish(sum, row, x, n);
    }
  });
}

void matmul(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerMatMulParameters>();
  const reference::MatrixLines lines(call);
  const MatMulZeros zeros = zeros_of(call);
  const RowView& out = call.outputs[0].view;
  for (std::int64_t line = call.rows.begin * out.pixels; line < call.rows.end * out.pixels; ++line) {
    const auto* left = reinterpret_cast<const std::uint8_t*>(lines.left(line));
    for (std::int64_t n = 0; n < p.columns; ++n) {
      std::uint32_t products = 0;
      for (std::int64_t k = 0; k < p.depth; ++k) {
        const auto right = std::to_integer<std::int32_t>(lines.right(line, k)[n]);
        products += static_cast<std::uint32_t>((left[k] - zeros.a) * (right - zeros.b));
      }
      const auto sum = static_cast<std::int32_t>(products);
      if (out.dtype == DType::kI32) {
        reinterpret_cast<std::int32_t*>(lines.out(line))[n] = sum;
        continue;
      }
      float factor = p.multiplier;
      if (p.run_time == 3) factor = call.inputs[4].view.at<const float>(0)[call.inputs[4].shape.element_count() == 1 ? 0 : n];
      const float value = static_cast<float>(sum) * factor;
      if (out.dtype == DType::kF32)
        reinterpret_cast<float*>(lines.out(line))[n] = value;
      else
        reinterpret_cast<std::uint8_t*>(lines.out(line))[n] = to_u8(value, p.range);
    }
  }
}

namespace {

std::uint8_t mean_of_sum(const operators::IntegerPoolParameters& a, std::int32_t sum, float count) noexcept {
  return to_u8(static_cast<float>(sum) * (a.scale_in / (a.scale * count)), a.range);
}

std::uint8_t mean_of_reals(const operators::IntegerPoolParameters& a, float sum, float count) noexcept {
  return to_u8_with_zero(sum / count / a.scale, a.range, a.offset);
}

}  // namespace

void pool(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::IntegerPoolParameters>();
  const RowView& in = call.inputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const PoolWindow window = pool_window(a.pool, row, x);
    for (std::int64_t c = call.channels.begin; c < call.channels.end; ++c) {
      std::uint8_t most = 0;
      std::int32_t sum = 0;
      float reals = 0.0f;
      for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step)
        for (std::int64_t ix = window.x.begin; ix < window.x.end; ix += window.x.step) {
          const std::uint8_t value = in.at<const std::uint8_t>(window.first_row + iy, ix)[c];
          most = std::max(most, value);
          sum += value - a.zero_in;
          reals += to_real(value, a.zero_in, a.scale_in);
        }
      std::uint8_t& result = call.outputs[0].view.at<std::uint8_t>(row, x)[c];
      const auto count = static_cast<float>(window.divisor);
      if (a.pool.kind == PoolingKind::kMax)
        result = std::clamp(most, a.range.low, a.range.high);
      else
        result = a.whole() ? mean_of_sum(a, sum, count) : mean_of_reals(a, reals, count);
    }
  });
}

void table(const KernelCall& call) noexcept {
  const auto* results = reinterpret_cast<const std::uint8_t*>(call.weights[0].data);
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const auto* in = same_pixel<std::uint8_t>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t c = 0; c < out.channels; ++c) out.at<std::uint8_t>(row, pixel)[c] = results[in[c]];
  });
}

namespace {

std::uint8_t join(const operators::IntegerBinaryParameters& p, std::uint8_t a, std::uint8_t b) noexcept {
  if (p.function == BinaryFunction::kAdd) return added(p.addition, a, b, p.range);
  if (p.function == BinaryFunction::kMul)
    return to_u8_with_zero(static_cast<float>((a - p.zero_a) * (b - p.zero_b)) * (p.scale_a * p.scale_b / p.scale), p.range);
  const float value = kernels::generic::apply(p.function, to_real(a, p.zero_a, p.scale_a), to_real(b, p.zero_b, p.scale_b));
  return to_u8(value / p.scale, p.range);
}

}  // namespace

void binary(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerBinaryParameters>();
  const Operand &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    const auto* pa = reinterpret_cast<const std::uint8_t*>(address(a, broadcast_index(a.shape, index, out.shape.rank())));
    const auto* pb = reinterpret_cast<const std::uint8_t*>(address(b, broadcast_index(b.shape, index, out.shape.rank())));
    const int a_step = a.shape.back() == 1 ? 0 : 1, b_step = b.shape.back() == 1 ? 0 : 1;
    for (std::int64_t c = 0; c < out.view.channels; ++c) out.view.at<std::uint8_t>(row, pixel)[c] = join(p, pa[c * a_step], pb[c * b_step]);
  });
}

void quantize(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerBorderParameters>();
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const auto* in = same_pixel<float>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t c = 0; c < out.channels; ++c) out.at<std::uint8_t>(row, pixel)[c] = to_u8(in[c] / p.scale, {.zero = p.zero});
  });
}

void dequantize(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerBorderParameters>();
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const auto* in = same_pixel<std::uint8_t>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t c = 0; c < out.channels; ++c) out.at<float>(row, pixel)[c] = to_real(in[c], p.zero, p.scale);
  });
}

namespace {

void resize_nearest(const KernelCall& call, const operators::ResizeParameters& a) noexcept {
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  const int last = out.shape.rank() - 1;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    Index index = index_at(out.shape, row, pixel);
    for (int axis = 0; axis < last; ++axis) {
      auto& place = index[static_cast<std::size_t>(axis)];
      place = resize_taps(a, in.shape, out.shape, axis, place).source[0];
    }
    for (std::int64_t c = 0; c < out.view.channels; ++c) {
      index[static_cast<std::size_t>(last)] = resize_taps(a, in.shape, out.shape, last, c).source[0];
      out.view.at<std::uint8_t>(row, pixel)[c] = *reinterpret_cast<const std::uint8_t*>(address(in, index));
    }
  });
}

void resize_linear(const KernelCall& call, const operators::IntegerResizeParameters& p) noexcept {
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const LinearTaps rows = linear_taps(p.resize, in.shape, out.shape, 1, row % out.shape[1]);
    const LinearTaps columns = linear_taps(p.resize, in.shape, out.shape, 2, x);
    const std::int64_t image = row / out.shape[1] * in.shape[1];
    for (std::int64_t c = 0; c < out.view.channels; ++c) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto byte = in.view.at<const std::uint8_t>(image + rows.source[i / 2], columns.source[i % 2])[c];
        const float part = columns.weight[i % 2] * rows.weight[i / 2] * to_real(byte, p.zero_in, p.scale_in);
        sum = i == 0 ? part : sum + part;
      }
      out.view.at<std::uint8_t>(row, x)[c] = to_u8(sum / p.scale, p.range);
    }
  });
}

}  // namespace

void resize(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerResizeParameters>();
  p.resize.mode == ResizeMode::kLinear ? resize_linear(call, p) : resize_nearest(call, p.resize);
}

void softmax(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerSoftmaxParameters>();
  const auto* table = reinterpret_cast<const float*>(call.weights[0].data);
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const auto* in = same_pixel<std::uint8_t>(call.inputs[0].view, out, row, pixel);
    const std::uint8_t most = *std::max_element(in, in + out.channels);
    float sum = 0.0f;
    for (std::int64_t c = 0; c < out.channels; ++c) sum += table[255 - most + in[c]];
    for (std::int64_t c = 0; c < out.channels; ++c)
      out.at<std::uint8_t>(row, pixel)[c] = to_u8(table[255 - most + in[c]] * p.steps / sum, p.range);
  });
}

}  // namespace sluice::kernels::integer::generic
