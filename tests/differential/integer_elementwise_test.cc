// The kernels of the class int8 that work value by value, and pools, bit by bit beside the generic ones.
#include <limits>

#include "sluice/kernels/registry.h"
#include "tests/differential/integer_problems.h"

namespace sluice::kernels::test {
namespace {

void check_all(const Problem& p, const std::vector<Cut>& cuts) {
  const std::vector<std::byte> want = run_reference(p);
  const auto found = kernels_for(p.graph, p.node());
  REQUIRE(found.size() == 2);  // the fast one and the generic one
  for (const Cut& cut : cuts) check_bits(p, *found.front(), cut, want);
}
void check_all(const Problem& p) {
  check_all(p, {{}, {.rows = 2, .pixel_gap = 5, .row_gap = 3}, {.rows = 1, .threads = 2}, {.threads = 2}});
}

Problem border(model::OpKind op, const Shape& shape, const Quantised& q) {
  std::mt19937 random(static_cast<unsigned>(shape.element_count()));
  Problem p = integer_node(op, {});
  if (op == model::OpKind::kQuantize) {
    add_input(p, shape, DType::kF32, random);
    set_output(p, shape, DType::kU8, q);
  } else {
    add_integer_input(p, shape, q, Drawn::kAll, random);
    set_output(p, shape, DType::kF32);
  }
  return p;
}

Problem joined(model::BinaryFunction function, const std::array<Shape, 2>& inputs, const Shape& out, const Quantised& q,
               const model::Activation& activation = {}) {
  std::mt19937 random(static_cast<unsigned>(out.element_count()));
  Problem p = integer_node(model::OpKind::kBinary, model::BinaryAttributes{function});
  add_integer_input(p, inputs[0], {0.021f, 100}, Drawn::kAll, random);
  add_integer_input(p, inputs[1], {0.013f, 7}, Drawn::kAll, random);
  set_output(p, out, DType::kU8, q);
  p.node().epilogue.activation = activation;
  return p;
}

Problem pool(const model::PoolAttributes& a, std::int64_t images, std::int64_t channels, const model::Activation& activation = {}) {
  const model::Window& w = a.window;
  std::mt19937 random(static_cast<unsigned>(channels));
  Problem p = integer_node(model::OpKind::kPool, a);
  add_integer_input(p, Shape{images, w.in_h, w.in_w, channels}, {0.02f, 30}, Drawn::kAll, random);
  set_output(p, Shape{images, w.out_h, w.out_w, channels}, DType::kU8,
             a.kind == model::PoolKind::kMax ? Quantised{0.02f, 30} : Quantised{0.017f, 77});
  p.node().epilogue.activation = activation;
  return p;
}

}  // namespace

TEST_CASE("quantize and dequantize have the bits of the generic kernels") {
  for (model::OpKind op : {model::OpKind::kQuantize, model::OpKind::kDequantize})
    for (const Quantised& q :
         {Quantised{0.0078f, 128}, Quantised{0.1f, 0}, Quantised{3e-3f, 255}, Quantised{1e-30f, 5}, Quantised{1e30f, 9}}) {
      for (std::int64_t extent = 1; extent <= 10; ++extent) check_all(border(op, Shape{2, 3, extent, 2 * extent - 1}, q));
      check_all(border(op, Shape{5, 333}, q));
    }
}

TEST_CASE("quantize rounds halves to the even integer and brings what is no number to the least") {
  Problem p = border(model::OpKind::kQuantize, Shape{1, 100}, {0.25f, 10});
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(100, 0.125f);
  const std::vector<float> first{0.375f, -0.125f, -0.375f, inf, -inf, nan, 1e38f, -1e38f, 1e-40f, 63.0f, -2.625f, -0.0f};
  std::copy(first.begin(), first.end(), values.begin());
  std::copy(first.begin(), first.end(), values.end() - 12);  // in the last vector too
  p.inputs[0] = bytes_of(values);
  const std::vector<std::uint8_t> got = values_of<std::uint8_t>(run_reference(p));
  const std::vector<std::uint8_t> want{12, 10, 8, 255, 0, 0, 255, 0, 10, 255, 0, 10};
  CHECK(std::vector<std::uint8_t>(got.begin(), got.begin() + 12) == want);
  CHECK(got[20] == 10);
  check_all(p);
}

TEST_CASE("division by a scale is exact for every scale") {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const float scale = std::ldexp(1.0f + static_cast<float>(random() % 8388608) * 0x1p-23f, static_cast<int>(random() % 140) - 70);
    Problem p = border(model::OpKind::kQuantize, Shape{1, 640}, {scale, 128});
    // Near halves of steps, where an error of one unit in the last place shows.
    std::vector<float> values(640);
    for (float& value : values) {
      value = (static_cast<float>(random() % 300) - 150.5f) * scale;
      for (unsigned steps = random() % 3; steps > 0; --steps) value = std::nextafter(value, random() % 2 == 0 ? 1e38f : -1e38f);
    }
    p.inputs[0] = bytes_of(values);
    check_all(p, {{}});
  }
}

