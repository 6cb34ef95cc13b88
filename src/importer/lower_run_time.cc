// MatMulInteger and ConvInteger as products of the class int8 whose zero point comes at run time (operators/parameters/integer.h): the
// weight as bytes less its zero points, in panels. scale_sums (rewrite/rewrite.h) adds what usually follows, a scale and a bias.
//
//     x, zero point --kDense or kConv over w - zero--> i32
//     a, b, their zero points --kMatMul--> i32
//
// What is not of this form is left to the lowerings in floats (lower_quantised.cc) or to the plain operators.
#include <optional>
#include <span>

#include "src/importer/lower_plain.h"
#include "src/importer/quantised.h"
#include "src/importer/rewrite/integer_products.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kMostFactors = INT32_MAX / (255 * 255);  // products of two bytes whose sum holds in 32 bits

bool is_u8(const NodeContext& c, std::size_t at) {
  return c.has_input(at) && c.run_time_type(c.input(at)) == DType::kU8 && c.input_constant(at) == nullptr && !c.bounded(c.input(at));
}
/// A zero point of the run time, or one that is known.
bool is_zero(const NodeContext& c, std::size_t at) {
  return !c.has_input(at) || (c.run_time_type(c.input(at)) == DType::kU8 && c.input_shape(at).element_count() == 1);
}
ValueId zero_of(NodeContext& c, std::size_t at) {
  if (c.has_input(at)) return c.input_shape(at) == Shape{1} ? c.input(at) : c.add_reshape(c.input(at), Shape{1});
  const std::int64_t none = 0;
  return c.add_constant(make_constant(Shape{1}, std::span(&none, 1), DType::kU8));
}

/// The weight at `at` as floats that stand for its bytes less their zeros.
Constant whole_weight(NodeContext& c, std::size_t at, std::size_t zero, int channels) {
  const Constant& q = *c.input_constant(at);
  std::vector<float> zeros(1, 0.0f);
  if (c.has_input(zero)) zeros = floats(*c.input_constant(zero));
  const kernels::ScaleOrder order{.inner = q.shape.count(channels + 1, q.shape.rank()), .extent = static_cast<std::int64_t>(zeros.size())};
  return dequantised(q, std::vector<float>(zeros.size(), 1.0f), zeros, order);
}

/// The last node of a kind, which was made for floats, gives i32 of bytes.
void make_integer(NodeContext& c, model::OpKind op, ValueId zero) {
  std::vector<DraftNode>& nodes = c.draft().nodes;
  std::size_t n = nodes.size() - 1;
  for (; nodes[n].op != op; --n) c.draft().value(nodes[n].output).dtype = DType::kI32;  // it was only reshaped
  DraftNode& node = nodes[n];
  node.integers = run_time_products(node);
  if (!node.integers) c.refuse("a weight whose values less their zero points are no bytes");
  node.numeric = model::NumericClass::kInt8;
  node.epilogue.has_bias = true;
  node.inputs.push_back(zero);
  c.draft().value(node.output).dtype = DType::kI32;
}

/// A u8 weight of one zero point that moves it out of 8 bits: less 128 it stays within them, and what is left of the zero point counts the
/// sum of the inputs of each output, a layer of one output.
///
///     sum of (x - zero) * (w - z) = sum of (x - zero) * (w - 128) - sum of (x - zero) * (z - 128)
struct MovedWeight {
  Constant less_middle;
  Constant left;  // as the weight, of one output
};

/// The weight at `at`, whose outputs are places of axis `outputs`. Nothing: not of this form, or its sums could leave 32 bits.
std::optional<MovedWeight> moved_weight(const NodeContext& c, std::size_t at, std::size_t zero_at, int outputs) {
  constexpr std::int64_t kMiddle = 128, kMostDepth = INT32_MAX / (2 * 255 * kMiddle);
  const Constant* w = c.input_constant(at);
  if (w == nullptr || w->dtype != DType::kU8 || w->bits != 8 || w->shape.rank() < 2 || w->elements() == 0) return std::nullopt;
  Shape line = w->shape;
  line[outputs] = 1;
  if (line.element_count() > kMostDepth) return std::nullopt;
  const Constant* zeros = c.has_input(zero_at) ? c.input_constant(zero_at) : nullptr;
  if (c.has_input(zero_at) && (zeros == nullptr || zeros->elements() != 1)) return std::nullopt;
  const std::int64_t left = (zeros == nullptr ? 0 : integers(*zeros)[0]) - kMiddle;
  const std::vector<std::int64_t> lefts(static_cast<std::size_t>(line.element_count()), left);
  const kernels::ScaleOrder one{.inner = 1, .extent = 1};
  return MovedWeight{dequantised(*w, {1.0f}, {static_cast<float>(kMiddle)}, one),
                     dequantised(make_constant(line, lefts, DType::kI8), {1.0f}, {0.0f}, one)};
}

