// The reference against the definitions of the operators: numbers worked out by hand or by another formula.
#include "sluice/kernels/reference.h"

#include "differential/kernel_harness.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::OpKind;
using Values = std::vector<float>;

namespace {

/// The output for these inputs.
Values compute(Problem p, const std::vector<Values>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) p.inputs[i] = bytes_of(inputs[i]);
  return values_of<float>(run_reference(p));
}

Values compute(OpKind op, const model::Attributes& attributes, const std::vector<Shape>& shapes, const Shape& out,
               const std::vector<Values>& inputs, const model::Activation& activation = {}) {
  return compute(plain_problem(op, attributes, shapes, out, activation), inputs);
}

Values rising(std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

void check_near(const Values& got, const Values& want, double tolerance = 1e-5) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Approx(want[i]).margin(tolerance));
  }
}

/// Visits each (image, output y, x, channel n, input y, x, channel, tap) whose product belongs to a convolution's output.
template <class Body>
void each_product(const model::ConvAttributes& a, std::int64_t images, bool transposed, const Body& body) {
  const model::Window& w = a.window;
  const std::int64_t depth = a.in_channels / a.groups, per_group = a.out_channels / a.groups;
  // A transposed convolution is the convolution from its output to its input, read backwards.
  const std::int64_t from_h = transposed ? w.in_h : w.out_h, from_w = transposed ? w.in_w : w.out_w;
  const std::int64_t to_h = transposed ? w.out_h : w.in_h, to_w = transposed ? w.out_w : w.in_w;
  for (std::int64_t b = 0; b < images; ++b)
    for (std::int64_t y = 0; y < from_h; ++y)
      for (std::int64_t x = 0; x < from_w; ++x)
        for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
          const std::int64_t ty = y * w.stride_h - w.pad_top + tap / w.kernel_w * w.dilation_h;
          const std::int64_t tx = x * w.stride_w - w.pad_left + tap % w.kernel_w * w.dilation_w;
          if (ty < 0 || ty >= to_h || tx < 0 || tx >= to_w) continue;
          const std::int64_t here = (b * from_h + y) * from_w + x, there = (b * to_h + ty) * to_w + tx;
          for (std::int64_t n = 0; n < a.out_channels; ++n)
            for (std::int64_t k = 0; k < depth; ++k) {
              const std::int64_t out_pixel = transposed ? there : here, in_pixel = transposed ? here : there;
              body(out_pixel * a.out_channels + n, in_pixel * a.in_channels + n / per_group * depth + k, (n * depth + k) * w.taps() + tap);
            }
        }
}

void check_convolution(const model::ConvAttributes& a, std::int64_t images, OpKind op) {
  const Problem p = conv_problem(a, images, {}, op);
  const Values in = values_of<float>(p.inputs[0]), got = values_of<float>(run_reference(p));
  std::vector<double> want(got.size());
  each_product(a, images, op == OpKind::kConvTranspose, [&](std::int64_t o, std::int64_t i, std::int64_t w) {
    want[static_cast<std::size_t>(o)] += static_cast<double>(in[static_cast<std::size_t>(i)]) * p.unpacked[static_cast<std::size_t>(w)];
  });
  check_near(got, Values(want.begin(), want.end()));
}

}  // namespace

TEST_CASE("convolution is the sum of its products") {
  const model::Window window{.in_h = 6,
                             .in_w = 5,
                             .kernel_h = 3,
                             .kernel_w = 2,
                             .stride_h = 2,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 2,
                             .pad_top = 1,
                             .pad_left = 0,
                             .pad_bottom = 0,
                             .pad_right = 2};
  for (OpKind op : {OpKind::kConv, OpKind::kConvTranspose}) {
    const model::Window w = op == OpKind::kConv ? with_output(window) : with_transposed_output(window);
    check_convolution({w, 1, 3, 17}, 2, op);
    check_convolution({w, 2, 4, 36}, 1, op);
    check_convolution({w, 3, 6, 9}, 1, op);
    check_convolution({w, 18, 18, 18}, 1, op);
    model::Window large = window;
    large.in_h = large.in_w = 12;
    const model::Window l = op == OpKind::kConv ? with_output(large) : with_transposed_output(large);
    check_convolution({l, 1, 40, 3}, 1, op);  // a transposed one sums by taps
  }
}

TEST_CASE("bias, residual and activation follow in this order") {
  const model::Epilogue epilogue{.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu}};
  const Problem with = dense_problem(Shape{4, 9}, 18, epilogue), without = dense_problem(Shape{4, 9}, 18);
  const Values sums = values_of<float>(run_reference(without)), bias = values_of<float>(with.weights[1]);
  const Values residual = values_of<float>(with.inputs[1]), got = values_of<float>(run_reference(with));
  REQUIRE(with.unpacked == without.unpacked);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == std::max(0.0f, sums[i] + bias[i % 18] + residual[i]));
}

