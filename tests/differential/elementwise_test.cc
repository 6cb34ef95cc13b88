// The elementwise kernels against the reference: the same bits for every shape, cut, pitch, ring and thread count.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "differential/kernel_harness.h"
#include "sluice/kernels/registry.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::test;
using model::Activation;
using model::BinaryFunction;
using model::Function;
using model::OpKind;

namespace {

constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129};

void check_kernel(const Problem& p, KernelId id) {
  const KernelDescriptor& kernel = *find_kernel(id);
  const std::vector<std::byte> want = run_reference(p);
  const std::uint32_t in_place = kernel.in_place_inputs(p.graph, p.node());
  for (Cut cut : usual_cuts()) {
    if (!kernel.slices_rows) cut.rows = 0;
    check_bits(p, kernel, cut, want);
    for (int input = 0; input < static_cast<int>(p.inputs.size()); ++input) {
      cut.in_place = input;
      if ((in_place >> input & 1u) != 0) check_bits(p, kernel, cut, want);
    }
  }
}

Problem pool_problem(model::PoolAttributes a, std::int64_t images, std::int64_t channels, const Activation& f = {}) {
  const model::Window& w = a.window;
  return plain_problem(OpKind::kPool, a, {Shape{images, w.in_h, w.in_w, channels}}, Shape{images, w.out_h, w.out_w, channels}, f);
}

model::Window square(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
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

/// Values of input `input`, one call of `next` each.
template <class Next>
void set_values(Problem& p, std::size_t input, const Next& next) {
  for (std::size_t i = 0; i < p.inputs[input].size(); i += sizeof(float)) {
    const float value = next();
    std::memcpy(p.inputs[input].data() + i, &value, sizeof(value));
  }
}

/// Subnormal, one of 1 / `share` values, or a tiny, a usual or a large number, or 0, of either sign.
float value_of_any_size(std::mt19937& random, unsigned share) {
  const std::uint32_t sign = random() % 2 << 31, mantissa = random() & 0x7fffffu;
  const std::uint32_t least_exponents[] = {1, 55, 70, 87, 107, 124, 147, 185};
  if (random() % share == 0) return std::bit_cast<float>(sign | mantissa >> random() % 23);
  if (random() % 16 == 0) return std::bit_cast<float>(sign);
  const std::uint32_t exponent = random() % 4 == 0 ? least_exponents[random() % 8] : 125 + random() % 4;
  return std::bit_cast<float>(sign | exponent << 23 | mantissa);
}

}  // namespace

TEST_CASE("unary") {
  for (std::int64_t c : kSizes)
    check_kernel(plain_problem(OpKind::kUnary, {}, {Shape{1, 3, 2, c}}, Shape{1, 3, 2, c}, {Function::kSilu}), kernel_id::kUnary);
  for (int f = 0; f < model::kFunctionCount; ++f) {
    const Activation activation{static_cast<Function>(f), -0.3f, 0.6f};
    check_kernel(plain_problem(OpKind::kUnary, {}, {Shape{4, 37}}, Shape{4, 37}, activation), kernel_id::kUnary);
  }
}

TEST_CASE("binary with operands of one shape") {
  for (std::int64_t c : kSizes) {
    const Shape shape{2, 2, 3, c};
    check_kernel(plain_problem(OpKind::kBinary, model::BinaryAttributes{BinaryFunction::kAdd}, {shape, shape}, shape, {Function::kRelu}),
                 kernel_id::kBinary);
  }
  for (BinaryFunction f : {BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul, BinaryFunction::kDiv, BinaryFunction::kPrelu,
                           BinaryFunction::kMax, BinaryFunction::kMin}) {
    const Shape shape{3, 21};
    check_kernel(plain_problem(OpKind::kBinary, model::BinaryAttributes{f}, {shape, shape}, shape), kernel_id::kBinary);
  }
}

