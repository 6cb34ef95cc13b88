// Resize: nearest, linear and cubic, along any axes, with every coordinate rule of ONNX.
//
// Each output is a weighted sum over the product of its sources along each axis (1, 2 or 4 an axis), last axis fastest.
#include <algorithm>
#include <cmath>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// The sources of one output index: taps an axis. Axes that keep their extent have one tap of weight 1.
struct Sources {
  std::array<ResizeTaps, Shape::kMaxRank> axis;
  int rank = 0;

  /// Steps `digit` through all combinations; false after the last.
  bool next(std::array<int, Shape::kMaxRank>& digit) const noexcept {
    for (int i = rank - 1; i >= 0; --i) {
      const auto a = static_cast<std::size_t>(i);
      if (++digit[a] < axis[a].count) return true;
      digit[a] = 0;
    }
    return false;
  }
};

/// out[0, n) = sum over all combinations of weight * in[source, + n).
void weighted_sum(const Operand& in, const Sources& sources, float* out, std::int64_t n) noexcept {
  for (std::int64_t c = 0; c < n; ++c) out[c] = 0.0f;
  std::array<int, Shape::kMaxRank> digit{};
  do {
    Index index{};
    float weight = 1.0f;
    for (std::size_t a = 0; a < static_cast<std::size_t>(sources.rank); ++a) {
      index[a] = sources.axis[a].source[static_cast<std::size_t>(digit[a])];
      weight *= sources.axis[a].weight[static_cast<std::size_t>(digit[a])];
    }
    const auto* from = reinterpret_cast<const float*>(address(in, index));
    for (std::int64_t c = 0; c < n; ++c) out[c] = std::fma(weight, from[c], out[c]);
  } while (sources.next(digit));
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
    Sources sources;
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