TEST_CASE("dense is the product with the weights") {
  const Problem p = dense_problem(Shape{2, 3}, 2);
  const Values in = values_of<float>(p.inputs[0]), got = values_of<float>(run_reference(p));
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t n = 0; n < 2; ++n) {
      double sum = 0.0;
      for (std::size_t k = 0; k < 3; ++k) sum += static_cast<double>(in[row * 3 + k]) * p.unpacked[n * 3 + k];
      CHECK(got[row * 2 + n] == Approx(sum));
    }
}

TEST_CASE("pools fold their windows") {
  const model::Window w{.in_h = 3,
                        .in_w = 3,
                        .out_h = 2,
                        .out_w = 2,
                        .kernel_h = 2,
                        .kernel_w = 2,
                        .stride_h = 2,
                        .stride_w = 2,
                        .pad_top = 1,
                        .pad_left = 1,
                        .pad_bottom = 0,
                        .pad_right = 0};
  const auto pool = [&](model::PoolKind kind, bool include_pad) {
    return compute(OpKind::kPool, model::PoolAttributes{kind, w, include_pad}, {Shape{1, 3, 3, 1}}, Shape{1, 2, 2, 1}, {rising(9)});
  };
  CHECK(pool(model::PoolKind::kMax, false) == Values{0, 2, 6, 8});
  CHECK(pool(model::PoolKind::kAverage, false) == Values{0, 1.5f, 4.5f, 6});
  CHECK(pool(model::PoolKind::kAverage, true) == Values{0, 0.75f, 2.25f, 6});
}

TEST_CASE("binary functions broadcast as numpy does") {
  const auto sub = model::BinaryAttributes{model::BinaryFunction::kSub};
  CHECK(compute(OpKind::kBinary, sub, {Shape{2, 1}, Shape{3}}, Shape{2, 3}, {{10, 20}, {1, 2, 3}}) == Values{9, 8, 7, 19, 18, 17});
  const auto prelu = model::BinaryAttributes{model::BinaryFunction::kPrelu};
  CHECK(compute(OpKind::kBinary, prelu, {Shape{4}, Shape{1}}, Shape{4}, {{-2, 3, -4, 0}, {0.5f}}) == Values{-1, 3, -2, 0});
  const auto power = model::BinaryAttributes{model::BinaryFunction::kPow};
  CHECK(compute(OpKind::kBinary, power, {Shape{2}, Shape{}}, Shape{2}, {{3, -2}, {2}}) == Values{9, 4});
}

TEST_CASE("integers wrap and never trap") {
  Problem p =
      plain_problem(OpKind::kBinary, model::BinaryAttributes{model::BinaryFunction::kDiv}, {Shape{4}, Shape{4}}, Shape{4}, {}, DType::kI64);
  using Limits = std::numeric_limits<std::int64_t>;
  p.inputs[0] = bytes_of(std::vector<std::int64_t>{7, 7, Limits::min(), -9});
  p.inputs[1] = bytes_of(std::vector<std::int64_t>{2, 0, -1, 2});
  CHECK(values_of<std::int64_t>(run_reference(p)) == std::vector<std::int64_t>{3, 0, Limits::min(), -4});
}

TEST_CASE("affine, softmax and lrn") {
  Problem p = plain_problem(OpKind::kAffine, {}, {Shape{2, 2}}, Shape{2, 2});
  std::mt19937 random(1);
  add_plain_weight(p, 2, random);
  add_plain_weight(p, 2, random);
  p.weights = {bytes_of(Values{2, 3}), bytes_of(Values{10, 20})};
  for (auto& bytes : p.weights) bytes.resize(64);
  CHECK(compute(p, {{1, 2, 3, 4}}) == Values{12, 26, 16, 32});

  check_near(compute(OpKind::kSoftmax, model::SoftmaxAttributes{}, {Shape{1, 3}}, Shape{1, 3}, {{1000, 1001, 1002}}),
             {0.09003057f, 0.24472847f, 0.66524096f});
  check_near(compute(OpKind::kSoftmax, model::SoftmaxAttributes{true}, {Shape{1, 3}}, Shape{1, 3}, {{0, 1, 2}}),
             {-2.407606f, -1.407606f, -0.407606f});
  // bias 1, alpha / size = 1, beta 1: x / (1 + sum of squares of the neighbours)
  check_near(compute(OpKind::kLrn, model::LrnAttributes{3, 3.0f, 1.0f, 1.0f}, {Shape{1, 3}}, Shape{1, 3}, {{1, 2, 3}}),
             {1.0f / 6, 2.0f / 15, 3.0f / 14});
}

