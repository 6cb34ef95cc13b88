// The fast kernels of the class int8 that multiply by panels, bit by bit beside the generic ones.
#include "sluice/kernels/registry.h"
#include "tests/differential/integer_problems.h"

namespace sluice::kernels::test {
namespace {

/// The kernels that take the node, but for the generic one.
std::vector<const KernelDescriptor*> fast_kernels(const Problem& p) {
  std::vector<const KernelDescriptor*> found = kernels_for(p.graph, p.node());
  std::erase_if(found, [&](const KernelDescriptor* k) { return k == &reference_kernel(p.node().op, p.node().numeric); });
  return found;
}

void check_all(const Problem& p, const std::vector<Cut>& cuts) {
  const std::vector<std::byte> want = run_reference(p);
  for (const KernelDescriptor* kernel : fast_kernels(p))
    for (const Cut& cut : cuts) check_bits(p, *kernel, cut, want);
}
void check_all(const Problem& p) {
  check_all(p, {{}, {.rows = 2, .panels = 2, .pixel_gap = 5, .row_gap = 3}, {.rows = 1, .panels = 1, .threads = 2, .rings = true}});
}

model::ConvAttributes conv(const model::Window& window, std::int64_t in, std::int64_t out, std::int64_t groups = 1) {
  return {.window = with_output(window), .groups = groups, .in_channels = in, .out_channels = out};
}

model::Window square(std::int64_t extent, std::int64_t kernel, std::int64_t stride = 1, std::int64_t dilation = 1) {
  const std::int64_t pad = (kernel - 1) * dilation / 2;
  return {.in_h = extent,
          .in_w = extent,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

}  // namespace

TEST_CASE("integer dense layers of all small sizes have the bits of the generic kernel") {
  for (std::int64_t rows : {1, 2, 3, 4, 5, 7, 12, 13, 25, 40})
    for (std::int64_t k : {1, 3, 4, 9, 64})
      for (std::int64_t n : {1, 5, 16, 17, 47, 64, 80}) check_all(integer_dense(Shape{rows, k}, n));
}

TEST_CASE("integer 1x1 convolutions: every size from 1 to 10, strides, groups") {
  for (std::int64_t extent = 1; extent <= 10; ++extent)
    for (std::int64_t stride : {1, 2})
      for (std::int64_t channels : {1, 6, 8, 33}) check_all(integer_conv(conv(square(extent, 1, stride), channels, 16 * extent - 3), 2));
  check_all(integer_conv(conv(square(5, 1), 6, 48, 3)));
  check_all(integer_conv(conv(square(5, 1), 10, 40, 2)));
  check_all(integer_conv(conv(square(7, 1), 900, 331)));  // several blocks, each fetched beside the one before
}

TEST_CASE("integer convolutions: kernels, strides, dilations, groups") {
  for (std::int64_t kernel : {2, 3, 5})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t dilation : {1, 2})
        for (std::int64_t extent : {6, 9, 10})
          for (std::int64_t channels : {3, 8}) check_all(integer_conv(conv(square(extent, kernel, stride, dilation), channels, 35), 2));
  check_all(integer_conv(conv(square(7, 3), 6, 48, 3)));
  check_all(integer_conv(conv(square(7, 3), 12, 24, 4)));
  check_all(integer_conv(conv(square(8, 1, 1), 5, 16)));
  check_all(integer_conv(conv(square(40, 3, 1, 9), 4, 16)));
}

TEST_CASE("integer depthwise convolutions: kernels, strides, dilations, channels") {
  for (std::int64_t kernel : {2, 3, 5, 7})
    for (std::int64_t stride : {1, 2})
      for (std::int64_t dilation : {1, 2})
        for (std::int64_t channels : {3, 16, 65, 130})
          check_all(integer_conv(conv(square(11, kernel, stride, dilation), channels, channels, channels), 2));
  for (std::int64_t extent = 1; extent <= 10; ++extent) check_all(integer_conv(conv(square(extent, 3), 24, 24, 24)));
}

TEST_CASE("integer convolutions in groups of few outputs: outputs and inputs of a group, kernels, strides, dilations") {
  const auto runs_by_lanes = [](const Problem& p) { return kernels_for(p.graph, p.node())[0]->id == kernel_id::kIntegerGrouped; };
  const auto grouped = [&](std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t groups,
                           std::int64_t depth, std::int64_t outputs) {
    const Problem p = integer_conv(conv(square(extent, kernel, stride, dilation), groups * depth, groups * outputs, groups), 2);
    CHECK(runs_by_lanes(p));
    check_all(p);
  };
  for (std::int64_t outputs : {1, 2, 3, 4, 5, 8, 15})
    for (std::int64_t depth : {1, 2, 4, 7})
      for (std::int64_t kernel : {1, 2, 3, 5}) {
        if (outputs == 1 && depth == 1) continue;  // is depthwise
        for (const std::int64_t groups : {std::int64_t{2}, 64 / outputs, std::int64_t{37}})
          grouped(7, kernel, 1, 1, groups, depth, outputs);
        grouped(9, kernel, 2, 1, 11, depth, outputs);
        grouped(9, kernel, 1, 3, 5, depth, outputs);
      }
  grouped(90, 3, 1, 20, 3, 2, 8);
  grouped(130, 5, 2, 1, 2, 8, 8);
  grouped(6, 1, 1, 1, 3, 256, 4);
  CHECK(!runs_by_lanes(integer_conv(conv(square(6, 1), 3 * 257, 12, 3))));
  CHECK(!runs_by_lanes(integer_conv(conv(square(6, 3), 16, 16, 4), 1, {.residual = true})));
}

TEST_CASE("integer sums at the ends of all ranges") {
  for (std::int32_t zero : {0, 255})
    for (Drawn drawn : {Drawn::kAll, Drawn::kExtremes}) {
      const ProductOf how{.zero_in = zero, .zero_out = 255 - zero, .drawn = drawn};
      check_all(integer_dense(Shape{13, 512}, 48, how));
      check_all(integer_conv(conv(square(9, 3), 64, 32), 1, how));
      check_all(integer_conv(conv(square(9, 3), 80, 80, 80), 1, how));
      check_all(integer_conv(conv(square(9, 3), 80, 80, 20), 1, how));
    }
}

TEST_CASE("integer products end as u8 in a range, behind a residual, as f32 or as i32") {
  const std::vector<Cut> cuts{{}, {.rows = 3, .panels = 1, .threads = 2, .pixel_gap = 4}};
  for (const ProductOf& how :
       {ProductOf{.activation = {model::Function::kRelu}}, ProductOf{.activation = {model::Function::kClip, -1.0f, 2.5f}},
        ProductOf{.residual = true}, ProductOf{.drawn = Drawn::kExtremes, .residual = true, .activation = {model::Function::kRelu}},
        ProductOf{.residual = true, .residual_first = true, .of_i8 = true}, ProductOf{.out = DType::kF32},
        ProductOf{.out = DType::kF32, .activation = {model::Function::kSigmoid}}, ProductOf{.out = DType::kI32}}) {
    check_all(integer_dense(Shape{14, 40}, 37, how), cuts);
    check_all(integer_conv(conv(square(9, 1), 24, 70), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 12, 50), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 40, 40, 40), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 40, 70, 10), 1, how), cuts);
  }
}

