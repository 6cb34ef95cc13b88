// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv, and what com.microsoft has of the kind, where lower_run_time.cc and
// lower_qlinear.cc do not make integers of them, and the weight is a constant: products over panels of 8 bits, which slice and stream, in
// place of the plain operator, which needs all of it at once.
//
//     x - zero, as f32 --dense or conv over (w - zero)--> sums --> i32, + bias --> f32 * scale --> rounded
//
// The sums are those of whole numbers, exactly: the weight is cut along its inputs where 255 times the sizes of an output's values could
// pass 2^24, and what the parts give is added as i32.
#include <cmath>
#include <cstdlib>

#include "src/importer/lower_plain.h"
#include "src/importer/quantised.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 24;  // whole numbers up to here are floats
constexpr std::int64_t kLargestInput = 255;

/// A weight of whole numbers less their zeros.
struct ByteWeight {
  Constant values;                  // f32, with `quantised`
  std::vector<std::int64_t> parts;  // where its inputs are cut; the first is 0, the last all of them
};

class ByteLowering {
 public:
  explicit ByteLowering(NodeContext& c) : c_(c) {}

  /// Input `at` with its zero at `zero`, f32. A zero that is computed at run time is as good.
  ValueId centred(std::size_t at, std::size_t zero) const {
    const ValueId x = c_.input(at);
    if (!is_byte(c_.draft().value(x).dtype)) c_.refuse("an input that is not of 8 bits");
    const ValueId real = add_plain(c_, "Cast", {x}, {{kFloat}});
    if (!c_.has_input(zero)) return real;
    if (c_.input_shape(zero).element_count() != 1) c_.refuse("several zero points of the input");
    ValueId subtract = c_.input(zero);
    if (const Constant* known = c_.constant(subtract))
      subtract = c_.add_constant(make_fill(Shape{}, static_cast<float>(integers(*known)[0])));
    else
      subtract = c_.add_reshape(add_plain(c_, "Cast", {subtract}, {{kFloat}}), Shape{1});
    return c_.add_binary(model::BinaryFunction::kSub, real, subtract);
  }

  /// Input `at` with its zeros at `zero`, one for all or one for each place of axis `outputs`; cut along axis `inputs`.
  ByteWeight weight(std::size_t at, std::size_t zero, int outputs, int inputs) const {
    const Constant& q = c_.require_constant(at, "the weight");
    if (!is_byte(q.dtype) || q.shape.element_count() == 0) c_.refuse("a weight that is not of 8 bits");
    const std::int64_t extent = q.shape[outputs];
    std::vector<float> zeros(1, 0.0f);
    if (c_.has_input(zero)) {
      zeros = floats(c_.require_constant(zero, "the zero points of the weight"));
      if (zeros.size() != 1 && zeros.size() != static_cast<std::size_t>(extent)) c_.refuse("zero points of another form");
    }
    const kernels::ScaleOrder order{.inner = q.shape.count(outputs + 1, q.shape.rank()), .extent = static_cast<std::int64_t>(zeros.size())};
    ByteWeight made;
    made.values = dequantised(q, std::vector<float>(zeros.size(), 1.0f), zeros, order);
    made.parts = cut(*made.values.quantised, q.shape, outputs, inputs);
    return made;
  }

  ValueId whole(ValueId sums) const { return add_plain(c_, "Cast", {sums}, {{kInt32}}); }

