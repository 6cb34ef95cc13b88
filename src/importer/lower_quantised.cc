// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv whose weight is a constant larger than the tensors beside it: products over
// panels of 8 bits, which slice and stream, in place of the plain operator, which needs all of the weight at once.
//
//     x - zero, as f32 --dense or conv over (w - zero)--> sums --> i32, + bias --> f32 * scale --> rounded
//
// The sums are those of whole numbers, exactly: the weight is cut along its inputs where 255 times the sizes of an output's values could
// pass 2^24, and what the parts give is added as i32.
#include <cmath>
#include <cstdlib>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 24;  // whole numbers up to here are floats
constexpr std::int64_t kLargestInput = 255;

bool is_byte(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8; }

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
    auto quantised = std::make_shared<QuantisedValues>();
    quantised->values.resize(static_cast<std::size_t>(q.elements()));
    write_elements(q, reinterpret_cast<std::byte*>(quantised->values.data()));
    const bool is_unsigned = q.dtype == DType::kU8;
    if (is_unsigned)
      for (std::int8_t& value : quantised->values) value = static_cast<std::int8_t>(static_cast<std::uint8_t>(value) ^ 0x80u);
    quantised->inner = q.shape.count(outputs + 1, q.shape.rank());
    quantised->zeros.assign(1, 0.0f);
    if (c_.has_input(zero)) {
      const Constant& zeros = c_.require_constant(zero, "the zero points of the weight");
      if (zeros.elements() != 1 && zeros.elements() != extent) c_.refuse("zero points of another form");
      quantised->zeros.clear();
      for (const std::int64_t value : integers(zeros)) quantised->zeros.push_back(static_cast<float>(value));
    }
    for (float& value : quantised->zeros) value -= is_unsigned ? 128.0f : 0.0f;
    quantised->extent = static_cast<std::int64_t>(quantised->zeros.size());
    quantised->scales.assign(quantised->zeros.size(), 1.0f);
    ByteWeight made;
    made.parts = cut(*quantised, q.shape, outputs, inputs);
    auto real = std::make_shared<std::vector<float>>(quantised->values.size());
    for (std::size_t i = 0; i < real->size(); ++i)
      (*real)[i] = static_cast<float>(quantised->values[i]) - quantised->zeros[zero_of(*quantised, static_cast<std::int64_t>(i))];
    made.values = make_view(DType::kF32, q.shape, reinterpret_cast<const std::byte*>(real->data()), real);
    quantised->base = made.values.data;
    made.values.quantised = std::move(quantised);
    return made;
  }

  /// The plain operator takes less memory where the tensors beside the weight are the larger.
  void demand_large_weight(const Constant& weight, ValueId x, std::int64_t outputs) const {
    if (weight.elements() < 4 * (c_.shape(x).element_count() + outputs)) c_.refuse("a weight that is smaller than the tensors beside it");
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

  static std::size_t zero_of(const QuantisedValues& q, std::int64_t i) { return static_cast<std::size_t>(i / q.inner % q.extent); }

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
                                                          static_cast<std::int64_t>(q.zeros[zero_of(q, i)]));
        }
        if (more[static_cast<std::size_t>(o)] * kLargestInput > kExact) c_.refuse("taps of one channel whose sum f32 does not hold exactly");
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
  const Constant& q = c.require_constant(w_at, "the weight");
  const Shape x_shape = c.input_shape(x_at);
  if (q.shape.rank() != 2 || x_shape.rank() < 2 || x_shape.back() != q.shape[0] || c.constant(c.input(x_at)) != nullptr)
    c.refuse("a product that is no dense layer");
  bytes.demand_large_weight(q, c.input(x_at), x_shape.element_count() / x_shape.back() * q.shape[1]);
  const ByteWeight weight = bytes.weight(w_at, w_zero, 1, 0);
  const ValueId x = bytes.centred(x_at, x_zero);
  return sum_of_parts(c, bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    const ValueId values = c.add_range(x, x_shape.rank() - 1, begin, end - begin);
    return add_product(c, values, c.add_constant(range_of(weight.values, 0, begin, end)));
  });
}

ValueId image_sums(NodeContext& c, const ByteLowering& bytes, std::size_t x_at, std::size_t x_zero, std::size_t w_at, std::size_t w_zero) {
  const Constant& q = c.require_constant(w_at, "the weight");
  const Shape x_shape = c.input_shape(x_at);
  if (c.integer("group", 1) != 1 || (q.shape.rank() != 3 && q.shape.rank() != 4) || x_shape.rank() != q.shape.rank() ||
      q.shape[1] != x_shape[1] || c.constant(c.input(x_at)) != nullptr)
    c.refuse("a convolution of this form");
  // What it gives has about as many pixels as its input.
  bytes.demand_large_weight(q, c.input(x_at), x_shape.element_count() / x_shape[1] * q.shape[0]);
  const ByteWeight weight = bytes.weight(w_at, w_zero, 0, 1);
  const ValueId x = bytes.centred(x_at, x_zero);
  return sum_of_parts(c, bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    return add_conv(c, c.add_range(x, 1, begin, end - begin), range_of(weight.values, 1, begin, end), c.draft().value(c.input(w_at)).name);
  });
}

}  // namespace

void lower_matmul_integer(NodeContext& c) { c.set_output(0, matrix_sums(c, ByteLowering(c), 0, 2, 1, 3)); }

void lower_qlinear_matmul(NodeContext& c) {
  const ByteLowering bytes(c);
  const ValueId sums = matrix_sums(c, bytes, 0, 2, 3, 5);
  c.set_output(0, bytes.requantised(sums, 1, c.shape(sums).back(), c.shape(sums).rank() - 1));
}

void lower_conv_integer(NodeContext& c) { c.set_output(0, image_sums(c, ByteLowering(c), 0, 2, 1, 3)); }

void lower_qlinear_conv(NodeContext& c) {
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
