// Convolution and transposed convolution, any groups, dilation and padding.
//
// Each output is one chain of fused multiply-adds from 0: taps in the order of the panels, channels rising within a tap. Taps that fall
// on padding are left out of the chain; multiplying by a zero instead gives the same bits for finite weights. Transposed convolutions that
// sum by taps (core/transposed_sums.h) have a chain for each tap, and add these.
#include "src/kernels/generic/chains.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// Channels [begin, end) of those of one pixel that a group reads, times the weights of one tap.
float add_tap(float sum, const float* pixel, const float* weights, std::int64_t begin, std::int64_t end) noexcept {
  return generic::chain(sum, {pixel + begin}, {weights + begin * kPanelLanes, kPanelLanes}, end - begin);
}

bool inside(std::int64_t i, std::int64_t extent) noexcept { return i >= 0 && i < extent; }

}  // namespace

void conv(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::ConvolutionParameters>();
  const Window& w = a.window;
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const std::int64_t depth = a.in_channels / a.groups;
  const std::int64_t outputs_per_group = a.out_channels / a.groups;
  // A depthwise weight is [C/16][taps][16]: panels that span groups, of depth 1.
  const PanelReader weights(call.weights[0], outputs_per_group, w.taps(), depth);
  const Products products(call, depth);  // a part of them of one tap only
  const Finish finish(call);

  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const std::int64_t image = row / w.out_h, y = row % w.out_h;
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      const std::int64_t first_channel = n / outputs_per_group * depth;
      const float* tap = weights.channel(n);
      float sum = products.first(row, x, n);
      for (std::int64_t ky = 0; ky < w.kernel_h; ++ky) {
        for (std::int64_t kx = 0; kx < w.kernel_w; ++kx, tap += depth * kPanelLanes) {
          const std::int64_t iy = y * w.stride_h - w.pad_top + ky * w.dilation_h;
          const std::int64_t ix = x * w.stride_w - w.pad_left + kx * w.dilation_w;
          if (!inside(iy, w.in_h) || !inside(ix, w.in_w)) continue;
          sum = add_tap(sum, in.at<const float>(image * w.in_h + iy, ix) + first_channel, tap, products.begin(), products.end());
        }
      }
      if (!products.finishes()) {
        products.keep(sum, row, x, n);
        continue;
      }
      out.at<float>(row, x)[n] = finish(sum, row, x, n);
    }
  });
}

namespace {

/// Tap `tap` of one axis meets output coordinate `o` at input coordinate (o + pad - tap * dilation) / stride, if that is whole.
struct TransposedAxis {
  std::int64_t in, kernel, stride, dilation, pad;

  std::int64_t phase(std::int64_t tap) const noexcept { return ((tap * dilation - pad) % stride + stride) % stride; }
  bool meets(std::int64_t o, std::int64_t tap) const noexcept {
    const std::int64_t position = o + pad - tap * dilation;
    return position >= 0 && position % stride == 0 && position / stride < in;
  }
  std::int64_t source(std::int64_t o, std::int64_t tap) const noexcept { return (o + pad - tap * dilation) / stride; }
};

/// Calls body(ky, kx) for all taps in the order of the panels: that of `transposed_tap_order` (kernels/packing.h).
template <class Body>
void for_transposed_taps(const TransposedAxis& v, const TransposedAxis& h, const Body& body) noexcept {
  for (std::int64_t phase_y = 0; phase_y < v.stride; ++phase_y)
    for (std::int64_t phase_x = 0; phase_x < h.stride; ++phase_x)
      for (std::int64_t ky = 0; ky < v.kernel; ++ky)
        for (std::int64_t kx = 0; kx < h.kernel; ++kx)
          if (v.phase(ky) == phase_y && h.phase(kx) == phase_x) body(ky, kx);
}

}  // namespace

void conv_transpose(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::ConvolutionParameters>();
  const Window& w = a.window;
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const std::int64_t depth = a.in_channels / a.groups;
  const std::int64_t outputs_per_group = a.out_channels / a.groups;
  const PanelReader weights(call.weights[0], outputs_per_group, w.taps(), depth);
  const Finish finish(call);
  const bool by_taps = a.by_taps();
  const TransposedAxis vertical{w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top};
  const TransposedAxis horizontal{w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left};

  for_pixels(call, [&](std::int64_t row, std::int64_t x) {
    const std::int64_t image = row / w.out_h, y = row % w.out_h;
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      const std::int64_t first_channel = n / outputs_per_group * depth;
      const float* tap = weights.channel(n);
      float sum = 0.0f;
      for_transposed_taps(vertical, horizontal, [&](std::int64_t ky, std::int64_t kx) {
        if (vertical.meets(y, ky) && horizontal.meets(x, kx)) {
          const float* pixel = in.at<const float>(image * w.in_h + vertical.source(y, ky), horizontal.source(x, kx));
          sum = by_taps ? sum + add_tap(0.0f, pixel + first_channel, tap, 0, depth) : add_tap(sum, pixel + first_channel, tap, 0, depth);
        }
        tap += depth * kPanelLanes;
      });
      out.at<float>(row, x)[n] = finish(sum, row, x, n);
    }
  });
}

}  // namespace sluice::kernels::reference
