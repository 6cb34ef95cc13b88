// Gemm, MatMul, BatchNormalization, LRN and the softmaxes.
#include <cmath>

#include "sluice/operators/generic/normalize.h"
#include "src/importer/allowance.h"
#include "src/importer/lowering.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::OpKind;

Perm swap_last(int rank) {
  Perm perm = kIdentityPerm;
  std::swap(perm[static_cast<std::size_t>(rank - 1)], perm[static_cast<std::size_t>(rank - 2)]);
  return perm;
}

/// x [..., K] times a constant [N, K]; `scale` multiplies all outputs.
ValueId add_dense(NodeContext& c, ValueId x, std::string name, Constant weight, float scale) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1];
  if (c.shape(x).rank() < 1 || c.shape(x).back() != k)
    c.malformed("a weight for " + std::to_string(k) + " features does not fit an input of shape " + c.shape(x).to_string());
  PanelValues panels;
  panels.name = std::move(name);
  panels.values = std::move(weight);
  if (scale != 1.0f) {
    if (n > kMaxFoldedElements) c.refuse("too many output features");
    count_made(static_cast<std::uint64_t>(n), sizeof(float));
    panels.scale.assign(static_cast<std::size_t>(n), scale);
  }
  Shape out = c.shape(x);
  out[out.rank() - 1] = n;
  const ValueId y = c.add(OpKind::kDense, {x}, out, model::DenseAttributes{k, n});
  c.last_node().panels = std::move(panels);
  return y;
}

ValueId scaled(NodeContext& c, ValueId x, float factor) {
  if (factor == 1.0f) return x;
  return c.add_binary(BinaryFunction::kMul, x, c.add_constant(make_fill(Shape{}, factor)));
}

/// [out features] of a constant that broadcasts over rows; empty when it does not.
std::vector<float> as_row_bias(const Constant& constant, std::int64_t n) {
  const Shape& s = constant.shape;
  if (!is_float(constant.dtype) || n > kMaxFoldedElements) return {};
  const bool row = s.element_count() == n && (s.rank() == 0 || s.back() == n);
  if (!row && s.element_count() != 1) return {};
  return floats(broadcast(*reshaped(constant, Shape{row ? n : 1}), Shape{n}));
}

/// How many matrices a constant of several is, when each is worth a dense layer of its own; else 0. Matrices that stay one constant must
/// lie in memory all at once.
std::int64_t dense_layers_of(const NodeContext& c, ValueId a, const Constant& weight) {
  constexpr std::int64_t kMostLayers = 64, kLeastElements = 4096;
  const Shape &w = weight.shape, &x = c.shape(a);
  if (c.constant(a) != nullptr || !is_float(weight.dtype) || w.rank() < 3 || x.rank() != w.rank() || x.back() != w[w.rank() - 2]) return 0;
  for (int axis = 0; axis + 2 < w.rank(); ++axis)
    if (x[axis] != w[axis]) return 0;
  const std::int64_t count = w.count(0, w.rank() - 2);
  return count <= kMostLayers && w.count(w.rank() - 2, w.rank()) >= kLeastElements && reshaped(weight, Shape{count, x.back(), w.back()})
             ? count
             : 0;
}

/// a [.., M, K] times a constant [.., K, N], a dense layer for each matrix.
ValueId add_dense_layers(NodeContext& c, ValueId a, const std::string& name, const Constant& weight, std::int64_t count) {
  const Shape x = c.shape(a);
  const std::int64_t k = x.back(), n = weight.shape.back(), rows = x[x.rank() - 2];
  const Constant all = *reshaped(weight, Shape{count, k, n});
  const ValueId inputs = c.add_reshape(a, Shape{count, rows, k});
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    Constant one = all;
    one.data += i * all.strides[0] * static_cast<std::int64_t>(size_of(all.dtype));
    one.shape[0] = 1;
    const Constant matrix = permuted(*reshaped(one, Shape{k, n}), swap_last(2));
    parts.push_back(add_dense(c, c.add_range(inputs, 0, i, 1), name, matrix, 1.0f));
  }
  const ValueId joined = c.add(OpKind::kConcat, parts, Shape{count, rows, n}, model::AxisAttributes{0});
  c.last_node().axis = 0;
  Shape out = x;
  out[out.rank() - 1] = n;
  return c.add_reshape(joined, out);
}

}  // namespace