TEST_CASE("movements") {
  CHECK(compute(OpKind::kConcat, model::AxisAttributes{0}, {Shape{1, 2}, Shape{2, 2}}, Shape{3, 2}, {{1, 2}, {3, 4, 5, 6}}) ==
        Values{1, 2, 3, 4, 5, 6});
  CHECK(compute(OpKind::kConcat, model::AxisAttributes{1}, {Shape{2, 1}, Shape{2, 2}}, Shape{2, 3}, {{1, 2}, {3, 4, 5, 6}}) ==
        Values{1, 3, 4, 2, 5, 6});
  CHECK(compute(OpKind::kSlice, model::SliceAttributes{{1, 2}, {1, -2}}, {Shape{2, 3}}, Shape{1, 2}, {rising(6)}) == Values{5, 3});
  CHECK(compute(OpKind::kTranspose, model::TransposeAttributes{{2, 0, 1}}, {Shape{1, 2, 3}}, Shape{3, 1, 2}, {rising(6)}) ==
        Values{0, 3, 1, 4, 2, 5});
  CHECK(compute(OpKind::kReshape, {}, {Shape{2, 3}}, Shape{3, 2}, {rising(6)}) == rising(6));
  const auto pad = [](model::PadMode mode, std::int64_t before, std::int64_t after, std::int64_t size) {
    return compute(OpKind::kPad, model::PadAttributes{mode, 9, {before}, {after}}, {Shape{3}}, Shape{size}, {{1, 2, 3}});
  };
  CHECK(pad(model::PadMode::kConstant, 1, 2, 6) == Values{9, 1, 2, 3, 9, 9});
  CHECK(pad(model::PadMode::kEdge, 1, 2, 6) == Values{1, 1, 2, 3, 3, 3});
  CHECK(pad(model::PadMode::kReflect, 2, 2, 7) == Values{3, 2, 1, 2, 3, 2, 1});
  CHECK(pad(model::PadMode::kConstant, -1, 1, 3) == Values{2, 3, 9});
}

TEST_CASE("resize follows every coordinate rule") {
  const auto resize = [](const model::ResizeAttributes& a, const Values& in, std::int64_t out) {
    return compute(OpKind::kResize, a, {Shape{static_cast<std::int64_t>(in.size())}}, Shape{out}, {in});
  };
  using model::ResizeCoordinates;
  using model::ResizeMode;
  model::ResizeAttributes a{
      .mode = ResizeMode::kNearest, .coordinates = ResizeCoordinates::kAsymmetric, .rounding = model::ResizeRounding::kFloor, .scale = {2}};
  CHECK(resize(a, {1, 2}, 4) == Values{1, 1, 2, 2});
  a.coordinates = ResizeCoordinates::kHalfPixel;
  a.rounding = model::ResizeRounding::kRoundPreferFloor;
  CHECK(resize(a, {1, 2}, 4) == Values{1, 1, 2, 2});
  a.mode = ResizeMode::kLinear;
  check_near(resize(a, {1, 2}, 4), {1, 1.25f, 1.75f, 2});
  a.coordinates = ResizeCoordinates::kAlignCorners;
  check_near(resize(a, {1, 2}, 4), {1, 1 + 1 / 3.0f, 1 + 2 / 3.0f, 2});
  a.coordinates = ResizeCoordinates::kAsymmetric;
  check_near(resize(a, {1, 2}, 4), {1, 1.5f, 2, 2});
  a.mode = ResizeMode::kCubic;
  // Half way between samples Keys weighs them (-3, 19, 19, -3) / 32.
  a.cubic_a = -0.75f;
  check_near(resize(a, {1, 2, 3, 4}, 8), {1, 1.40625f, 2, 2.5f, 3, 3.59375f, 4, 4.09375f});
  // A scale of 7/3 is rounded; whole coordinates must stay whole.
  model::ResizeAttributes third{.mode = ResizeMode::kNearest,
                                .coordinates = ResizeCoordinates::kAsymmetric,
                                .rounding = model::ResizeRounding::kFloor,
                                .scale = {14.0f / 6}};
  CHECK(resize(third, rising(6), 14)[7] == 3.0f);
}

TEST_CASE("product of two activations, batches broadcast") {
  const Values got = compute(OpKind::kMatMul, {}, {Shape{2, 1, 2}, Shape{2, 3}}, Shape{2, 1, 3}, {{1, 2, 3, 4}, rising(6)});
  CHECK(got == Values{6, 9, 12, 12, 19, 26});
}
