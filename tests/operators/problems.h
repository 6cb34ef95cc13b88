// One-node problems of every kind of operator, of random shapes and attributes: what the tests of definitions and relations ask.
#pragma once

#include <functional>
#include <vector>

#include "sluice/operators/definition.h"
#include "tests/differential/integer_problems.h"
#include "tests/differential/transformer_problems.h"

namespace sluice::operators::test {

using kernels::test::Problem;
using model::OpKind;

class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : random_(seed) {}

  /// Of the class int8.
  Problem of_integers(OpKind kind) {
    switch (kind) {
      case OpKind::kConv:
        return kernels::test::integer_conv(channels(kernels::test::with_output(window())), upto(2), integer_products());
      case OpKind::kDense:
        return kernels::test::integer_dense(any_shape(), upto(20), integer_products());
      case OpKind::kUnary:
        return integer_table();
      case OpKind::kQuantize:
      case OpKind::kDequantize:
        return border(kind);
      case OpKind::kResize: {
        Problem p = resize();
        std::get<model::ResizeAttributes>(p.node().attributes).mode = model::ResizeMode::kNearest;
        return as_integers(p, true);
      }
      case OpKind::kPool: {
        Problem p = pool();
        return as_integers(p, std::get<model::PoolAttributes>(p.node().attributes).kind == model::PoolKind::kMax);
      }
      default:
        return as_integers(binary(), false);
    }
  }

  /// In f32, or of any type. kPlain has none: nothing is declared of it.
  Problem of(OpKind kind) {
    switch (kind) {
      case OpKind::kConv:
        return conv();
      case OpKind::kConvTranspose:
        return conv_transpose();
      case OpKind::kDense:
        return dense();
      case OpKind::kPool:
        return pool();
      case OpKind::kUnary:
        return alike(OpKind::kUnary, {}, {model::Function::kLeakyRelu, 0.5f, 0});
      case OpKind::kBinary:
        return binary();
      case OpKind::kAffine:
        return with_channel_weights(alike(OpKind::kAffine, {}));
      case OpKind::kSoftmax:
        return alike(OpKind::kSoftmax, model::SoftmaxAttributes{coin()});
      case OpKind::kLrn:
        return alike(OpKind::kLrn, model::LrnAttributes{.size = upto(4)});
      case OpKind::kConcat:
        return concat();
      case OpKind::kSlice:
        return slice();
      case OpKind::kPad:
        return pad();
      case OpKind::kResize:
        return resize();
      case OpKind::kTranspose:
        return transpose();
      case OpKind::kReshape:
        return reshape();
      case OpKind::kMatMul:
        return matmul();
      case OpKind::kLayerNorm:
        return with_channel_weights(alike(OpKind::kLayerNorm, model::LayerNormAttributes{}));
      case OpKind::kAttention:
        return attention();
      case OpKind::kEmbedding:
        return embedding();
      case OpKind::kRecurrent:
        return recurrent();
      case OpKind::kPlain:
      case OpKind::kQuantize:
      case OpKind::kDequantize:
        break;
    }
    FAIL("no problem of this kind");
    return {};
  }

 private:
  kernels::test::ProductOf integer_products() {
    constexpr DType kTypes[] = {DType::kU8, DType::kF32, DType::kI32};
    kernels::test::ProductOf how{.out = kTypes[random_() % 3]};
    how.residual = how.out == DType::kU8 && coin();
    return how;
  }
  /// The same shapes and attributes over u8, in one scale or several.
  Problem as_integers(const Problem& reals, bool one_scale) {
    Problem p = kernels::test::integer_node(reals.node().op, reals.node().attributes);
    const kernels::test::Quantised first{0.02f, 119}, second{0.03f, 7};
    for (std::size_t i = 0; i < reals.inputs.size(); ++i)
      kernels::test::add_integer_input(p, reals.shape(i), i == 0 ? first : second, kernels::test::Drawn::kAll, random_);
    kernels::test::set_output(p, reals.output().shape, DType::kU8, one_scale ? first : second);
    if (one_scale) p.graph.tensors.back().quantisation = p.graph.tensors[p.node().inputs[0].index()].quantisation;
    return p;
  }
  Problem integer_table() {
    Problem p = as_integers(alike(OpKind::kUnary, {}), false);
    std::vector<std::uint8_t> table;
    for (int i = 0; i < 256; ++i) table.push_back(static_cast<std::uint8_t>(i * 29));
    kernels::test::add_plain_values(p, DType::kU8, table);
    return p;
  }
  Problem border(OpKind kind) {
    const Shape of = any_shape();
    Problem p = as_integers(kernels::test::plain_problem(kind, {}, {of}, of), true);
    model::Tensor& real = p.graph.tensors[(kind == OpKind::kQuantize ? p.node().inputs : p.node().outputs)[0].index()];
    real.dtype = DType::kF32;
    real.quantisation = model::kNoQuantisation;
    std::vector<float> values;
    for (std::int64_t i = 0; i < of.element_count(); ++i) values.push_back(static_cast<float>(i % 90) * 0.01f);
    if (kind == OpKind::kQuantize) p.inputs[0] = kernels::test::bytes_of(values);
    return p;
  }