std::optional<ValueId> moved_products(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  const auto weight = moved_weight(c, w_at, w_zero, 1);
  if (!weight || weight->left.shape.rank() != 2 || weight->left.shape[0] != c.input_shape(x_at).back()) return std::nullopt;
  const ValueId zero = zero_of(c, x_zero);
  const auto sums = [&](const Constant& w) {
    const ValueId y = add_product(c, c.input(x_at), c.add_constant(w));
    make_integer(c, model::OpKind::kDense, zero);
    return y;
  };
  const ValueId all = sums(weight->less_middle);
  return add_plain(c, "Sub", {all, sums(weight->left)});
}

std::optional<ValueId> moved_image_sums(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  if (c.integer("group", 1) != 1) return std::nullopt;
  const auto weight = moved_weight(c, w_at, w_zero, 0);
  const int rank = c.input_shape(x_at).rank();
  if (!weight || (rank != 3 && rank != 4) || weight->left.shape.rank() != rank) return std::nullopt;
  const ValueId zero = zero_of(c, x_zero);
  const auto sums = [&](const Constant& w) {
    const ValueId y = add_conv(c, c.input(x_at), w, c.draft().value(c.input(w_at)).name);
    make_integer(c, model::OpKind::kConv, zero);
    return y;
  };
  const ValueId all = sums(weight->less_middle);
  return add_plain(c, "Sub", {all, sums(weight->left)});
}

/// Of two activations, or of one and a weight that its zero points move out of 8 bits.
std::optional<ValueId> run_time_products_of_bytes(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at,
                                                  std::size_t w_zero) {
  const ValueId x = c.input(x_at), w = c.input(w_at);
  const Shape a = c.shape(x), b = c.shape(w);
  if (c.run_time_type(w) != DType::kU8 || c.bounded(w) || !is_zero(c, w_zero) || b.rank() < 2 || b.element_count() == 0)
    return std::nullopt;
  if (a.back() != b[b.rank() - 2] || a.back() > kMostFactors) return std::nullopt;
  const ValueId zeros[] = {zero_of(c, x_zero), zero_of(c, w_zero)};
  const ValueId y = add_matmul(c, x, w);
  DraftNode& node = c.last_node();
  node.numeric = model::NumericClass::kInt8;
  node.inputs.insert(node.inputs.end(), std::begin(zeros), std::end(zeros));
  c.draft().value(y).dtype = DType::kI32;
  return y;
}

}  // namespace

std::optional<ValueId> run_time_matrix_sums(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  if (!is_u8(c, x_at) || !is_zero(c, x_zero) || c.input_shape(x_at).rank() < 2) return std::nullopt;
  const Constant* w = c.input_constant(w_at);
  if (w == nullptr || w->shape.rank() != 2 || w->shape[0] != c.input_shape(x_at).back() || !bytes_fit(c, w_at, w_zero, 1)) {
    if (const auto sums = moved_products(c, x_at, x_zero, w_at, w_zero)) return sums;
    return run_time_products_of_bytes(c, x_at, x_zero, w_at, w_zero);
  }
  const ValueId zero = zero_of(c, x_zero);
  const ValueId y = add_product(c, c.input(x_at), c.add_constant(whole_weight(c, w_at, w_zero, 1)));
  make_integer(c, model::OpKind::kDense, zero);
  return y;
}

std::optional<ValueId> run_time_image_sums(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  const Constant* w = c.input_constant(w_at);
  if (!is_u8(c, x_at) || !is_zero(c, x_zero) || w == nullptr) return std::nullopt;
  if (!bytes_fit(c, w_at, w_zero, 0)) return moved_image_sums(c, x_at, x_zero, w_at, w_zero);
  const int rank = w->shape.rank();
  if ((rank != 3 && rank != 4) || c.input_shape(x_at).rank() != rank) return std::nullopt;
  const ValueId zero = zero_of(c, x_zero);
  const ValueId y = add_conv(c, c.input(x_at), whole_weight(c, w_at, w_zero, 0), c.draft().value(c.input(w_at)).name);
  make_integer(c, model::OpKind::kConv, zero);
  return y;
}

}  // namespace sluice::importer