ValueId add_matmul(NodeContext& c, ValueId a, ValueId b) {
  const Shape sa = c.shape(a), sb = c.shape(b);
  if (sa.back() != sb[sb.rank() - 2]) c.malformed("shapes " + sa.to_string() + " and " + sb.to_string() + " do not multiply");
  Shape batch_a = sa, batch_b = sb;
  batch_a[sa.rank() - 2] = batch_a[sa.rank() - 1] = 1;
  batch_b[sb.rank() - 2] = batch_b[sb.rank() - 1] = 1;
  Shape out = broadcast_shape(batch_a, batch_b);
  out[out.rank() - 2] = sa[sa.rank() - 2];
  out[out.rank() - 1] = sb.back();
  return c.add(OpKind::kMatMul, {a, b}, out);
}

void lower_gemm(NodeContext& c) {
  ValueId a = c.float_input(0), b = c.float_input(1);
  if (c.shape(a).rank() != 2 || c.shape(b).rank() != 2) c.malformed("both factors must have two axes");
  const float alpha = c.real("alpha", 1.0f), beta = c.real("beta", 1.0f);
  const bool transpose_b = c.integer("transB", 0) != 0;
  if (c.integer("transA", 0) != 0) a = c.add_transpose(a, swap_last(2));
  ValueId y;
  if (const Constant* weight = c.constant(b); weight != nullptr && weight->elements() > 0) {
    Constant by_output = transpose_b ? *weight : permuted(*weight, swap_last(2));
    y = add_dense(c, a, c.draft().value(c.input(1)).name, std::move(by_output), alpha);
  } else {
    if (transpose_b) b = c.add_transpose(b, swap_last(2));
    y = scaled(c, add_matmul(c, a, b), alpha);
  }
  if (!c.has_input(2) || beta == 0.0f) return c.set_output(0, y);
  const ValueId bias = c.float_input(2);
  const Shape out = c.shape(y);
  if (broadcast_shape(out, c.shape(bias)) != out) c.malformed("C does not broadcast to the output");
  if (const Constant* constant = c.constant(bias); constant != nullptr && c.last_node().op == OpKind::kDense) {
    std::vector<float> values = as_row_bias(*constant, out.back());
    if (!values.empty()) {
      for (float& value : values) value *= beta;
      c.last_node().bias = std::move(values);
      c.last_node().epilogue.has_bias = true;
      return c.set_output(0, y);
    }
  }
  c.set_output(0, c.add_binary(BinaryFunction::kAdd, y, scaled(c, bias, beta)));
}

ValueId add_product(NodeContext& c, ValueId a, ValueId b) {
  const Shape sa = c.shape(a), sb = c.shape(b);
  if (sa.rank() < 1 || sb.rank() < 1) c.malformed("a scalar cannot be a factor");
  const std::string name = c.draft().value(b).name;
  // numpy: a vector on the left is a row, on the right a column; the axis added is dropped from the result.
  if (sa.rank() == 1) a = c.add_reshape(a, Shape{1, sa[0]});
  if (sb.rank() == 1) b = c.add_reshape(b, Shape{sb[0], 1});
  const Constant* weight = c.constant(b);
  const bool panels = weight != nullptr && c.constant(a) == nullptr && weight->elements() > 0 &&
                      weight->shape.count(0, weight->shape.rank() - 2) == 1 && weight->shape.rank() <= c.shape(a).rank();
  ValueId y;
  if (const std::int64_t layers = weight == nullptr || panels ? 0 : dense_layers_of(c, a, *weight); layers > 0) {
    const Constant matrices = *weight;  // the draft's values move as it grows
    y = add_dense_layers(c, a, name, matrices, layers);
  } else if (panels) {
    const int rank = weight->shape.rank();
    const Constant two = *reshaped(permuted(*weight, swap_last(rank)), Shape{weight->shape[rank - 1], weight->shape[rank - 2]});
    y = add_dense(c, a, name, two, 1.0f);
  } else {
    y = add_matmul(c, a, b);
  }
  const Shape out = c.shape(y);
  std::vector<std::int64_t> dims(out.dims().begin(), out.dims().end());
  if (sb.rank() == 1) dims.pop_back();
  if (sa.rank() == 1) dims.erase(dims.end() - (sb.rank() == 1 ? 1 : 2));
  return c.add_reshape(y, c.make_shape(dims));
}