TEST_CASE("integer products take zero point and scale at run time") {
  const std::vector<Cut> cuts{{}, {.rows = 3, .panels = 1, .threads = 2, .pixel_gap = 4}};
  for (const ProductOf& how : {ProductOf{.out = DType::kI32, .run_time = 1}, ProductOf{.out = DType::kI32, .zero_in = 0, .run_time = 1},
                               ProductOf{.out = DType::kF32, .zero_in = 255, .run_time = 2}, ProductOf{.out = DType::kF32, .run_time = 3},
                               ProductOf{.out = DType::kF32, .activation = {model::Function::kRelu}, .run_time = 2}}) {
    check_all(integer_dense(Shape{14, 40}, 37, how), cuts);
    check_all(integer_conv(conv(square(9, 1), 24, 70), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 12, 50), 2, how), cuts);
    check_all(integer_conv(conv(square(7, 3), 6, 48, 2), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 40, 40, 40), 1, how), cuts);
    check_all(integer_conv(conv(square(9, 3), 40, 70, 10), 1, how), cuts);
  }
}

TEST_CASE("integer products of two activations have the bits of the generic kernel") {
  for (std::int64_t m : {1, 2, 13, 30})
    for (std::int64_t k : {1, 4, 7, 64, 130})
      for (std::int64_t n : {1, 16, 33, 100})
        for (std::int32_t zero : {128, 0, 201})
          check_all(integer_matmul(Shape{m, k}, Shape{k, n}, Shape{m, n}, zero, {.zero_in = zero == 201 ? 0 : 119}));
  const Shape a{2, 3, 17, 24}, b{2, 3, 24, 40}, out{2, 3, 17, 40};
  for (const ProductOf& how : {ProductOf{}, ProductOf{.zero_in = 255, .drawn = Drawn::kExtremes}, ProductOf{.out = DType::kF32},
                               ProductOf{.out = DType::kI32, .run_time = 1}, ProductOf{.out = DType::kF32, .run_time = 2},
                               ProductOf{.out = DType::kF32, .run_time = 3}}) {
    check_all(integer_matmul(a, b, out, 131, how));
    check_all(integer_matmul(a, Shape{3, 24, 40}, out, 0, how));
    check_all(integer_matmul(Shape{17, 24}, b, out, 255, how));
  }
}

