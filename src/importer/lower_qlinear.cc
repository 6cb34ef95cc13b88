// QLinearConv, QLinearMatMul, QGemm, QLinearAdd and QLinearMul where integer arithmetic will do them: as the operator over reals between
// DequantizeLinear and QuantizeLinear, which form_integer (rewrite/rewrite.h) makes one node. What it could not keep exact refuses here,
// and the lowerings in whole numbers (lower_quantised.cc) or the plain operators take it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "src/importer/lower_plain.h"
#include "src/importer/quantised.h"

namespace sluice::importer {
namespace {

/// Constant scales at `at` with the zero points behind them, as many as each other: one, or one for each of `most` channels.
bool is_linear(const NodeContext& c, std::size_t at, std::int64_t most) {
  if (!c.has_input(at)) return false;
  const Constant* scales = c.input_constant(at);
  if (scales == nullptr || (scales->elements() != 1 && scales->elements() != most)) return false;
  if (!c.has_input(at + 1)) return true;
  const Constant* zeros = c.input_constant(at + 1);
  return zeros != nullptr && is_byte(zeros->dtype) && zeros->elements() == scales->elements();
}

bool is_run_time_bytes(const NodeContext& c, std::size_t at) {
  return c.has_input(at) && is_byte(c.run_time_type(c.input(at))) && c.input_constant(at) == nullptr && !c.bounded(c.input(at));
}

}  // namespace

bool bytes_fit(const NodeContext& c, std::size_t at, std::size_t zero_at, int channels) {
  const Constant* w = c.input_constant(at);
  if (w == nullptr || !is_byte(w->dtype) || w->bits != 8 || w->elements() == 0 || w->elements() > kMaxFoldedElements * 256) return false;
  constexpr std::int64_t kMostProducts = INT32_MAX / (255 * 128);
  if (w->elements() / w->shape[channels] > kMostProducts - 1) return false;
  if (!c.has_input(zero_at)) return w->dtype == DType::kI8;
  if (c.input_constant(zero_at) == nullptr) return false;
  const std::vector<std::int64_t> zeros = integers(*c.input_constant(zero_at));
  if (zeros.size() != 1 && zeros.size() != static_cast<std::size_t>(w->shape[channels])) return false;
  if (std::all_of(zeros.begin(), zeros.end(), [&](std::int64_t zero) { return zero == (w->dtype == DType::kU8 ? 128 : 0); })) return true;
  if (zeros.size() != 1 || w->elements() > kMaxFoldedElements) return false;
  const std::vector<std::int64_t> values = integers(*w);
  return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v - zeros[0] >= -128 && v - zeros[0] <= 127; });
}

namespace {

/// A bias of i32, which counts in products of the scales of x and w, as floats.
std::vector<float> real_bias(const NodeContext& c, std::size_t at, std::size_t x_scale, std::size_t w_scale) {
  const std::vector<std::int64_t> whole = integers(*c.input_constant(at));
  const std::vector<float> x = floats(*c.input_constant(x_scale)), w = floats(*c.input_constant(w_scale));
  std::vector<float> bias;
  for (std::size_t n = 0; n < whole.size(); ++n) bias.push_back(static_cast<float>(whole[n]) * (x[0] * w[w.size() == 1 ? 0 : n]));
  return bias;
}

/// Whole numbers that floats hold, so that rounding gives them back.
bool is_bias(const NodeContext& c, std::size_t at, std::int64_t channels) {
  if (!c.has_input(at)) return true;
  const Constant* bias = c.input_constant(at);
  if (bias == nullptr || bias->dtype != DType::kI32 || bias->elements() != channels || channels > kMaxFoldedElements) return false;
  const std::vector<std::int64_t> values = integers(*bias);
  return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v > -(1 << 22) && v < (1 << 22); });
}

}  // namespace

/// x, its scale and zero point, w the same, y's scale and zero point, a bias.
bool lower_integer_conv(NodeContext& c) {
  if (!is_run_time_bytes(c, 0) || !c.has_input(3) || c.input_shape(3).rank() < 3 || !bytes_fit(c, 3, 5, 0)) return false;
  const std::int64_t channels = c.input_shape(3)[0];
  if (!is_linear(c, 1, 1) || !is_linear(c, 4, channels) || !is_linear(c, 6, 1) || !is_bias(c, 8, channels)) return false;
  std::vector<ValueId> inputs{real_input(c, 0, 0), real_input(c, 3, 0)};
  if (c.has_input(8)) inputs.push_back(c.add_constant(make_constant(Shape{channels}, real_bias(c, 8, 1, 4))));
  NodeContext inner(c.draft(), c.node(), c.opset(), std::move(inputs), c.name() + "/real");
  lower_conv(inner);
  set_quantised(c, inner.outputs()[0], 6);
  return true;
}

namespace {

/// The weight at `at` less its zero points behind the scale, as floats; nothing where 255 times the sizes of an output's values, and its
/// bias, could pass what floats hold exactly.
std::optional<Constant> whole_weight(const NodeContext& c, std::size_t at, const std::vector<std::int64_t>& bias) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  const Constant& q = *c.input_constant(at);
  std::vector<float> zeros(1, 0.0f);
  if (c.has_input(at + 2)) zeros = floats(*c.input_constant(at + 2));
  const kernels::ScaleOrder order{.inner = q.shape.count(1, q.shape.rank()), .extent = static_cast<std::int64_t>(zeros.size())};
  Constant made = dequantised(q, std::vector<float>(zeros.size(), 1.0f), zeros, order);
  const std::vector<float> values = floats(made);
  for (std::int64_t n = 0; n < q.shape[0]; ++n) {
    std::int64_t most = bias.empty() ? 0 : std::abs(bias[static_cast<std::size_t>(n)]);
    for (std::int64_t i = 0; i < order.inner; ++i)
      most += 255 * static_cast<std::int64_t>(std::fabs(values[static_cast<std::size_t>(n * order.inner + i)]));
    if (most > kExact) return std::nullopt;
  }
  return made;
}

}  // namespace