void lower_matmul(NodeContext& c) { c.set_output(0, add_product(c, c.float_input(0), c.float_input(1))); }

void lower_batch_normalization(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape shape = c.shape(x);
  if (c.integer("training_mode", 0) != 0) c.refuse("training mode; export the model for inference");
  if (c.opset() < 9 && c.integer("spatial", 1) == 0) c.refuse("spatial = 0; statistics must be per channel");
  for (std::size_t i = 1; i < c.node().outputs.size(); ++i)
    if (c.opset() >= 14 && c.wants_output(i)) c.refuse("its running statistics are used; only the normalised values are supported");
  if (shape.rank() < 2) c.refuse("input of shape " + shape.to_string() + "; it must have a channel axis");
  std::array<std::vector<float>, 4> statistics;  // scale, shift, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    const Constant& constant = c.require_constant(i + 1, "scale, B, mean and variance");
    if (!is_float(constant.dtype) || constant.elements() != shape[1])
      c.malformed("scale, B, mean and variance must have one float a channel");
    statistics[i] = floats(constant);
  }
  const double epsilon = c.real("epsilon", 1e-5f);
  std::vector<float> scale(statistics[0].size()), shift(statistics[0].size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const auto y =
        operators::generic::normalize::scale_and_shift(statistics[0][i], statistics[1][i], statistics[2][i], statistics[3][i], epsilon);
    scale[i] = y.scale;
    shift[i] = y.shift;
  }
  c.set_output(0, c.add(OpKind::kAffine, {x}, shape));
  c.last_node().scale = std::move(scale);
  c.last_node().bias = std::move(shift);
}

void lower_lrn(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape shape = c.shape(x);
  if (shape.rank() != 4) c.refuse("input of shape " + shape.to_string() + "; supported is [N, C, H, W]");
  const std::int64_t size = c.integer("size", 0);
  if (size < 1) c.malformed("attribute size must be positive");
  const model::LrnAttributes attributes{size, c.real("alpha", 1e-4f), c.real("beta", 0.75f), c.real("bias", 1.0f)};
  c.set_output(0, c.add(OpKind::kLrn, {x}, shape, attributes));
}

namespace {

void lower_any_softmax(NodeContext& c, bool log) {
  const ValueId x = c.float_input(0);
  const Shape shape = c.shape(x);
  if (shape.rank() == 0) c.malformed("a scalar has no axis to normalise over");
  const int axis =
      c.axis(c.integer("axis", c.opset() < 13 ? 1 : -1), shape.rank() == 1 && c.opset() < 13 && !c.has("axis") ? 2 : shape.rank());
  const auto normalise = [&](ValueId value, int over) {
    const ValueId y = c.add(OpKind::kSoftmax, {value}, c.shape(value), model::SoftmaxAttributes{log});
    c.last_node().axis = over;
    return y;
  };
  // Before opset 13 all axes from `axis` on are one.
  const bool flattens = c.opset() < 13 && shape.count(std::min(axis + 1, shape.rank()), shape.rank()) > 1;
  if (!flattens) return c.set_output(0, normalise(x, std::min(axis, shape.rank() - 1)));
  const ValueId rows = c.add_reshape(x, Shape{shape.count(0, axis), shape.count(axis, shape.rank())});
  c.set_output(0, c.add_reshape(normalise(rows, 1), shape));
}

}  // namespace

void lower_softmax(NodeContext& c) { lower_any_softmax(c, false); }
void lower_log_softmax(NodeContext& c) { lower_any_softmax(c, true); }

}  // namespace sluice::importer
