// Resize: nearest, linear and cubic, along any axes, with every coordinate rule of ONNX.
#include "src/kernels/generic/resize.h"

#include <algorithm>
#include <cmath>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// out[0, n) = sum over all combinations of weight * in[source, + n).
void weighted_sum(const Operand& in, const generic::Sources& sources, float* out, std::int64_t n) noexcept {
  for (std::int64_t c = 0; c < n; ++c) out[c] = 0.0f;
  sources.for_each([&](const Index& index, float weight) {
    const auto* from = reinterpret_cast<const float*>(address(in, index));
    for (std::int64_t c = 0; c < n; ++c) out[c] = std::fma(weight, from[c], out[c]);
  });
}

}  // namespace

void resize(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::ResizeParameters>();
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  const int rank = out.shape.rank();
  const int last = rank - 1;
  const bool channels_keep = rank == 0 || keeps_extent(a, in.shape, out.shape, last);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    generic::Sources sources;
    sources.rank = rank;
    for (int axis = 0; axis < rank; ++axis)
      sources.axis[static_cast<std::size_t>(axis)] = resize_taps(a, in.shape, out.shape, axis, index[static_cast<std::size_t>(axis)]);
    float* to = out.view.at<float>(row, pixel);
    if (channels_keep) return weighted_sum(in, sources, to, out.view.channels);
    for (std::int64_t c = 0; c < out.view.channels; ++c) {
      sources.axis[static_cast<std::size_t>(last)] = resize_taps(a, in.shape, out.shape, last, c);
      weighted_sum(in, sources, to + c, 1);
    }
  });
}

}  // namespace sluice::kernels::reference