TEST_CASE("binary with a broadcast operand") {
  const Shape out{2, 3, 4, 19};
  const Shape operands[] = {Shape{},           Shape{1},           Shape{19},         Shape{1, 1, 19},
                            Shape{1, 1, 1, 1}, Shape{2, 1, 1, 19}, Shape{2, 3, 4, 1}, Shape{1, 3, 4, 1},
                            Shape{1, 3, 1, 1}, Shape{2, 1, 4, 19}, Shape{1, 1, 4, 1}};
  for (const Shape& operand : operands) {
    const model::BinaryAttributes sub{BinaryFunction::kSub};
    check_kernel(plain_problem(OpKind::kBinary, sub, {out, operand}, out), kernel_id::kBinary);
    check_kernel(plain_problem(OpKind::kBinary, sub, {operand, out}, out), kernel_id::kBinary);
  }
  const model::BinaryAttributes mul{BinaryFunction::kMul};
  check_kernel(plain_problem(OpKind::kBinary, mul, {Shape{2, 3, 5, 1}, Shape{1, 1, 1, 7}}, Shape{2, 3, 5, 7}), kernel_id::kBinary);
  check_kernel(plain_problem(OpKind::kBinary, mul, {Shape{2, 3, 5, 1}, Shape{1}}, Shape{2, 3, 5, 1}), kernel_id::kBinary);
  check_kernel(plain_problem(OpKind::kBinary, mul, {Shape{2, 3, 5, 1}, Shape{2, 3, 5, 1}}, Shape{2, 3, 5, 1}), kernel_id::kBinary);
  check_kernel(plain_problem(OpKind::kBinary, mul, {Shape{4, 1, 6}, Shape{3, 1}}, Shape{4, 3, 6}), kernel_id::kBinary);
  check_kernel(plain_problem(OpKind::kBinary, mul, {Shape{2, 2, 3, 2, 9}, Shape{3, 1, 9}}, Shape{2, 2, 3, 2, 9}), kernel_id::kBinary);
}

TEST_CASE("binary of pairs and other short lines, of any rank and with gaps") {
  for (std::int64_t c = 1; c <= 18; ++c)
    for (const BinaryFunction f : {BinaryFunction::kSub, BinaryFunction::kMul}) {
      const model::BinaryAttributes attributes{f};
      const Shape five{2, 3, 7, 11, c};
      for (const Shape& operand : {Shape{1, 1, 7, 11, c}, Shape{2, 3, 1, 1, c}, Shape{1, 3, 7, 1, 1}, Shape{7, 11, 1}}) {
        check_kernel(plain_problem(OpKind::kBinary, attributes, {five, operand}, five, {Function::kRelu}), kernel_id::kBinary);
        check_kernel(plain_problem(OpKind::kBinary, attributes, {operand, five}, five), kernel_id::kBinary);
      }
      const Shape map{2, 2, 41, c};
      check_kernel(plain_problem(OpKind::kBinary, attributes, {map, Shape{1, 2, 41, 1}}, map), kernel_id::kBinary);
    }
  // Lines longer than what is gathered at once.
  const Shape pairs{2, 4, 700, 2, 1}, half{1, 1, 700, 2, 1};
  check_kernel(plain_problem(OpKind::kBinary, model::BinaryAttributes{BinaryFunction::kMul}, {pairs, half}, pairs), kernel_id::kBinary);
  for (std::int64_t c : {1, 2, 3, 16, 17})
    check_kernel(plain_problem(OpKind::kUnary, {}, {Shape{3, 700, c}}, Shape{3, 700, c}, {Function::kSigmoid}), kernel_id::kUnary);
}

TEST_CASE("affine") {
  for (std::int64_t c : kSizes) {
    Problem p = plain_problem(OpKind::kAffine, {}, {Shape{1, 3, 2, c}}, Shape{1, 3, 2, c}, {Function::kRelu});
    std::mt19937 random(3);
    add_plain_weight(p, c, random);
    add_plain_weight(p, c, random);
    check_kernel(p, kernel_id::kAffine);
  }
}

