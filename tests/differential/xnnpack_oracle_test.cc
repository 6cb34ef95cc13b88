// Our kernels against XNNPACK: a second implementation that shares no code and no author with the reference. Built where XNNPACK is found.
// It sums in another order, so results agree within n * epsilon of the largest, for sums of n products.
#include <xnnpack.h>

#include <functional>

#include "differential/kernel_harness.h"
#include "sluice/kernels/registry.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The operator that `make` creates, set up by `set_up` with padded copies of input and output, run on one thread.
std::vector<float> oracle(const Problem& p, const std::function<xnn_status(xnn_operator_t*)>& make,
                          const std::function<xnn_status(xnn_operator_t, const float*, float*)>& set_up) {
  REQUIRE(xnn_initialize(nullptr) == xnn_status_success);
  xnn_operator_t op = nullptr;
  REQUIRE(make(&op) == xnn_status_success);
  const AlignedBuffer in(p.inputs[0].size()), out(p.output().bytes().count());
  std::memcpy(in.data(), p.inputs[0].data(), in.size());
  REQUIRE(set_up(op, reinterpret_cast<const float*>(in.data()), reinterpret_cast<float*>(out.data())) == xnn_status_success);
  REQUIRE(xnn_run_operator(op, nullptr) == xnn_status_success);
  xnn_delete_operator(op);
  return values_of<float>(std::vector<std::byte>(out.data(), out.data() + out.size()));
}

/// The preferred kernel agrees with `want`; `terms` is the length of the longest sum.
void check_agrees(const Problem& p, const std::vector<float>& want, std::int64_t terms) {
  const std::vector<float> got = values_of<float>(run(p, *kernels_for(p.graph, p.node()).front()));
  REQUIRE(got.size() == want.size());
  float norm = 0.0f, worst = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    norm = std::max(norm, std::fabs(want[i]));
    const float difference = std::fabs(got[i] - want[i]);
    worst = difference <= worst ? worst : difference;
  }
  CHECK(worst <= static_cast<float>(terms + 4) * std::numeric_limits<float>::epsilon() * norm);
}

/// Our [outputs][depth][taps] as [outputs][taps][depth].
std::vector<float> taps_outside(const std::vector<float>& weights, std::size_t taps, std::size_t depth) {
  std::vector<float> moved(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    moved[i / (taps * depth) * taps * depth + i % taps * depth + i / taps % depth] = weights[i];
  return moved;
}

std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

model::Window window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return with_output({.in_h = in,
                      .in_w = in + 1,
                      .kernel_h = kernel,
                      .kernel_w = kernel,
                      .stride_h = stride,
                      .stride_w = stride,
                      .pad_top = pad,
                      .pad_left = pad,
                      .pad_bottom = pad,
                      .pad_right = pad});
}

void check_convolution(const model::ConvAttributes& a) {
  const Problem p = conv_problem(a, 2);
  const model::Window& w = a.window;
  const std::int64_t depth = a.in_channels / a.groups;
  const std::vector<float> weights = taps_outside(p.unpacked, size(w.taps()), size(depth));
  const auto want = oracle(
      p,
      [&](xnn_operator_t* op) {
        return xnn_create_convolution2d_nhwc_f32(u32(w.pad_top), u32(w.pad_right), u32(w.pad_bottom), u32(w.pad_left), u32(w.kernel_h),
                                                 u32(w.kernel_w), u32(w.stride_h), u32(w.stride_w), 1, 1, u32(a.groups), size(depth),
                                                 size(a.out_channels / a.groups), size(a.in_channels), size(a.out_channels), weights.data(),
                                                 nullptr, -kInfinity, kInfinity, 0, op);
      },
      [&](xnn_operator_t op, const float* in, float* out) {
        return xnn_setup_convolution2d_nhwc_f32(op, 2, size(w.in_h), size(w.in_w), in, out, nullptr);
      });
  check_agrees(p, want, w.taps() * depth);
}

}  // namespace

TEST_CASE("convolutions agree with XNNPACK") {
  check_convolution({window(9, 3, 1, 1), 1, 20, 40});
  check_convolution({window(11, 7, 2, 3), 1, 3, 33});
  check_convolution({window(8, 1, 1, 0), 1, 50, 18});
  check_convolution({window(9, 3, 2, 1), 24, 24, 24});
  check_convolution({window(7, 3, 1, 1), 2, 10, 36});
}

