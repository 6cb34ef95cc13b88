// Convolutions and transposed ones of the long tail, casts to bytes and norms by the root of the mean square, against loops over single
// elements: sizes 1 to 10, odd and larger than what is done at once.
#include <algorithm>
#include <cmath>

#include "tests/kernels/plain_values.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;

namespace {

/// One axis of a convolution.
struct ConvAxis {
  std::int64_t in = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t out() const { return (in + before + after - (kernel - 1) * dilation - 1) / stride + 1; }
};

/// What both kinds of convolutions are told: auto_pad, strides, dilations, pads, two that do not matter here, groups.
Lists arguments_of(const ConvAxis& plane, const ConvAxis& row, std::int64_t groups) {
  return {{},      {plane.stride, row.stride}, {plane.dilation, row.dilation}, {plane.before, row.before, plane.after, row.after}, {0}, {0},
          {groups}};
}

/// Each output is the sum that `sum_of` its place makes, and the bias of its channel.
template <class SumOf>
void check_sums(const Values& y, const Values& bias, const ConvAxis& row, std::int64_t groups, const SumOf& sum_of) {
  bool same = true;
  for (std::int64_t i = 0; i < y.shape.element_count(); ++i) {
    const auto at = index_of(y.shape, i);
    same = same && y.at<float>(i) == sum_of(at) + bias.at<float>(at[1]);
  }
  INFO("row of " << row.in << ", kernel " << row.kernel << ", stride " << row.stride << ", groups " << groups);
  CHECK(same);
}

/// A convolution over planes of rows, the chain of each output by itself: taps in their order, channels rising within each.
void check_convolution(const ConvAxis& plane, const ConvAxis& row, std::int64_t groups, std::int64_t depth, std::int64_t per_group) {
  const std::int64_t images = 2, channels = groups * depth, outputs = groups * per_group;
  const Values x = random_values(DType::kF32, Shape{images, channels, plane.in, row.in}, 31);
  const Values w = random_values(DType::kF32, Shape{outputs, depth, plane.kernel, row.kernel}, 32);
  const Values bias = random_values(DType::kF32, Shape{outputs}, 33);
  const Values y = run_plain("Conv", {x, w, bias}, arguments_of(plane, row, groups));
  REQUIRE(y.shape == Shape{images, outputs, plane.out(), row.out()});
  check_sums(y, bias, row, groups, [&](const std::vector<std::int64_t>& at) {
    float sum = 0.0f;
    for (std::int64_t ky = 0; ky < plane.kernel; ++ky)
      for (std::int64_t kx = 0; kx < row.kernel; ++kx) {
        const std::int64_t iy = at[2] * plane.stride + ky * plane.dilation - plane.before;
        const std::int64_t ix = at[3] * row.stride + kx * row.dilation - row.before;
        if (iy < 0 || iy >= plane.in || ix < 0 || ix >= row.in) continue;
        for (std::int64_t c = 0; c < depth; ++c)
          sum = std::fma(x.at<float>(((at[0] * channels + at[1] / per_group * depth + c) * plane.in + iy) * row.in + ix),
                         w.at<float>(((at[1] * depth + c) * plane.kernel + ky) * row.kernel + kx), sum);
      }
    return sum;
  });
}

}  // namespace

TEST_CASE("convolutions with weights of the run time: rows of every length, strides, dilations, padding, groups") {
  for (const std::int64_t size : kSizes)
    for (const std::int64_t stride : {1, 2, 3}) {
      check_convolution({5, 3, 2, 1, 1, 1}, {size, 3, stride, 1, 1, 1}, 1, 3, 5);
      check_convolution({4, 2, 1, 2, 2, 0}, {size, 1, stride, 1, 0, 0}, 3, 1, 1);
      check_convolution({2, 1}, {size + 4, 3, stride, 2, 3, 0}, 2, 2, 9);
    }
  check_convolution({9, 9, 1, 1, 4, 4}, {80, 9, 1, 1, 4, 4}, 1, 1, 2);  // more taps than go into one call
  check_convolution({3, 3}, {2100, 2, 1030, 1, 0, 0}, 1, 2, 3);         // strides and paddings that are no lines
  check_convolution({3, 3}, {3, 2, 1, 1, 5000, 1}, 1, 2, 3);
}