TEST_CASE("integer sums whose multiples leave 32 bits end at the bounds of the range") {
  for (float larger : {1e4f, 1e9f, 1e30f})
    for (bool residual : {false, true}) {
      const ProductOf how{.residual = residual, .larger = larger};
      check_all(integer_dense(Shape{14, 40}, 37, how));
      check_all(integer_conv(conv(square(5, 3), 40, 40, 40), 1, how));
    }
}

TEST_CASE("a residual has the roundings of its place in the addition") {
  // Found with ONNX Runtime 1.30 (QLinearAdd): where another order of the operands, or of the zero points, gives a neighbour.
  struct Addition {
    Quantised a, b, out;
    int left, right, sum;
  };
  const std::vector<Addition> bytes{{{0.07215861976146698f, 199}, {0.07041466236114502f, 181}, {0.006388791371136904f, 197}, 208, 174, 222},
                                    {{0.043030109256505966f, 196}, {0.04297887533903122f, 3}, {0.022714558988809586f, 80}, 48, 134, 48},
                                    {{0.06857182830572128f, 165}, {0.035091932862997055f, 122}, {0.04649375379085541f, 154}, 163, 59, 104},
                                    {{0.05235770717263222f, 148}, {0.07512208074331284f, 83}, {0.07427574694156647f, 82}, 17, 157, 65}};
  const std::vector<Addition> of_i8{
      {{0.06546615064144135f, -57}, {0.028733907267451286f, 50}, {0.016177894547581673f, 20}, -77, 57, -48},
      {{0.043030109256505966f, 68}, {0.04297887533903122f, -125}, {0.022714558988809586f, -48}, -80, 6, -81},
      {{0.01143693458288908f, -128}, {0.06836950778961182f, -128}, {0.03259105607867241f, -128}, -110, -75, -10},
      {{0.05235770717263222f, 20}, {0.07512208074331284f, -45}, {0.07427574694156647f, -46}, -111, 29, -64}};
  const auto check = [](const Addition& c, int offset, bool residual_first) {
    const auto moved = [&](Quantised q) { return Quantised{q.scale, q.zero + offset}; };
    const Quantised sum = moved(residual_first ? c.b : c.a), residual = moved(residual_first ? c.a : c.b);
    // A product with 1, whose multiplier is 1, is its input.
    Problem p = integer_dense(Shape{1, 1}, 1, {.residual = true, .residual_first = residual_first, .of_i8 = offset != 0});
    const auto quantise = [&](std::uint32_t quantisation, const Quantised& q) {
      p.graph.quantisations[quantisation].scales = {q.scale};
      p.graph.quantisations[quantisation].zero_points = {q.zero};
    };
    const auto set = [](std::vector<std::byte>& values, const auto& value) { std::memcpy(values.data(), &value, sizeof value); };
    quantise(p.node().quantisation, sum);
    quantise(p.graph.tensors[p.node().inputs[1].index()].quantisation, residual);
    quantise(p.output().quantisation, moved(c.out));
    set(p.weights[0], std::int8_t{1});
    set(p.weights[1], static_cast<std::int32_t>(-sum.zero));
    set(p.weights[2], 1.0f);
    set(p.inputs[0], static_cast<std::uint8_t>((residual_first ? c.right : c.left) + offset));
    set(p.inputs[1], static_cast<std::uint8_t>((residual_first ? c.left : c.right) + offset));
    CHECK(values_of<std::uint8_t>(run_reference(p))[0] == c.sum + offset);
    check_all(p, {{}});
  };
  for (const bool residual_first : {false, true}) {
    for (const Addition& c : bytes) check(c, 0, residual_first);
    for (const Addition& c : of_i8) check(c, 128, residual_first);
  }
}

TEST_CASE("a residual of integers may be replaced by the output") {
  const Problem p = integer_conv(conv(square(9, 3), 12, 50), 1, {.residual = true});
  check_all(p, {{.in_place = 1}, {.rows = 2, .panels = 1, .threads = 2, .in_place = 1}});
}

TEST_CASE("threads share integer products without a trace") {
  for (int threads : {1, 2, 3}) {
    check_all(integer_conv(conv(square(28, 1), 64, 96)), {{.threads = threads}});
    check_all(integer_conv(conv(square(28, 3), 32, 64)), {{.threads = threads}});
    check_all(integer_conv(conv(square(7, 3), 160, 160, 160)), {{.threads = threads}});
    check_all(integer_dense(Shape{1, 1024}, 512), {{.threads = threads}});
  }
}

}  // namespace sluice::kernels::test