TEST_CASE("bounds in which loops keep their results: any numbers, none at all, and the wrong way round") {
  // Sums of values that are no number in two ways (NaN, infinity less infinity) keep the first, and additions may take either first.
  const float kAny[] = {NAN, HUGE_VALF, -HUGE_VALF, 0.0f, -0.0f, 1e-40f, -1e-40f, -0.25f, 0.5f, -2.0f, 3.0f, 6.0f, 7.5f, 3e38f};
  const float kSums[] = {NAN, 0.0f, -0.0f, 1e-40f, -0.25f, 0.5f, -2.0f, 3.0f, -6.0f, 7.5f, 4.0f, -8.0f, 1.0f, 1e4f};
  const Activation kBounds[] = {
      {Function::kRelu}, {Function::kClip, -0.25f, 6.0f}, {Function::kClip, -HUGE_VALF, 0.5f}, {Function::kClip, 2.0f, -2.0f}};
  std::mt19937 random(11);
  const auto check = [&](Problem p, KernelId id, const auto& values) {
    for (std::size_t input = 0; input < p.inputs.size(); ++input)
      if (p.shape(input).element_count() > 1) set_values(p, input, [&] { return values[random() % std::size(values)]; });
    check_kernel(p, id);
  };
  for (const Activation& f : kBounds) {
    for (const BinaryFunction function : {BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul, BinaryFunction::kDiv,
                                          BinaryFunction::kPrelu, BinaryFunction::kMax, BinaryFunction::kMin}) {
      const Shape out{1, 3, 11, 37};
      for (const Shape& operand : {out, Shape{37}, Shape{1}, Shape{1, 3, 11, 1}})
        check(plain_problem(OpKind::kBinary, model::BinaryAttributes{function}, {out, operand}, out, f), kernel_id::kBinary, kAny);
    }
    Problem cubes = plain_problem(OpKind::kBinary, model::BinaryAttributes{BinaryFunction::kPow}, {Shape{700}, Shape{1}}, Shape{700}, f);
    set_values(cubes, 1, [] { return 3.0f; });
    check(cubes, kernel_id::kBinary, kSums);
    for (std::int64_t c : {3, 16, 37, 65}) {
      const Shape map{1, 3, 5, c};
      Problem p = plain_problem(OpKind::kAffine, {}, {map}, map, f);
      std::mt19937 weights(5);
      add_plain_weight(p, c, weights);
      add_plain_weight(p, c, weights);
      check(p, kernel_id::kAffine, kAny);
      for (const model::Window& window : {square(9, 3, 2, 1), square(9, 2, 1, 0), square(9, 5, 1, 2), square(40, 18, 7, 8)}) {
        check(pool_problem({model::PoolKind::kMax, window}, 1, c, f), kernel_id::kPool, kAny);
        check(pool_problem({model::PoolKind::kAverage, window}, 1, c, f), kernel_id::kPool, kSums);
      }
    }
    for (std::int64_t pixels : {7, 64})  // whole rows of one channel
      check(pool_problem({model::PoolKind::kAverage, {.in_h = 3, .in_w = pixels, .out_h = 3, .kernel_w = pixels}}, 4, 1, f),
            kernel_id::kPool, kSums);
  }
}

TEST_CASE("many pixels of few channels are runs") {
  for (std::int64_t c : {1, 2, 3, 5, 64, 65}) {
    const Shape map{2, 11, 40, c}, rows{700, c};
    for (const Shape& shape : {map, rows}) {
      const model::BinaryAttributes sub{BinaryFunction::kSub};
      const Activation relu{Function::kRelu};
      check_kernel(plain_problem(OpKind::kUnary, {}, {shape}, shape, {Function::kSigmoid}), kernel_id::kUnary);
      for (const Shape& operand : {shape, Shape{c}, Shape{1}}) {
        check_kernel(plain_problem(OpKind::kBinary, sub, {shape, operand}, shape, relu), kernel_id::kBinary);
        check_kernel(plain_problem(OpKind::kBinary, sub, {operand, shape}, shape), kernel_id::kBinary);
      }
      Problem p = plain_problem(OpKind::kAffine, {}, {shape}, shape, relu);
      std::mt19937 random(4);
      add_plain_weight(p, c, random);
      add_plain_weight(p, c, random);
      check_kernel(p, kernel_id::kAffine);
    }
  }
}

