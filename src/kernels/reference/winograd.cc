// Convolution in the numeric class `winograd4`: what src/kernels/weighted/winograd_points.h says, one square of 4x4 outputs at a time.
#include <array>
#include <cmath>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/walk.h"
#include "src/kernels/weighted/winograd_points.h"

namespace sluice::kernels::reference {
namespace {

using namespace winograd::points;
using winograd::kInTile;
using winograd::kOutTile;

template <std::size_t n>
using Line = std::array<float, n>;
template <std::size_t n>
using Matrix = std::array<Line<n>, n>;

Line<6> input_points(const Line<6>& x) noexcept {
  const float even_a = std::fma(x[2], -kB2, x[4]), odd_a = std::fma(x[1], -kB2, x[3]);
  const float even_b = std::fma(x[2], -kA2, x[4]), odd_b = std::fma(x[1], -kA2, x[3]);
  return {std::fma(x[0], kProduct, std::fma(x[2], -kSum, x[4])),
          std::fma(odd_a, kA, even_a),
          std::fma(odd_a, -kA, even_a),
          std::fma(odd_b, kB, even_b),
          std::fma(odd_b, -kB, even_b),
          std::fma(x[1], kProduct, std::fma(x[3], -kSum, x[5]))};
}

Line<6> weight_points(const Line<3>& g) noexcept {
  const float even_a = std::fma(g[2], kWeightA2, kWeightA0 * g[0]), even_b = std::fma(g[2], kWeightB2, kWeightB0 * g[0]);
  return {kWeight0 * g[0],
          std::fma(g[1], kWeightA1, even_a),
          std::fma(g[1], -kWeightA1, even_a),
          std::fma(g[1], kWeightB1, even_b),
          std::fma(g[1], -kWeightB1, even_b),
          g[2]};
}

Line<4> outputs(const Line<6>& m) noexcept {
  const float sum_a = m[1] + m[2], difference_a = m[1] - m[2];
  const float sum_b = m[3] + m[4], difference_b = m[3] - m[4];
  return {(m[0] + sum_a) + sum_b, std::fma(difference_b, kB, kA * difference_a), std::fma(sum_b, kB2, kA2 * sum_a),
          std::fma(difference_b, kB3, std::fma(difference_a, kA3, m[5]))};
}

/// Columns first, then rows.
template <std::size_t to, std::size_t from>
Matrix<to> both_axes(const Matrix<from>& x, Line<to> (*transform)(const Line<from>&) noexcept) noexcept {
  std::array<Line<from>, to> columns;
  for (std::size_t j = 0; j < from; ++j) {
    Line<from> column;
    for (std::size_t i = 0; i < from; ++i) column[i] = x[i][j];
    const Line<to> y = transform(column);
    for (std::size_t i = 0; i < to; ++i) columns[i][j] = y[i];
  }
  Matrix<to> result;
  for (std::size_t i = 0; i < to; ++i) result[i] = transform(columns[i]);
  return result;
}

/// The inputs of channel k that the square at (y, x) reads; zeros outside of the image.
Matrix<6> input_square(const RowView& in, const Window& w, std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t k) noexcept {
  Matrix<6> d{};
  for (std::int64_t i = 0; i < kInTile; ++i)
    for (std::int64_t j = 0; j < kInTile; ++j) {
      const std::int64_t iy = y - w.pad_top + i, ix = x - w.pad_left + j;
      const bool inside = iy >= 0 && iy < w.in_h && ix >= 0 && ix < w.in_w;
      if (inside) d[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = in.at<const float>(image * w.in_h + iy, ix)[k];
    }
  return d;
}

/// `taps`: nine weights, `step` apart.
Matrix<3> weight_square(const float* taps, std::int64_t step) noexcept {
  return {Line<3>{taps[0], taps[step], taps[2 * step]},
          {taps[3 * step], taps[4 * step], taps[5 * step]},
          {taps[6 * step], taps[7 * step], taps[8 * step]}};
}

}  // namespace

void conv_winograd(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::ConvolutionParameters>();
  const Window& w = a.window;
  const RowView& out = call.outputs[0].view;
  const std::int64_t depth = a.group_depth(), group_outputs = a.group_outputs();
  const PanelReader weights(call.weights[0], group_outputs, w.taps(), depth);
  const Finish finish(call);

  const auto compute = [&](std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t n) {
    Matrix<6> m{};
    const std::int64_t first = n / group_outputs * depth;
    for (std::int64_t k = 0; k < depth; ++k) {
      const Matrix<6> v = both_axes<6, 6>(input_square(call.inputs[0].view, w, image, y, x, first + k), input_points);
      const Matrix<6> u = both_axes<6, 3>(weight_square(weights.channel(n) + k * kPanelLanes, depth * kPanelLanes), weight_points);
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < 6; ++j) m[i][j] = std::fma(v[i][j], u[i][j], m[i][j]);
    }
    return both_axes<4, 6>(m, outputs);
  };

  for_rows(call, [&](std::int64_t first) {
    const std::int64_t image = first / w.out_h, y = first % w.out_h;
    const std::int64_t top = y - y % kOutTile;
    if (y != top && first != call.rows.begin) return;  // the square's first row in this step does them all
    const std::int64_t end = std::min({call.rows.end, image * w.out_h + top + kOutTile, (image + 1) * w.out_h});
    for (std::int64_t x = 0; x < w.out_w; x += kOutTile)
      for (std::int64_t n = call.channels.begin; n < call.channels.end; ++n) {
        const Matrix<4> square = compute(image, top, x, n);
        for (std::int64_t row = first; row < end; ++row)
          for (std::int64_t pixel = x; pixel < std::min(x + kOutTile, w.out_w); ++pixel) {
            const float sum = square[static_cast<std::size_t>(row % w.out_h - top)][static_cast<std::size_t>(pixel - x)];
            out.at<float>(row, pixel)[n] = finish(sum, row, pixel, n);
          }
      }
  });
}

}  // namespace sluice::kernels::reference