  std::int64_t upto(std::int64_t most) { return 1 + static_cast<std::int64_t>(random_() % static_cast<unsigned>(most)); }
  std::int64_t below(std::int64_t end) { return upto(end) - 1; }
  bool coin() { return random_() % 2 == 0; }

  Shape shape(int rank) {
    Shape made;
    std::vector<std::int64_t> dims;
    for (int axis = 0; axis < rank; ++axis) dims.push_back(upto(rank > 3 ? 4 : 6));
    return *Shape::make(dims);
  }
  Shape any_shape() { return shape(static_cast<int>(upto(4))); }

  Problem alike(OpKind op, const model::Attributes& attributes, const model::Activation& activation = {}) {
    const Shape of = any_shape();
    return kernels::test::plain_problem(op, attributes, {of}, of, activation);
  }
  Problem with_channel_weights(Problem p) {
    for (int i = 0; i < 2; ++i) kernels::test::add_plain_weight(p, p.output().shape.back(), random_);
    return p;
  }
  model::Epilogue epilogue() {
    return {.has_bias = coin(),
            .has_residual = coin(),
            .activation = {coin() ? model::Function::kLeakyRelu : model::Function::kNone, 0.25f, 0}};
  }

  model::Window window() {
    model::Window w{
        .in_h = 4 + below(5), .in_w = 4 + below(5), .kernel_h = upto(3), .kernel_w = upto(3), .stride_h = upto(3), .stride_w = upto(3)};
    w.dilation_h = w.kernel_h == 1 ? 1 : upto(2);
    w.dilation_w = w.kernel_w == 1 ? 1 : upto(2);
    w.pad_top = below(w.kernel_h), w.pad_left = below(w.kernel_w), w.pad_bottom = below(w.kernel_h), w.pad_right = below(w.kernel_w);
    return w;
  }
  /// One group, depthwise, or groups of several channels.
  model::ConvAttributes channels(const model::Window& w) {
    const std::int64_t groups = coin() ? 1 : 2 + below(2), each = coin() ? 1 : upto(3),
                       outputs = coin() ? each : upto(groups == 1 ? 18 : 12);
    return {w, groups, groups * each, groups * outputs};
  }

  Problem conv() {
    if (upto(4) == 1) return winograd();
    return kernels::test::conv_problem(channels(kernels::test::with_output(window())), upto(2), epilogue());
  }
  Problem winograd() {
    model::Window w{.in_h = 4 + below(6), .in_w = 4 + below(6), .kernel_h = 3, .kernel_w = 3};
    w.pad_top = w.pad_left = w.pad_bottom = w.pad_right = below(2);
    Problem p = kernels::test::conv_problem({kernels::test::with_output(w), 1, upto(4), upto(20)}, upto(2), epilogue());
    p.node().numeric = model::NumericClass::kWinograd4;
    return p;
  }
  Problem conv_transpose() {
    model::Window w = window();
    w.in_h = upto(4), w.in_w = upto(4);
    w.pad_top = w.pad_left = w.pad_bottom = w.pad_right = 0;
    w.kernel_h = 1 + upto(2), w.kernel_w = 1 + upto(2);
    if (w.in_h > 1) w.pad_top = below(2), w.pad_bottom = below(2);
    if (w.in_w > 1) w.pad_left = below(2), w.pad_right = below(2);
    w = kernels::test::with_transposed_output(w);
    w.out_h += below(w.stride_h), w.out_w += below(w.stride_w);
    return kernels::test::conv_problem(channels(w), upto(2), epilogue(), OpKind::kConvTranspose);
  }
  Problem dense() { return kernels::test::dense_problem(any_shape(), upto(20), epilogue()); }
  Problem pool() {
    const model::Window w = kernels::test::with_output(window());
    const std::int64_t images = upto(2), c = upto(5);
    const model::PoolAttributes a{coin() ? model::PoolKind::kMax : model::PoolKind::kAverage, w, coin()};
    return kernels::test::plain_problem(OpKind::kPool, a, {Shape{images, w.in_h, w.in_w, c}}, Shape{images, w.out_h, w.out_w, c});
  }