TEST_CASE("dense layers agree with XNNPACK") {
  const Problem p = dense_problem(Shape{7, 100}, 50);
  const auto want = oracle(
      p,
      [&](xnn_operator_t* op) {
        return xnn_create_fully_connected_nc_f32(100, 50, 100, 50, p.unpacked.data(), nullptr, -kInfinity, kInfinity, 0, op);
      },
      [&](xnn_operator_t op, const float* in, float* out) { return xnn_setup_fully_connected_nc_f32(op, 7, in, out, nullptr); });
  check_agrees(p, want, 100);
}

TEST_CASE("pools agree with XNNPACK") {
  const model::Window w = window(10, 3, 2, 1);
  const Shape in{1, 10, 11, 19}, out{1, w.out_h, w.out_w, 19};
  const Problem greatest = plain_problem(OpKind::kPool, model::PoolAttributes{model::PoolKind::kMax, w}, {in}, out);
  check_agrees(greatest,
               oracle(
                   greatest,
                   [](xnn_operator_t* op) {
                     return xnn_create_max_pooling2d_nhwc_f32(1, 1, 1, 1, 3, 3, 2, 2, 1, 1, 19, 19, 19, -kInfinity, kInfinity, 0, op);
                   },
                   [](xnn_operator_t op, const float* from, float* to) {
                     return xnn_setup_max_pooling2d_nhwc_f32(op, 1, 10, 11, from, to, nullptr);
                   }),
               0);
  const Problem mean = plain_problem(OpKind::kPool, model::PoolAttributes{model::PoolKind::kAverage, w}, {in}, out);
  check_agrees(mean,
               oracle(
                   mean,
                   [](xnn_operator_t* op) {
                     return xnn_create_average_pooling2d_nhwc_f32(1, 1, 1, 1, 3, 3, 2, 2, 19, 19, 19, -kInfinity, kInfinity, 0, op);
                   },
                   [](xnn_operator_t op, const float* from, float* to) {
                     return xnn_setup_average_pooling2d_nhwc_f32(op, 1, 10, 11, from, to, nullptr);
                   }),
               9);
}

TEST_CASE("linear resizes agree with XNNPACK") {
  for (bool corners : {false, true}) {
    const model::ResizeAttributes a{.mode = model::ResizeMode::kLinear,
                                    .coordinates = corners ? model::ResizeCoordinates::kAlignCorners : model::ResizeCoordinates::kHalfPixel,
                                    .scale = {1, 2, 3, 1}};
    const Problem p = plain_problem(OpKind::kResize, a, {Shape{1, 5, 6, 21}}, Shape{1, 10, 18, 21});
    const auto want = oracle(
        p, [&](xnn_operator_t* op) { return xnn_create_resize_bilinear2d_nhwc_f32(21, 21, 21, corners ? XNN_FLAG_ALIGN_CORNERS : 0, op); },
        [](xnn_operator_t op, const float* in, float* out) {
          return xnn_setup_resize_bilinear2d_nhwc_f32(op, 1, 5, 6, 10, 18, in, out, nullptr);
        });
    check_agrees(p, want, 16);  // coordinates are rounded too
  }
}

TEST_CASE("sigmoid and softmax agree with XNNPACK") {
  const Shape shape{9, 37};
  const Problem sigmoid = plain_problem(OpKind::kUnary, {}, {shape}, shape, {model::Function::kSigmoid});
  check_agrees(sigmoid,
               oracle(
                   sigmoid, [](xnn_operator_t* op) { return xnn_create_sigmoid_nc_f32(37, 37, 37, 0, op); },
                   [](xnn_operator_t op, const float* in, float* out) { return xnn_setup_sigmoid_nc_f32(op, 9, in, out, nullptr); }),
               1);
  const Problem softmax = plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {shape}, shape);
  check_agrees(softmax,
               oracle(
                   softmax, [](xnn_operator_t* op) { return xnn_create_softmax_nc_f32(37, 37, 37, 0, op); },
                   [](xnn_operator_t op, const float* in, float* out) { return xnn_setup_softmax_nc_f32(op, 9, in, out, nullptr); }),
               37);
}