  /// i32 sums as y: times x's and w's scale over y's, whose first is input `scales`; channels are places of `axis`.
  ValueId requantised(ValueId sums, std::size_t scales, std::int64_t channels, int axis) const {
    const auto scale = [&](std::size_t input) {
      const std::vector<float> values = floats(c_.require_constant(input, "the scales"));
      if (values.size() != 1 && values.size() != static_cast<std::size_t>(channels)) c_.refuse("scales of another form");
      return values;
    };
    const std::vector<float> x = scale(scales), w = scale(scales + 3), y = scale(scales + 5);
    if (x.size() != 1 || y.size() != 1) c_.refuse("several scales of an input");
    std::vector<float> factors;
    for (const float each : w) factors.push_back(x[0] * each / y[0]);
    std::vector<std::int64_t> shape(static_cast<std::size_t>(c_.shape(sums).rank() - axis), 1);
    shape[0] = static_cast<std::int64_t>(factors.size());
    const ValueId factor = c_.add_constant(make_constant(c_.make_shape(shape), factors));
    const ValueId real = c_.add_binary(model::BinaryFunction::kMul, add_plain(c_, "Cast", {sums}, {{kFloat}}), factor);
    return add_plain(c_, "QuantizeLinear", {real, c_.add_constant(make_fill(Shape{}, 1.0f)), c_.input(scales + 6)}, {{1}, {0}, {0}, {1}});
  }

 private:
  static constexpr std::int64_t kFloat = 1, kInt32 = 6;  // ONNX's numbers of types

  std::vector<std::int64_t> cut(const QuantisedValues& q, const Shape& shape, int outputs, int inputs) const {
    const std::int64_t rest = shape.count(2, shape.rank()), extent = shape[outputs];
    const std::int64_t step_out = shape.count(outputs + 1, shape.rank()), step_in = shape.count(inputs + 1, shape.rank());
    std::vector<std::int64_t> parts{0}, sizes(static_cast<std::size_t>(extent), 0);
    for (std::int64_t k = 0; k < shape[inputs]; ++k) {
      bool over = false;
      std::vector<std::int64_t> more(static_cast<std::size_t>(extent), 0);
      for (std::int64_t o = 0; o < extent; ++o) {
        for (std::int64_t r = 0; r < rest; ++r) {
          const std::int64_t i = k * step_in + o * step_out + r;
          more[static_cast<std::size_t>(o)] += std::llabs(static_cast<std::int64_t>(q.values[static_cast<std::size_t>(i)]) -
                                                          static_cast<std::int64_t>(q.zeros[static_cast<std::size_t>(q.order.of(i))]));
        }
        if (more[static_cast<std::size_t>(o)] * kLargestInput > kExact)
          c_.refuse("taps of one channel whose sum f32 does not hold exactly");
        over = over || (sizes[static_cast<std::size_t>(o)] + more[static_cast<std::size_t>(o)]) * kLargestInput > kExact;
      }
      if (over && k > parts.back()) {
        parts.push_back(k);
        sizes.assign(sizes.size(), 0);
      }
      for (std::size_t o = 0; o < sizes.size(); ++o) sizes[o] += more[o];
    }
    parts.push_back(shape[inputs]);
    return parts;
  }

  NodeContext& c_;
};

/// Places [begin, end) of an axis of a constant.
Constant range_of(const Constant& c, int axis, std::int64_t begin, std::int64_t end) {
  Constant part = c;
  part.data += begin * c.strides[static_cast<std::size_t>(axis)] * static_cast<std::int64_t>(size_of(c.dtype));
  part.shape[axis] = end - begin;
  return part;
}

/// The i32 sum of what `part(i)` gives for each part.
template <class Part>
ValueId sum_of_parts(NodeContext& c, const ByteLowering& bytes, const ByteWeight& weight, const Part& part) {
  ValueId sum;
  for (std::size_t i = 0; i + 1 < weight.parts.size(); ++i) {
    const ValueId one = bytes.whole(part(weight.parts[i], weight.parts[i + 1]));
    sum = sum.valid() ? add_plain(c, "Add", {sum, one}) : one;
  }
  return sum;
}