namespace {

/// A transposed convolution over planes of rows, the chain of each output by itself.
void check_transposed(const ConvAxis& plane, const ConvAxis& row, std::int64_t groups, std::int64_t depth, std::int64_t per_group) {
  const std::int64_t channels = groups * depth, outputs = groups * per_group;
  const Values x = random_values(DType::kF32, Shape{2, channels, plane.in, row.in}, 41);
  const Values w = random_values(DType::kF32, Shape{channels, per_group, plane.kernel, row.kernel}, 42);
  const Values bias = random_values(DType::kF32, Shape{outputs}, 43);
  Lists arguments = arguments_of(plane, row, groups);
  arguments.resize(9);
  const Values y = run_plain("ConvTranspose", {x, w, bias}, arguments);
  REQUIRE(y.shape[1] == outputs);
  check_sums(y, bias, row, groups, [&](const std::vector<std::int64_t>& at) {
    float sum = 0.0f;
    for (std::int64_t ky = 0; ky < plane.kernel; ++ky)
      for (std::int64_t kx = 0; kx < row.kernel; ++kx) {
        const std::int64_t py = at[2] + plane.before - ky * plane.dilation, px = at[3] + row.before - kx * row.dilation;
        if (py < 0 || px < 0 || py % plane.stride != 0 || px % row.stride != 0) continue;
        const std::int64_t iy = py / plane.stride, ix = px / row.stride, group = at[1] / per_group;
        if (iy >= plane.in || ix >= row.in) continue;
        for (std::int64_t c = group * depth; c < (group + 1) * depth; ++c)
          sum = std::fma(x.at<float>(((at[0] * channels + c) * plane.in + iy) * row.in + ix),
                         w.at<float>(((c * per_group + at[1] % per_group) * plane.kernel + ky) * row.kernel + kx), sum);
      }
    return sum;
  });
}

}  // namespace

TEST_CASE("transposed convolutions with weights of the run time, by lines of one phase") {
  for (const std::int64_t size : kSizes)
    for (const std::int64_t stride : {1, 2, 3}) {
      check_transposed({3, 3, 2, 1, 1, 1}, {size, 3, stride, 1, 1, 0}, 1, 3, 9);
      check_transposed({2, 2, 1, 2, 0, 0}, {size, 2, stride, 2, 0, 0}, 3, 1, 1);
      check_transposed({2, 1}, {size, 5, stride, 3, 2, 1}, 2, 2, 2);
    }
  check_transposed({1, 9, 1, 1, 4, 4}, {70, 9, 1, 1, 4, 4}, 1, 1, 2);  // more taps than go into one call
  check_transposed({2, 2, 2}, {300, 4, 2, 1, 1, 1}, 1, 2, 3);          // longer than what lies on the stack
  check_transposed({2, 1}, {3, 2, 1, 5000, 0, 0}, 1, 2, 3);            // reaches that are no lines
}

TEST_CASE("convolutions whose last axis has one tap are of longer lines") {
  for (const std::int64_t size : kSizes) {
    check_convolution({6, 3, 1, 2, 3, 1}, {size, 1, 1, 1, 0, 0}, 2, 2, 3);
    check_convolution({6, 3, 2, 1, 1, 1}, {size, 1, 1, 1, 0, 0}, 1, 2, 3);
    check_convolution({6, 1, 1, 1, 0, 0}, {size, 1, 1, 1, 0, 0}, 1, 3, 2);
  }
}

TEST_CASE("reals are cut to bytes") {
  for (const std::int64_t size : kSizes)
    for (const DType to : {DType::kU8, DType::kI8}) {
      Values x = random_values(DType::kF32, Shape{size}, 51, true);
      for (std::int64_t i = 0; i < size; i += 3) {
        const float far = i % 2 == 0 ? 300.7f : -300.7f;
        std::memcpy(x.bytes.data() + i * 4, &far, sizeof far);
      }
      const Values y = run_plain("Cast", {x}, {{static_cast<std::int64_t>(to == DType::kU8 ? 2 : 3)}});
      REQUIRE(y.dtype == to);
      const float least = to == DType::kU8 ? 0.0f : -128.0f, most = to == DType::kU8 ? 255.0f : 127.0f;
      for (std::int64_t i = 0; i < size; ++i) {
        const float value = x.at<float>(i), cut = value != value ? 0.0f : std::trunc(std::min(std::max(value, least), most));
        CHECK(static_cast<float>(to == DType::kU8 ? y.at<std::uint8_t>(i) : y.at<std::int8_t>(i)) == cut);
      }
    }
}

TEST_CASE("rows divided by the root of their mean square") {
  for (const std::int64_t size : kSizes) {
    const Values x = random_values(DType::kF32, Shape{3, 2, size}, 61), scale = random_values(DType::kF32, Shape{size}, 62);
    const Values y = run_plain("RMSNormalization", {x, scale}, {{-1}, {bits(1e-5)}, {1}});
    for (std::int64_t row = 0; row < 6; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < size; ++i) squares += std::pow(static_cast<double>(x.at<float>(row * size + i)), 2);
      const double factor = 1 / std::sqrt(squares / static_cast<double>(size) + 1e-5);
      for (std::int64_t i = 0; i < size; ++i)
        CHECK(std::fabs(y.at<float>(row * size + i) - static_cast<float>(x.at<float>(row * size + i) * factor) * scale.at<float>(i)) <
              1e-5f);
    }
  }
}