TEST_CASE("softmax") {
  for (std::int64_t c : kSizes)
    for (bool log : {false, true})
      check_kernel(plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{log}, {Shape{5, c}}, Shape{5, c}), kernel_id::kSoftmax);
  check_kernel(plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {Shape{2, 3, 2, 20}}, Shape{2, 3, 2, 20}), kernel_id::kSoftmax);
  for (std::int64_t c : {18, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80})  // two rows at once, as far as they fit a few vectors
    check_kernel(plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {Shape{3, 37, c}}, Shape{3, 37, c}), kernel_id::kSoftmax);
  for (std::int64_t c = 1; c <= 17; ++c)
    for (bool log : {false, true})
      check_kernel(plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{log}, {Shape{2, 3, 37, c}}, Shape{2, 3, 37, c}),
                   kernel_id::kSoftmax);
}

TEST_CASE("softmax whose values are subnormal") {
  std::mt19937 random(12);
  std::uniform_real_distribution<float> scores(-6.0f, 6.0f), masks(-112.0f, -84.0f);
  for (std::int64_t c : {2, 5, 15, 16, 17, 31, 49, 64, 65, 100})
    for (int round = 0; round < 4; ++round) {
      Problem p = plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {Shape{41, c}}, Shape{41, c});
      set_values(p, 0, [&] { return scores(random) + (random() % 2 == 0 ? 0.0f : round % 2 == 0 ? -100.0f : masks(random)); });
      check_kernel(p, kernel_id::kSoftmax);
    }
}

TEST_CASE("pools") {
  for (std::int64_t c : kSizes) {
    check_kernel(pool_problem({model::PoolKind::kMax, square(6, 3, 2, 1)}, 1, c), kernel_id::kPool);
    check_kernel(pool_problem({model::PoolKind::kAverage, square(6, 3, 2, 1)}, 1, c), kernel_id::kPool);
  }
  for (auto kind : {model::PoolKind::kMax, model::PoolKind::kAverage}) {
    check_kernel(pool_problem({kind, square(7, 7, 1, 0)}, 3, 70), kernel_id::kPool);
    check_kernel(pool_problem({kind, square(5, 2, 2, 0)}, 2, 5, {Function::kRelu}), kernel_id::kPool);
    check_kernel(pool_problem({kind, square(5, 3, 1, 1), true}, 2, 20), kernel_id::kPool);
    for (std::int64_t c : {1, 2, 3, 7, 16, 63, 65}) {  // neighbouring windows of few channels are one run
      check_kernel(pool_problem({kind, square(9, 3, 1, 1), true}, 2, c), kernel_id::kPool);
      check_kernel(pool_problem({kind, square(9, 2, 1, 0)}, 1, c, {Function::kRelu}), kernel_id::kPool);
      check_kernel(pool_problem({kind, square(20, 17, 1, 8)}, 1, c), kernel_id::kPool);
      check_kernel(pool_problem({kind, square(2, 5, 1, 4)}, 1, c), kernel_id::kPool);
    }
    model::Window dilated = square(9, 3, 1, 2);
    dilated.dilation_h = dilated.dilation_w = 2;
    check_kernel(pool_problem({kind, with_output(dilated), true}, 1, 6), kernel_id::kPool);
    model::Window ceiled = square(6, 3, 2, 1);  // ceil_mode: the last window begins inside the padding
    ++ceiled.out_h;
    ++ceiled.out_w;
    check_kernel(pool_problem({kind, ceiled, true}, 2, 17), kernel_id::kPool);
    check_kernel(pool_problem({kind, ceiled, false}, 2, 17), kernel_id::kPool);
  }
}