  /// A shape that broadcasts to `out`: axes of 1, outer axes missing.
  Shape broadcasting(const Shape& out, int keep) {
    const int rank = keep + static_cast<int>(below(out.rank() - keep + 1));
    std::vector<std::int64_t> dims;
    for (int axis = out.rank() - rank; axis < out.rank(); ++axis) dims.push_back(coin() ? 1 : out[axis]);
    return *Shape::make(dims);
  }
  Problem binary() {
    const Shape out = any_shape();
    const Shape other = coin() ? out : broadcasting(out, 0);
    const model::BinaryAttributes a{coin() ? model::BinaryFunction::kSub : model::BinaryFunction::kMul};
    return kernels::test::plain_problem(OpKind::kBinary, a, coin() ? std::vector{out, other} : std::vector{other, out}, out);
  }
  Problem matmul() {
    Shape out = shape(2 + static_cast<int>(below(3)));
    const std::int64_t k = upto(6);
    Shape a = out, b = coin() ? out : broadcasting(out, 2);
    a[a.rank() - 1] = k;
    b[b.rank() - 2] = k;
    b[b.rank() - 1] = out.back();
    return kernels::test::plain_problem(OpKind::kMatMul, {}, {a, b}, out);
  }

  Problem concat() {
    const Shape one = any_shape();
    const int axis = static_cast<int>(below(one.rank()));
    std::vector<Shape> inputs;
    Shape out = one;
    out[axis] = 0;
    for (std::int64_t i = 0, count = upto(4); i < count; ++i) {
      inputs.push_back(one);
      inputs.back()[axis] = upto(4);
      out[axis] += inputs.back()[axis];
    }
    return kernels::test::plain_problem(OpKind::kConcat, model::AxisAttributes{axis}, inputs, out);
  }
  Problem slice() {
    const Shape in = any_shape();
    Shape out = in;
    model::SliceAttributes a;
    for (int axis = 0; axis < in.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t step = upto(2);
      out[axis] = upto((in[axis] + step - 1) / step);
      const std::int64_t span = (out[axis] - 1) * step, first = below(in[axis] - span);
      const bool falls = coin();
      a.start[i] = falls ? first + span : first;
      a.step[i] = falls ? -step : step;
    }
    return kernels::test::plain_problem(OpKind::kSlice, a, {in}, out);
  }
  Problem pad() {
    const Shape in = any_shape();
    Shape out = in;
    model::PadAttributes a;
    a.mode = static_cast<model::PadMode>(below(3));
    for (int axis = 0; axis < in.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t most = std::min<std::int64_t>(in[axis] - 1, 2);  // a mirror repeats no more than there is
      if (most > 0) a.before[i] = below(2 * most + 1) - most, a.after[i] = below(2 * most + 1) - most;
      if (in[axis] + a.before[i] + a.after[i] < 1) a.before[i] = a.after[i] = 0;
      out[axis] += a.before[i] + a.after[i];
    }
    return kernels::test::plain_problem(OpKind::kPad, a, {in}, out);
  }
  Problem resize() {
    const Shape in = shape(4);
    Shape out = in;
    model::ResizeAttributes a;
    a.mode = static_cast<model::ResizeMode>(below(3));
    a.coordinates = static_cast<model::ResizeCoordinates>(below(4));
    a.rounding = static_cast<model::ResizeRounding>(below(4));
    for (int axis = 1; axis < 3; ++axis) {
      const float scale = static_cast<float>(upto(9)) / static_cast<float>(upto(3));
      out[axis] = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<float>(in[axis]) * scale));
      a.scale[static_cast<std::size_t>(axis)] = scale;
    }
    return kernels::test::plain_problem(OpKind::kResize, a, {in}, out);
  }
  Problem transpose() {
    const Shape in = any_shape();
    model::TransposeAttributes a;
    std::shuffle(a.perm.begin(), a.perm.begin() + in.rank(), random_);
    Shape out = in;
    for (int axis = 0; axis < in.rank(); ++axis) out[axis] = in[a.perm[static_cast<std::size_t>(axis)]];
    return kernels::test::plain_problem(OpKind::kTranspose, a, {in}, out);
  }
  Problem reshape() {
    const Shape shapes[] = {{2, 3, 4}, {6, 4}, {24}, {2, 12}, {1, 24, 1}, {4, 6}, {2, 3, 2, 2}, {3, 8}, {1, 2, 1, 12}};
    return kernels::test::plain_problem(OpKind::kReshape, {}, {shapes[random_() % std::size(shapes)]},
                                        shapes[random_() % std::size(shapes)]);
  }
  Problem attention() {
    const std::int64_t queries = upto(4);
    return kernels::test::attention_problem({.batch = upto(2),
                                             .queries = queries,
                                             .keys = queries + below(4),
                                             .heads = upto(3),
                                             .depth = upto(4),
                                             .width = upto(4),
                                             .causal = coin()});
  }
  Problem embedding() {
    Problem p = kernels::test::embedding_problem(shape(static_cast<int>(upto(3))), 40, upto(8));
    std::vector<std::int64_t> indices(p.inputs[0].size() / sizeof(std::int64_t));
    for (std::int64_t& index : indices) index = below(40);
    p.inputs[0] = kernels::test::bytes_of(indices);
    return p;
  }
  Problem recurrent() {
    model::RecurrentAttributes a{.cell = static_cast<model::Cell>(below(3)), .hidden = upto(9), .reverse = coin()};
    const bool lstm = a.cell == model::Cell::kLstm;
    a.linear_before_reset = a.cell == model::Cell::kGru && coin();
    a.input_forget = lstm && coin();
    a.first_hidden = coin();
    a.first_cell = lstm && coin();
    a.peepholes = lstm && coin();
    a.functions = {
        model::Activation{model::Function::kLeakyRelu, 0.5f, 0}, {model::Function::kLeakyRelu, 0.25f, 0}, {model::Function::kTanh, 0, 0}};
    const std::int64_t batch = upto(3), outputs = a.gates() * a.hidden;
    const Shape out{upto(4), batch, outputs};
    Problem p = kernels::test::plain_problem(OpKind::kRecurrent, a, {out}, out);
    for (int i = 0; i < (a.first_hidden ? 1 : 0) + (a.first_cell ? 1 : 0); ++i)
      kernels::test::add_input(p, Shape{1, batch, a.hidden}, DType::kF32, random_);
    kernels::test::add_packed_weight(p, {.outputs = outputs, .depth = a.hidden, .outputs_per_group = outputs}, false, random_);
    kernels::test::add_epilogue(p, {.has_bias = coin()}, random_);
    if (a.peepholes) kernels::test::add_plain_weight(p, 3 * a.hidden, random_);
    return p;
  }

  std::mt19937 random_;
};

/// The kinds that have nodes of the class int8.
inline std::vector<OpKind> integer_kinds() {
  std::vector<OpKind> kinds;
  for (const OperatorDefinition* definition : definitions())
    if (definition->integers != Integers::kNever) kinds.push_back(definition->kind);
  return kinds;
}

/// The kinds of which something is declared that have nodes of other classes.
inline std::vector<OpKind> declared_kinds() {
  std::vector<OpKind> kinds;
  for (const OperatorDefinition* definition : definitions())
    if (definition->kind != OpKind::kPlain && definition->integers != Integers::kAll) kinds.push_back(definition->kind);
  return kinds;
}

}  // namespace sluice::operators::test