ValueId matrix_sums(NodeContext& c, const ByteLowering& bytes, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  if (const auto sums = run_time_matrix_sums(c, x_at, x_zero, w_at, w_zero)) return *sums;
  const Constant& q = c.require_constant(w_at, "the weight");
  const Shape x_shape = c.input_shape(x_at);
  if (q.shape.rank() != 2 || x_shape.rank() < 2 || x_shape.back() != q.shape[0] || c.constant(c.input(x_at)) != nullptr)
    c.refuse("a product that is no dense layer");
  const ByteWeight weight = bytes.weight(w_at, w_zero, 1, 0);
  const ValueId x = bytes.centred(x_at, x_zero);
  return sum_of_parts(c, bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    const ValueId values = c.add_range(x, x_shape.rank() - 1, begin, end - begin);
    return add_product(c, values, c.add_constant(range_of(weight.values, 0, begin, end)));
  });
}

ValueId image_sums(NodeContext& c, const ByteLowering& bytes, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  if (const auto sums = run_time_image_sums(c, x_at, x_zero, w_at, w_zero)) return *sums;
  const Constant& q = c.require_constant(w_at, "the weight");
  const Shape x_shape = c.input_shape(x_at);
  const std::int64_t groups = c.integer("group", 1);
  if ((q.shape.rank() != 3 && q.shape.rank() != 4) || x_shape.rank() != q.shape.rank() || groups < 1 || x_shape[1] % groups != 0 ||
      q.shape[1] != x_shape[1] / groups || c.constant(c.input(x_at)) != nullptr)
    c.refuse("a convolution of this form");
  const ByteWeight weight = bytes.weight(w_at, w_zero, 0, 1);
  if (groups > 1 && weight.parts.size() > 2) c.refuse("groups whose sums f32 does not hold exactly");
  const ValueId x = bytes.centred(x_at, x_zero);
  return sum_of_parts(c, bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    const ValueId inputs = groups > 1 ? x : c.add_range(x, 1, begin, end - begin);
    const ValueId y = add_conv(c, inputs, range_of(weight.values, 1, begin, end), c.draft().value(c.input(w_at)).name);
    keep_exact(c);
    return y;
  });
}

/// The same where the weight may also be small or computed: then the plain operator's.
ValueId matrix_sums_or_plain(NodeContext& c, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  if (const auto sums = run_time_matrix_sums(c, x_at, x_zero, w_at, w_zero)) return *sums;
  const Constant* w = c.input_constant(w_at);
  const Shape x = c.input_shape(x_at);
  const bool large = w != nullptr && w->shape.rank() == 2 && x.rank() >= 2 && c.input_constant(x_at) == nullptr &&
                     x.back() == w->shape[0] && w->elements() >= 4 * (x.element_count() + x.element_count() / x.back() * w->shape[1]);
  const auto optional = [&](std::size_t at) { return c.has_input(at) ? c.input(at) : ValueId(); };
  if (large) return matrix_sums(c, ByteLowering(c), x_at, x_zero, w_at, w_zero);
  return add_plain(c, "MatMulInteger", {c.input(x_at), c.input(w_at), optional(x_zero), optional(w_zero)});
}

ValueId real(NodeContext& c, ValueId whole) { return add_plain(c, "Cast", {whole}, {{1}}); }

/// i32 sums times the scales of both factors, plus a bias.
ValueId scaled_sums(NodeContext& c, ValueId sums, ValueId x_scale, ValueId w_scale, ValueId bias) {
  using model::BinaryFunction;
  const auto one = [&](ValueId scale) { return c.shape(scale).element_count() == 1 ? c.add_reshape(scale, Shape{1}) : scale; };
  const ValueId scale = c.add_binary(BinaryFunction::kMul, one(x_scale), one(w_scale));
  const ValueId y = c.add_binary(BinaryFunction::kMul, real(c, sums), scale);
  return bias.valid() ? c.add_binary(BinaryFunction::kAdd, y, bias) : y;
}

}  // namespace

void keep_exact(NodeContext& c) {
  std::vector<DraftNode>& nodes = c.draft().nodes;
  std::size_t n = nodes.size() - 1;
  while (nodes[n].op != model::OpKind::kConv) --n;  // it was only reshaped
  nodes[n].sums_whole_numbers = true;
}