/// As lower_integer_conv, where the weight less its zero points is no i8: in floats that hold the sums of whole numbers exactly.
bool lower_whole_conv(NodeContext& c) {
  const Constant* w = c.input_constant(3);
  if (!is_run_time_bytes(c, 0) || w == nullptr || w->shape.rank() < 3 || w->elements() == 0 || w->elements() > kMaxFoldedElements)
    return false;
  const std::int64_t channels = w->shape[0];
  if (!is_byte(w->dtype) || w->bits != 8 || !is_linear(c, 1, 1) || !is_linear(c, 4, channels) || !is_linear(c, 6, 1) ||
      !is_bias(c, 8, channels))
    return false;
  const std::vector<std::int64_t> bias = c.has_input(8) ? integers(*c.input_constant(8)) : std::vector<std::int64_t>();
  const auto weight = whole_weight(c, 3, bias);
  if (!weight) return false;
  const ValueId one = c.add_constant(make_fill(Shape{}, 1.0f));
  const ValueId x = add_plain(c, "DequantizeLinear", {c.input(0), one, c.optional_input(2)}, {{0}, {0}, {0}});
  std::vector<ValueId> inputs{x, c.add_constant(*weight)};
  if (!bias.empty()) inputs.push_back(c.add_constant(make_constant(Shape{channels}, std::vector<float>(bias.begin(), bias.end()))));
  NodeContext inner(c.draft(), c.node(), c.opset(), std::move(inputs), c.name() + "/whole");
  lower_conv(inner);
  keep_exact(c);
  std::vector<float> factors = floats(*c.input_constant(4));
  for (float& factor : factors) factor = floats(*c.input_constant(1))[0] * factor / floats(*c.input_constant(6))[0];
  std::vector<std::int64_t> shape(static_cast<std::size_t>(w->shape.rank() - 1), 1);
  shape[0] = static_cast<std::int64_t>(factors.size());
  const ValueId real =
      c.add_binary(model::BinaryFunction::kMul, inner.outputs()[0], c.add_constant(make_constant(c.make_shape(shape), factors)));
  c.set_output(0, add_plain(c, "QuantizeLinear", {real, one, c.optional_input(7)}, {{1}, {0}, {0}, {1}}));
  return true;
}

bool lower_integer_matmul(NodeContext& c) {
  if (!is_run_time_bytes(c, 0) || !c.has_input(3) || c.input_shape(0).rank() < 2 || !is_linear(c, 1, 1) || !is_linear(c, 6, 1))
    return false;
  if (is_run_time_bytes(c, 3)) {
    if (!is_linear(c, 4, 1)) return false;
  } else if (c.input_shape(3).rank() != 2 || !bytes_fit(c, 3, 5, 1) || !is_linear(c, 4, c.input_shape(3)[1])) {
    return false;
  }
  const ValueId x = real_input(c, 0, 0);
  set_quantised(c, add_product(c, x, real_input(c, 3, 1)), 6);
  return true;
}

/// A, its scale and zero point, B the same, a bias, the result's scale and zero point: without them it stays real.
bool lower_integer_gemm(NodeContext& c) {
  const bool turned = c.integer("transB", 0) != 0;
  if (c.integer("transA", 0) != 0 || c.real("alpha", 1.0f) != 1.0f || !is_run_time_bytes(c, 0) || !c.has_input(3)) return false;
  if (c.input_shape(0).rank() != 2 || c.input_shape(3).rank() != 2 || !bytes_fit(c, 3, 5, turned ? 0 : 1)) return false;
  const std::int64_t channels = c.input_shape(3)[turned ? 0 : 1];
  if (!is_linear(c, 1, 1) || !is_linear(c, 4, channels) || !is_bias(c, 6, channels) || (c.has_input(7) && !is_linear(c, 7, 1)))
    return false;
  const ValueId x = real_input(c, 0, 0);
  ValueId w = real_input(c, 3, turned ? 0 : 1);
  if (turned) w = c.add_transpose(w, Perm{1, 0, 2, 3, 4, 5, 6, 7});
  ValueId y = add_product(c, x, w);
  if (c.has_input(6))
    y = c.add_binary(model::BinaryFunction::kAdd, y, c.add_constant(make_constant(Shape{channels}, real_bias(c, 6, 1, 4))));
  c.has_input(7) ? set_quantised(c, y, 7) : c.set_output(0, y);
  return true;
}

namespace {

/// A, its scale and zero point, B the same, the result's scale and zero point.
void lower_qlinear_binary(NodeContext& c, model::BinaryFunction function) {
  const auto known = [&](std::size_t at) {
    return is_byte(c.run_time_type(c.input(at))) && !c.bounded(c.input(at)) && is_linear(c, at + 1, 1);
  };
  if (!known(0) || !known(3) || !is_linear(c, 6, 1)) c.refuse("scales that come at run time");
  const ValueId a = real_input(c, 0, 0), b = real_input(c, 3, 0);
  set_quantised(c, c.add_binary(function, a, b), 6);
}

}  // namespace

void lower_qlinear_add(NodeContext& c) { lower_qlinear_binary(c, model::BinaryFunction::kAdd); }
void lower_qlinear_mul(NodeContext& c) { lower_qlinear_binary(c, model::BinaryFunction::kMul); }

}  // namespace sluice::importer