TEST_CASE("pools of neighbouring pixels: strides, borders, channels") {
  for (auto kind : {model::PoolKind::kMax, model::PoolKind::kAverage})
    for (std::int64_t c : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 33, 64, 65, 100})
      for (bool padding : {false, true}) {
        check_kernel(pool_problem({kind, square(7, 2, 2, 0), padding}, 2, c, {Function::kRelu}), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(9, 3, 2, 1), padding}, 1, c), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(8, 3, 3, 1), padding}, 1, c), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(11, 5, 2, 2), padding}, 1, c), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(3, 5, 2, 2), padding}, 1, c), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(40, 18, 7, 8), padding}, 1, c), kernel_id::kPool);
        model::Window dilated = square(9, 2, 2, 1);
        dilated.dilation_h = 2;
        dilated.dilation_w = 3;
        check_kernel(pool_problem({kind, with_output(dilated), padding}, 1, c), kernel_id::kPool);
      }
}

TEST_CASE("pools whose windows overlap much") {
  for (auto kind : {model::PoolKind::kMax, model::PoolKind::kAverage})
    for (std::int64_t c : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 33})
      for (bool padding : {false, true}) {
        check_kernel(pool_problem({kind, square(9, 5, 1, 2), padding}, 2, c, {Function::kRelu}), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(12, 7, 1, 0), padding}, 1, c), kernel_id::kPool);
        check_kernel(pool_problem({kind, square(5, 16, 1, 9), padding}, 2, c), kernel_id::kPool);
        model::Window uneven = square(10, 5, 1, 3);  // windows that begin and end in the padding, and taps apart
        uneven.dilation_w = 2;
        uneven.pad_bottom = uneven.pad_right = 4;
        check_kernel(pool_problem({kind, with_output(uneven), padding}, 1, c), kernel_id::kPool);
      }
  for (std::int64_t c : {1, 3, 300, 4097})  // rows in several parts, and too many channels
    check_kernel(pool_problem({model::PoolKind::kAverage, square(c < 10 ? 1500 / c : 6, 5, 1, 2)}, 1, c), kernel_id::kPool);
}

TEST_CASE("means over long rows of one channel") {
  for (std::int64_t pixels : {15, 16, 17, 31, 64, 85, 257})
    for (std::int64_t rows : {1, 3}) {
      const model::Window w{.in_h = rows, .in_w = pixels, .kernel_h = rows, .kernel_w = pixels};
      check_kernel(pool_problem({model::PoolKind::kAverage, w}, 4, 1), kernel_id::kPool);
      check_kernel(pool_problem({model::PoolKind::kAverage, w}, 2, 2), kernel_id::kPool);
    }
  for (std::int64_t pixels : {1, 2, 7, 15, 16, 17, 56})
    for (std::int64_t rows : {1, 3, 37}) {
      const model::Window w{.in_h = rows, .in_w = pixels, .out_h = rows, .kernel_w = pixels};
      for (const Activation& f : {Activation(), Activation{Function::kSigmoid}})
        check_kernel(pool_problem({model::PoolKind::kAverage, w}, 4, 1, f), kernel_id::kPool);
    }
}

TEST_CASE("normalisation by neighbouring channels") {
  for (std::int64_t c : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 33, 96, 257})
    for (std::int64_t size : {1, 2, 3, 4, 5, 9, 40}) {
      const model::LrnAttributes attributes{size, 0.3f, 0.75f, 1.5f};
      check_kernel(plain_problem(OpKind::kLrn, attributes, {Shape{2, 3, 5, c}}, Shape{2, 3, 5, c}), kernel_id::kLrn);
    }
}