TEST_CASE("integer binary nodes: functions, ranges, broadcasts") {
  using F = model::BinaryFunction;
  for (F function : {F::kAdd, F::kSub, F::kMul, F::kDiv, F::kMax, F::kMin})
    for (std::int64_t extent : {1, 2, 5, 10, 33}) {
      const Shape whole{2, 3, extent, extent + 3};
      check_all(joined(function, {whole, whole}, whole, {0.03f, 60}));
      check_all(joined(function, {whole, Shape{2, 1, 1, extent + 3}}, whole, {0.03f, 60}, {model::Function::kRelu}));
      check_all(joined(function, {Shape{1, 1, 1, 1}, whole}, whole, {0.03f, 60}, {model::Function::kClip, -0.4f, 2.0f}));
      check_all(joined(function, {whole, Shape{extent + 3}}, whole, {1e-30f, 0}));
    }
  const Shape flat{7, 130};
  check_all(joined(F::kAdd, {flat, flat}, flat, {0.04f, 128}), {{.in_place = 0}, {.rows = 2, .threads = 2, .in_place = 1}});
  Problem of_i8 = joined(F::kAdd, {flat, flat}, flat, {0.04f, 128});
  of_i8.node().epilogue.of_i8 = true;
  check_all(of_i8);
}

TEST_CASE("integer tables") {
  for (std::int64_t extent : {1, 3, 16, 63, 64, 65, 200}) {
    std::mt19937 random(static_cast<unsigned>(extent));
    Problem p = integer_node(model::OpKind::kUnary, {});
    const Shape shape{2, 2, 3, extent};
    add_integer_input(p, shape, {0.02f, 3}, Drawn::kAll, random);
    std::vector<std::uint8_t> table(256);
    for (std::uint8_t& value : table) value = static_cast<std::uint8_t>(random());
    add_plain_values(p, DType::kU8, table);
    set_output(p, shape, DType::kU8, {0.04f, 5});
    check_all(p);
    check_all(p, {{.threads = 2, .in_place = 0}});
  }
}

TEST_CASE("integer pools: kinds, windows, padding, channels") {
  for (model::PoolKind kind : {model::PoolKind::kMax, model::PoolKind::kAverage})
    for (bool with_padding : {false, true})
      for (std::int64_t kernel : {1, 2, 3, 5})
        for (std::int64_t stride : {1, 2})
          for (std::int64_t channels : {1, 16, 70}) {
            const model::Window window{.in_h = 7,
                                       .in_w = 9,
                                       .kernel_h = kernel,
                                       .kernel_w = kernel,
                                       .stride_h = stride,
                                       .stride_w = stride,
                                       .pad_top = kernel / 2,
                                       .pad_left = kernel / 2,
                                       .pad_bottom = kernel / 2,
                                       .pad_right = kernel / 2};
            check_all(pool({kind, with_output(window), with_padding}, 2, channels),
                      {{}, {.rows = 2, .threads = 2, .pixel_gap = 3}, {.rows = 1, .rings = true}});
            if (kind == model::PoolKind::kAverage) check_all(pool({kind, with_output(window), with_padding, true}, 2, channels));
          }
  for (model::PoolKind kind : {model::PoolKind::kMax, model::PoolKind::kAverage}) {
    const model::Window global{.in_h = 13, .in_w = 11, .kernel_h = 13, .kernel_w = 11};
    check_all(pool({kind, with_output(global), false}, 2, 200, {model::Function::kRelu}), {{}, {.threads = 3}});
    const model::Window dilated{.in_h = 9, .in_w = 9, .kernel_h = 2, .kernel_w = 3, .dilation_h = 3, .dilation_w = 2};
    check_all(pool({kind, with_output(dilated), false}, 1, 20, {model::Function::kClip, -0.2f, 1.0f}));
  }
}

