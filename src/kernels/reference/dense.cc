// Dense layers, and the product of two activations.
#include <cmath>

#include "src/kernels/generic/chains.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {

/// [..., K] x panels -> [..., N]. The place to start reading: a sum, a finish, nothing else.
void dense(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::DenseParameters>();
  const RowView& out = call.outputs[0].view;
  const PanelReader weights(call.weights[0], a.out_features, 1, a.in_features);
  const Products products(call, a.in_features);
  const Finish finish(call);

  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const float* in = same_pixel<float>(call.inputs[0].view, out, row, pixel);
    for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
      const float* column = weights.channel(n) + products.begin() * kPanelLanes;
      const float sum =
          generic::chain(products.first(row, pixel, n), {in + products.begin()}, {column, kPanelLanes}, products.end() - products.begin());
      if (!products.finishes()) {
        products.keep(sum, row, pixel, n);
        continue;
      }
      out.at<float>(row, pixel)[n] = finish(sum, row, pixel, n);
    }
  });
}

/// [..., M, K] x [..., K, N] -> [..., M, N], the leading axes broadcast as numpy does.
void matmul(const KernelCall& call) noexcept {
  const Operand& a = call.inputs[0];
  const Operand& b = call.inputs[1];
  const Operand& out = call.outputs[0];
  const int rank = out.shape.rank();
  const std::int64_t depth = a.shape.back();

  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const Index index = index_at(out.shape, row, pixel);
    Index a_index = broadcast_index(a.shape, index, rank);
    Index b_index = broadcast_index(b.shape, index, rank);
    const auto k_axis = static_cast<std::size_t>(b.shape.rank() - 2);
    b_index[k_axis] = 0;
    const auto* left = reinterpret_cast<const float*>(address(a, a_index));
    float* sums = out.view.at<float>(row, pixel);
    for (std::int64_t n = 0; n < out.view.channels; ++n) sums[n] = 0.0f;
    for (std::int64_t k = 0; k < depth; ++k) {
      b_index[k_axis] = k;
      const auto* right = reinterpret_cast<const float*>(address(b, b_index));
      for (std::int64_t n = 0; n < out.view.channels; ++n) sums[n] = std::fma(left[k], right[n], sums[n]);
    }
  });
}

}  // namespace sluice::kernels::reference