TEST_CASE("resize of feature maps") {
  for (auto mode : {model::ResizeMode::kNearest, model::ResizeMode::kLinear, model::ResizeMode::kCubic}) {
    for (auto rule : {model::ResizeCoordinates::kHalfPixel, model::ResizeCoordinates::kAsymmetric, model::ResizeCoordinates::kAlignCorners,
                      model::ResizeCoordinates::kPytorchHalfPixel}) {
      for (std::int64_t c : {1, 7, 21, 64}) {
        model::ResizeAttributes a{.mode = mode, .coordinates = rule, .scale = {1, 2.0f, 0.6f, 1}};
        check_kernel(plain_problem(OpKind::kResize, a, {Shape{2, 4, 5, c}}, Shape{2, 8, 3, c}), kernel_id::kResize);
      }
      for (std::int64_t c : {1, 2, 3, 5, 8, 9}) {
        const model::ResizeAttributes a{.mode = mode, .coordinates = rule, .scale = {1, 1.5f, 2.0f, 1}};
        check_kernel(plain_problem(OpKind::kResize, a, {Shape{1, 4, 23, c}}, Shape{1, 6, 46, c}), kernel_id::kResize);
      }
      for (std::int64_t c : {1, 4, 8, 17}) {
        const model::ResizeAttributes line{.mode = mode, .coordinates = rule, .scale = {1, 1.5f, 1}};
        check_kernel(plain_problem(OpKind::kResize, line, {Shape{2, 9, c}}, Shape{2, 13, c}), kernel_id::kResize);
        const model::ResizeAttributes cube{.mode = mode, .coordinates = rule, .scale = {1, 1.5f, 2.0f, 0.75f, 1}};
        check_kernel(plain_problem(OpKind::kResize, cube, {Shape{2, 3, 2, 5, c}}, Shape{2, 4, 4, 3, c}), kernel_id::kResize);
      }
    }
  }
}

TEST_CASE("products of activations") {
  for (std::int64_t n : kSizes) {
    check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{7, 5}, Shape{5, n}}, Shape{7, n}), kernel_id::kMatMul);
    check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{2, 3, 8, n}, Shape{2, 3, n, 4}}, Shape{2, 3, 8, 4}), kernel_id::kMatMul);
  }
  check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{3, 1, 5}, Shape{3, 5, 70}}, Shape{3, 1, 70}), kernel_id::kMatMul);
  for (std::int64_t n = 1; n <= 9; ++n)  // many lines by few columns, of sums of every length
    for (std::int64_t depth : {1, 2, 3, 4, 5, 7, 8, 10, 37}) {
      check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{41, depth}, Shape{depth, n}}, Shape{41, n}), kernel_id::kMatMul);
      check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{2, 1, 33, depth}, Shape{2, 3, depth, n}}, Shape{2, 3, 33, n}),
                   kernel_id::kMatMul);
    }
  check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{4, 5}, Shape{2, 5, 20}}, Shape{2, 4, 20}), kernel_id::kMatMul);
  check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{9, 700}, Shape{700, 150}}, Shape{9, 150}), kernel_id::kMatMul);
  check_kernel(plain_problem(OpKind::kMatMul, {}, {Shape{2, 1, 4, 5}, Shape{3, 5, 20}}, Shape{2, 3, 4, 20}), kernel_id::kMatMul);
}

TEST_CASE("product of two activations with subnormal factors") {
  std::mt19937 random(3);
  for (std::int64_t n : {1, 5, 8, 16, 17, 32, 45, 64, 70})
    for (const std::int64_t depth : {1, 3, 49})
      for (const unsigned share : {1u, 2u, 8u}) {
        Problem p = plain_problem(OpKind::kMatMul, {}, {Shape{23, depth}, Shape{depth, n}}, Shape{23, n});
        set_values(p, 0, [&] { return value_of_any_size(random, share); });
        // Mostly numbers of a usual size, as what a softmax weighs.
        const bool usual = random() % 2 == 0;
        set_values(p, 1, [&] { return usual ? value_of_any_size(random, 1000) : value_of_any_size(random, 10); });
        check_kernel(p, kernel_id::kMatMul);
      }
}

TEST_CASE("product of two activations whose factors are a softmax behind a mask") {
  std::mt19937 random(4);
  std::normal_distribution<float> usual;
  for (std::int64_t n : {4, 16, 32, 40}) {
    Problem p = plain_problem(OpKind::kMatMul, {}, {Shape{3, 49, 49}, Shape{3, 49, n}}, Shape{3, 49, n});
    set_values(p, 0, [&] { return std::exp(usual(random) - (random() % 2 == 0 ? 100.0f : 3.0f)); });
    set_values(p, 1, [&] { return usual(random); });
    check_kernel(p, kernel_id::kMatMul);
  }
}