TEST_CASE("a mean of a part of the image adds what bytes stand for and rounds with the zero point of its type") {
  // 2x2 windows of rows 2 pixels wide for each of them: {1, 0, 0, 1} has the mean 0.5, and {0, 0, 1, 5} as floats of scale 0.02 1.4999999.
  const auto mean = [](std::vector<std::uint8_t> bytes, std::uint8_t zero, bool of_i8) {
    const auto columns = static_cast<std::int64_t>(bytes.size() / 2);
    const model::Window window{.in_h = 2, .in_w = columns, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    std::mt19937 random(1);
    Problem p = integer_node(model::OpKind::kPool, model::PoolAttributes{model::PoolKind::kAverage, with_output(window), false, of_i8});
    add_integer_input(p, Shape{1, 2, columns, 1}, {0.02f, 0}, Drawn::kAll, random);
    set_output(p, Shape{1, 1, columns / 2, 1}, DType::kU8, Quantised{0.02f, zero});
    p.inputs[0] = bytes_of(bytes);
    check_all(p, {{}});
    return values_of<std::uint8_t>(run_reference(p));
  };
  using Bytes = std::vector<std::uint8_t>;
  CHECK(mean({1, 0, 0, 0, 0, 1, 1, 5}, 131, false) == Bytes{132, 132});  // 131.5, 132.4999999
  CHECK(mean({1, 0, 0, 1}, 131, false) == Bytes{131});                   // all of the image: 0.5 is rounded first
  CHECK(mean({1, 0, 0, 0, 0, 1, 1, 5}, 128, false) == Bytes{128, 130});  // 128.5, 129.5 as a float
  CHECK(mean({1, 0, 0, 0, 0, 1, 1, 5}, 128, true) == Bytes{128, 129});   // 0.5, 1.4999999
}

TEST_CASE("nearest resizing of integers: extents, roundings, channels") {
  std::mt19937 random(2);
  for (const auto rounding : {ResizeRounding::kFloor, ResizeRounding::kRoundPreferCeil})
    for (const auto coordinates : {ResizeCoordinates::kAsymmetric, ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners})
      for (const std::int64_t channels : {1, 2, 3, 4, 16, 32, 64, 70})
        for (const auto& [height, width] : {std::pair{10, 14}, {3, 5}, {7, 21}, {1, 1}}) {
          const std::array<float, 4> scale{1, static_cast<float>(height) / 5.0f, static_cast<float>(width) / 7.0f, 1};
          Problem p = integer_node(model::OpKind::kResize, model::ResizeAttributes{.mode = ResizeMode::kNearest,
                                                                                   .coordinates = coordinates,
                                                                                   .rounding = rounding,
                                                                                   .scale = {scale[0], scale[1], scale[2], scale[3]}});
          add_integer_input(p, Shape{2, 5, 7, channels}, {0.02f, 3}, Drawn::kAll, random);
          set_output(p, Shape{2, height, width, channels}, DType::kU8, {0.02f, 3});
          check_all(p, {{}, {.rows = 3, .threads = 2, .pixel_gap = 3}});
        }
}

TEST_CASE("linear resizing of integers: extents, coordinates, channels, scales") {
  std::mt19937 random(5);
  for (const auto coordinates : {ResizeCoordinates::kAsymmetric, ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners})
    for (const std::int64_t channels : {1, 2, 3, 4, 5, 16, 31, 64, 70, 130})
      for (const auto& [height, width] : {std::pair{10, 14}, {3, 5}, {7, 21}, {5, 9}, {1, 1}, {11, 301}}) {
        const std::array<float, 4> scale{1, static_cast<float>(height) / 5.0f, static_cast<float>(width) / 7.0f, 1};
        Problem p = integer_node(model::OpKind::kResize, model::ResizeAttributes{.mode = ResizeMode::kLinear,
                                                                                 .coordinates = coordinates,
                                                                                 .scale = {scale[0], scale[1], scale[2], scale[3]}});
        add_integer_input(p, Shape{2, 5, 7, channels}, {0.02f, 3}, Drawn::kAll, random);
        set_output(p, Shape{2, height, width, channels}, DType::kU8, channels % 2 == 0 ? Quantised{0.02f, 3} : Quantised{0.013f, 100});
        check_all(p, {{}, {.rows = 3, .threads = 2}, {.threads = 2, .pixel_gap = 3}});
      }
}

TEST_CASE("softmax of integers: lengths, tables, ranges") {
  std::mt19937 random(6);
  for (const std::int64_t length : {1, 2, 3, 10, 47, 48, 49, 65, 200, 1000})
    for (const float scale : {0.01f, 0.1f, 1.5f}) {
      std::vector<float> table;
      for (int i = 0; i < 256; ++i) table.push_back(std::exp(static_cast<float>(i - 255) * scale + 30.0f));
      for (const Shape& shape : {Shape{5, length}, Shape{2, 3, 7, length}}) {
        Problem p = integer_node(model::OpKind::kSoftmax, model::SoftmaxAttributes{});
        add_integer_input(p, shape, {scale, 3}, Drawn::kAll, random);
        add_plain_values(p, DType::kF32, table);
        set_output(p, shape, DType::kU8, length % 2 == 0 ? Quantised{1.0f / 256, 0} : Quantised{0.0013f, 20});
        check_all(p, {{}, {.rows = 2, .pixel_gap = 5, .row_gap = 3}, {.rows = 1, .threads = 2}, {.threads = 2, .in_place = 0}});
      }
    }
}

TEST_CASE("softmax of integers takes a table without sense") {
  std::mt19937 random(7);
  for (const float value : {0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -1.0f}) {
    Problem p = integer_node(model::OpKind::kSoftmax, model::SoftmaxAttributes{});
    add_integer_input(p, Shape{3, 100}, {0.1f, 3}, Drawn::kAll, random);
    add_plain_values(p, DType::kF32, std::vector<float>(256, value));
    set_output(p, Shape{3, 100}, DType::kU8, {1.0f / 256, 0});
    check_all(p, {{}});
  }
}

TEST_CASE("nearest resizing of integers moves them") {
  Problem p = integer_node(model::OpKind::kResize, model::ResizeAttributes{.mode = ResizeMode::kNearest,
                                                                           .coordinates = ResizeCoordinates::kAsymmetric,
                                                                           .rounding = ResizeRounding::kFloor,
                                                                           .scale = {1, 2, 2, 1}});
  std::mt19937 random(1);
  add_integer_input(p, Shape{1, 2, 2, 3}, {0.02f, 3}, Drawn::kAll, random);
  set_output(p, Shape{1, 4, 4, 3}, DType::kU8, {0.02f, 3});
  const auto in = values_of<std::uint8_t>(p.inputs[0]), out = values_of<std::uint8_t>(run_reference(p));
  for (std::size_t y = 0; y < 4; ++y)
    for (std::size_t x = 0; x < 4; ++x)
      for (std::size_t c = 0; c < 3; ++c) CHECK(out[(y * 4 + x) * 3 + c] == in[(y / 2 * 2 + x / 2) * 3 + c]);
}

}  // namespace sluice::kernels::test