/// A, B, their scales, their zero points, a bias of floats.
void lower_matmul_integer_to_float(NodeContext& c) {
  const ValueId sums = matrix_sums_or_plain(c, 0, 4, 1, 5);
  c.set_output(0, scaled_sums(c, sums, c.float_input(2), c.float_input(3), c.has_input(6) ? c.float_input(6) : ValueId()));
}

/// A of floats, quantised as DynamicQuantizeLinear does; B, its scale, its zero point, a bias of floats.
void lower_dynamic_quantize_matmul(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const auto part = [&](int result) { return add_plain(c, "DynamicQuantizeLinear", {x}, {}, result); };
  const ValueId scale = part(1);
  NodeContext inner(c.draft(), c.node(), c.opset(), {part(0), c.input(1), part(2), c.has_input(3) ? c.input(3) : ValueId()},
                    c.name() + "/whole");
  const ValueId sums = matrix_sums_or_plain(inner, 0, 2, 1, 3);
  c.set_output(0, scaled_sums(c, sums, scale, c.float_input(2), c.has_input(4) ? c.float_input(4) : ValueId()));
}

/// A, its scale and zero point, B the same, a bias of whole numbers, the result's scale and zero point: without them it stays real.
void lower_qgemm(NodeContext& c) {
  if (lower_integer_gemm(c)) return;
  const auto factor = [&](std::size_t at, const char* attribute) {
    const ValueId x = c.input(at);
    if (c.shape(x).rank() != 2) c.malformed("a factor that is no matrix");
    return c.integer(attribute, 0) != 0 ? c.add_transpose(x, Perm{1, 0, 2, 3, 4, 5, 6, 7}) : x;
  };
  const auto optional = [&](std::size_t at) { return c.has_input(at) ? c.input(at) : ValueId(); };
  NodeContext inner(c.draft(), c.node(), c.opset(), {factor(0, "transA"), factor(3, "transB"), optional(2), optional(5)},
                    c.name() + "/whole");
  ValueId sums = matrix_sums_or_plain(inner, 0, 2, 1, 3);
  if (c.has_input(6)) sums = add_plain(c, "Add", {sums, c.input(6)});
  const ValueId alpha = c.add_constant(make_fill(Shape{1}, c.real("alpha", 1.0f)));
  const ValueId y = scaled_sums(c, sums, c.add_binary(model::BinaryFunction::kMul, alpha, c.float_input(1)), c.float_input(4), {});
  c.set_output(0, c.has_input(7) ? add_plain(c, "QuantizeLinear", {y, c.float_input(7), optional(8)}, {{1}, {0}, {0}, {1}}) : y);
}

void lower_matmul_integer(NodeContext& c) { c.set_output(0, matrix_sums(c, ByteLowering(c), 0, 2, 1, 3)); }

void lower_qlinear_matmul(NodeContext& c) {
  if (lower_integer_matmul(c)) return;
  const ByteLowering bytes(c);
  const ValueId sums = matrix_sums(c, bytes, 0, 2, 3, 5);
  c.set_output(0, bytes.requantised(sums, 1, c.shape(sums).back(), c.shape(sums).rank() - 1));
}

void lower_conv_integer(NodeContext& c) { c.set_output(0, image_sums(c, ByteLowering(c), 0, 2, 1, 3)); }

void lower_qlinear_conv(NodeContext& c) {
  if (lower_integer_conv(c) || lower_whole_conv(c)) return;
  const ByteLowering bytes(c);
  ValueId sums = image_sums(c, bytes, 0, 2, 3, 5);
  const std::int64_t channels = c.shape(sums)[1];
  if (c.has_input(8)) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(c.shape(sums).rank() - 1), 1);
    shape[0] = channels;
    sums = add_plain(c, "Add", {sums, c.add_reshape(c.input(8), c.make_shape(shape))});
  }
  c.set_output(0, bytes.requantised(sums, 1, channels, 1));
}

}  // namespace sluice::importer
