#include "src/kernels/reference/sparse.h"

#include <cmath>

#include "sluice/operators/parameters/sparse.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/reference/walk.h"
#include "src/kernels/weighted/sparse_panels.h"

namespace sluice::kernels::reference {
namespace {

using weighted::SparsePanel;

/// Lane `lane` of a block, as a float.
float value_of(const std::byte* block, DType dtype, std::int64_t lane) noexcept {
  if (dtype != DType::kF32) return narrow_value({.layout = WeightLayout::kPanels, .dtype = dtype}, block, 0, lane);
  float value;
  std::memcpy(&value, block + lane * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

/// For each output channel and pixel of the step: its sum over the products of the step whose block is there and for which
/// `input(row, pixel, i)` is not null, then its end.
template <class Input>
void run(const KernelCall& call, const std::uint32_t* ends, const Input& input) noexcept {
  const operators::PanelGeometry& geometry = call.parameters<operators::WeightedParameters>().panels;
  const Products products(call, geometry.values);
  const Finish finish(call);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      const SparsePanel panel = weighted::sparse_panel(call.weights[0], geometry, ends, n / kPanelLanes);
      std::int64_t block = panel.count_before(products.begin());
      float sum = products.first(row, pixel, n);
      panel.for_each({products.begin(), products.end()}, block, [&](std::int64_t i) {
        const float* const in = input(row, pixel, i);
        if (in != nullptr) sum = std::fma(*in, value_of(panel.block(block), geometry.layout.dtype, n % kPanelLanes), sum);
        ++block;
      });
      if (!products.finishes()) {
        products.keep(sum, row, pixel, n);
        continue;
      }
      call.outputs[0].view.at<float>(row, pixel)[n] = finish(sum, row, pixel, n);
    }
  });
}

}  // namespace

void sparse_dense(const KernelCall& call) noexcept {
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  run(call, call.parameters<operators::SparseDenseParameters>().panel_ends,
      [&](std::int64_t row, std::int64_t pixel, std::int64_t i) { return same_pixel<float>(in, out, row, pixel) + i; });
}

/// Taps that fall on padding are left out, as blocks are that are not there.
void sparse_conv(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::SparseConvolutionParameters>();
  const Window& w = a.window;
  const RowView& in = call.inputs[0].view;
  const std::int64_t depth = a.dense().in_channels;
  run(call, a.panel_ends, [&](std::int64_t row, std::int64_t x, std::int64_t i) -> const float* {
    const std::int64_t tap = i / depth;
    const std::int64_t iy = row % w.out_h * w.stride_h - w.pad_top + tap / w.kernel_w * w.dilation_h;
    const std::int64_t ix = x * w.stride_w - w.pad_left + tap % w.kernel_w * w.dilation_w;
    if (iy < 0 || iy >= w.in_h || ix < 0 || ix >= w.in_w) return nullptr;
    return in.at<const float>(row / w.out_h * w.in_h + iy, ix) + i % depth;
  });
}

}  // namespace sluice::kernels::reference
