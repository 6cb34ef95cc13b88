// Operators that work element by element.
#include <algorithm>
#include <bit>
#include <limits>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

using model::Activation;
using model::BinaryFunction;
using model::Function;

struct UnaryEntry {
  std::string_view op_type;
  Function function;
  float a = 0.0f;  // default of attribute alpha, or the constant itself
  float b = 0.0f;  // default of attribute beta
};

constexpr UnaryEntry kUnary[] = {
    {"Relu", Function::kRelu},
    {"LeakyRelu", Function::kLeakyRelu, 0.01f},
    {"Sigmoid", Function::kSigmoid},
    {"HardSigmoid", Function::kHardSigmoid, 0.2f, 0.5f},
    {"HardSwish", Function::kHardSwish},
    {"Tanh", Function::kTanh},
    {"Exp", Function::kExp},
    {"Sqrt", Function::kSqrt},
    {"Erf", Function::kErf},
    {"Gelu", Function::kGelu},
    {"Neg", Function::kNeg},
    {"Abs", Function::kAbs},
    {"Log", Function::kLog},
    {"Reciprocal", Function::kReciprocal},
    {"Elu", Function::kElu, 1.0f},
    {"Softplus", Function::kSoftplus},
    {"Floor", Function::kFloor},
    {"Ceil", Function::kCeil},
};

struct BinaryEntry {
  std::string_view op_type;
  BinaryFunction function;
};

constexpr BinaryEntry kBinary[] = {
    {"Add", BinaryFunction::kAdd}, {"Sub", BinaryFunction::kSub}, {"Mul", BinaryFunction::kMul}, {"Div", BinaryFunction::kDiv},
    {"Max", BinaryFunction::kMax}, {"Min", BinaryFunction::kMin}, {"Sum", BinaryFunction::kAdd},
};

BinaryFunction binary_function(const NodeContext& c) {
  for (const BinaryEntry& entry : kBinary)
    if (entry.op_type == c.node().op_type) return entry.function;
  c.refuse("no such elementwise function");
}

float bound(const NodeContext& c, std::size_t input, std::string_view attribute, float otherwise) {
  if (c.opset() < 11) return c.real(attribute, otherwise);
  if (!c.has_input(input)) return otherwise;
  const auto value = uniform_value(c.require_constant(input, "a bound"));
  if (!value) c.malformed("a bound must be one number");
  return static_cast<float>(*value);
}

}  // namespace

void lower_unary(NodeContext& c) {
  const ValueId x = c.float_input(0);
  for (const UnaryEntry& entry : kUnary) {
    if (entry.op_type != c.node().op_type) continue;
    Activation activation{entry.function, entry.a, entry.b};
    if (entry.function == Function::kLeakyRelu || entry.function == Function::kHardSigmoid || entry.function == Function::kElu)
      activation.a = c.real("alpha", entry.a);
    if (entry.function == Function::kHardSigmoid) activation.b = c.real("beta", entry.b);
    if (entry.function == Function::kGelu && c.string("approximate", "none") == "tanh") activation.function = Function::kGeluTanh;
    return c.set_output(0, c.add_unary(x, activation));
  }
  c.refuse("no such elementwise function");
}

void lower_clip(NodeContext& c) {
  const ValueId x = c.float_input(0);
  constexpr float kMost = std::numeric_limits<float>::max();
  const float low = bound(c, 1, "min", -kMost), high = bound(c, 2, "max", kMost);
  if (low <= -kMost && high >= kMost) return c.set_output(0, x);
  if (low == 0.0f && high >= kMost) return c.set_output(0, c.add_unary(x, {Function::kRelu}));
  c.set_output(0, c.add_unary(x, {Function::kClip, low, high}));
}

void lower_binary(NodeContext& c) {
  const ValueId a = c.float_input(0);
  ValueId b = c.float_input(1);
  // Before opset 7 the second operand was aligned with `axis` of the first instead of with its end.
  if (c.opset() < 7 && c.integer("broadcast", 0) != 0 && c.has("axis")) {
    const Shape small = c.shape(b), large = c.shape(a);
    const int axis = c.axis(c.integer("axis", 0), large.rank());
    std::vector<std::int64_t> dims(small.dims().begin(), small.dims().end());
    while (static_cast<int>(dims.size()) + axis < large.rank()) dims.push_back(1);
    b = c.add_reshape(b, c.make_shape(dims));
  }
  c.set_output(0, c.add_binary(binary_function(c), a, b));
}

void lower_variadic(NodeContext& c) {
  if (c.input_count() == 0) c.malformed("no input");
  if (!is_float(c.run_time_type(c.input(0)))) {
    const std::string_view op = c.node().op_type;
    ValueId joined = c.input(0);
    for (std::size_t i = 1; i < c.input_count(); ++i)
      joined = add_plain(c, op == "Max" ? "Max2" : op == "Min" ? "Min2" : "Add", {joined, c.input(i)});
    return c.set_output(0, joined);
  }
  ValueId sum = c.float_input(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) sum = c.add_binary(binary_function(c), sum, c.float_input(i));
  c.set_output(0, sum);
}

void lower_mean(NodeContext& c) {
  ValueId sum = c.float_input(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) sum = c.add_binary(BinaryFunction::kAdd, sum, c.float_input(i));
  const auto count = static_cast<float>(c.input_count());
  c.set_output(0, c.add_binary(BinaryFunction::kDiv, sum, c.add_constant(make_fill(Shape{}, count))));
}

void lower_pow(NodeContext& c) {
  const ValueId x = c.float_input(0), exponent = c.input(1);
  if (const Constant* constant = c.constant(exponent)) {
    const auto value = uniform_value(*constant);
    const bool keeps_shape = value && broadcast_shape(c.shape(x), constant->shape) == c.shape(x);
    if (keeps_shape && *value == 1.0) return c.set_output(0, x);
    if (keeps_shape && *value == 2.0) return c.set_output(0, c.add_binary(BinaryFunction::kMul, x, x));
    if (keeps_shape && *value == 0.5) return c.set_output(0, c.add_unary(x, {Function::kSqrt}));
    if (!is_float(constant->dtype)) {
      const Shape shape = constant->shape;
      return c.set_output(0, c.add_binary(BinaryFunction::kPow, x, c.add_constant(make_constant(shape, floats(*constant)))));
    }
  }
  c.set_output(0, c.add_binary(BinaryFunction::kPow, x, c.float_input(1)));
}

void lower_prelu(NodeContext& c) {
  const ValueId x = c.float_input(0);
  ValueId slope = c.float_input(1);
  // Before opset 7 a list of slopes is one for each channel.
  if (const Shape& data = c.shape(x); c.opset() < 7 && data.rank() > 2 && c.shape(slope).rank() == 1 && c.shape(slope)[0] == data[1]) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(data.rank() - 1), 1);
    dims[0] = data[1];
    slope = c.add_reshape(slope, c.make_shape(dims));
  }
  if (broadcast_shape(c.shape(x), c.shape(slope)) != c.shape(x)) c.malformed("the slope does not broadcast to the input");
  c.set_output(0, c.add_binary(BinaryFunction::kPrelu, x, slope));
}

/// With a constant condition: x where it holds, else y, as x * [condition] + y * [not condition]. One side must be constant and finite
/// so that no infinity meets a zero.
void lower_where(NodeContext& c) {
  const Constant condition = c.require_constant(0, "the condition");
  const ValueId x = c.float_input(1), y = c.float_input(2);
  const std::vector<std::int64_t> holds = integers(condition);
  const bool all = std::all_of(holds.begin(), holds.end(), [](std::int64_t h) { return h != 0; });
  const bool none = std::all_of(holds.begin(), holds.end(), [](std::int64_t h) { return h == 0; });
  const Shape out = broadcast_shape(broadcast_shape(condition.shape, c.shape(x)), c.shape(y));
  if (all && c.shape(x) == out) return c.set_output(0, x);
  if (none && c.shape(y) == out) return c.set_output(0, y);
  const bool keep_x = c.constant(x) == nullptr;
  const ValueId kept = keep_x ? x : y, other = keep_x ? y : x;
  const Constant* filler = c.constant(other);
  const auto value = filler == nullptr ? std::nullopt : uniform_value(*filler);
  if (!value || !(*value >= -1e30 && *value <= 1e30))
    c.refuse("supported are a constant condition and one side that is a single finite constant");
  std::vector<float> mask(holds.size()), fill(holds.size());
  for (std::size_t i = 0; i < holds.size(); ++i) {
    mask[i] = (holds[i] != 0) == keep_x ? 1.0f : 0.0f;
    fill[i] = mask[i] != 0.0f ? 0.0f : static_cast<float>(*value);
  }
  const ValueId masked = c.add_binary(BinaryFunction::kMul, kept, c.add_constant(make_constant(condition.shape, mask)));
  c.set_output(0, c.add_binary(BinaryFunction::kAdd, masked, c.add_constant(make_constant(condition.shape, fill))));
}

void lower_mod(NodeContext& c) {
  const bool truncates = c.integer("fmod", 0) != 0;
  c.set_output(0, add_plain(c, truncates ? "ModC" : "ModPython", {c.input(0), c.input(1)}));
}

void lower_bit_shift(NodeContext& c) {
  const std::string_view direction = c.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.malformed("attribute direction must be LEFT or RIGHT");
  c.set_output(0, add_plain(c, direction == "LEFT" ? "ShiftLeft" : "ShiftRight", {c.input(0), c.input(1)}));
}

void lower_cast_like(NodeContext& c) {
  const DType from = c.run_time_type(c.input(0)), to = c.run_time_type(c.input(1));
  c.set_output(0, from == to ? c.input(0) : add_plain(c, "Cast", {c.input(0)}, {{onnx_type_of(to)}}));
}

/// With a shape that is known at run only; else it is folded (fold.h).
void lower_constant_of_shape(NodeContext& c) {
  const OnnxAttribute* value = c.attribute("value");
  if (value != nullptr && (value->type != AttributeType::kTensor || !value->tensor_problem.empty() || value->tensor.elements() != 1))
    c.malformed("attribute value must be a tensor of one element");
  // Its bits in the type that the model runs with, numbered as TensorProto.DataType does.
  DType dtype = value == nullptr ? DType::kF32 : value->tensor.dtype;
  if (is_float(dtype)) dtype = DType::kF32;
  std::int64_t bits = 0;
  if (value != nullptr)
    bits = dtype == DType::kF32 ? std::bit_cast<std::int32_t>(static_cast<float>(read_real(value->tensor, 0)))
                                : read_integer(value->tensor, 0);
  c.set_output(0, add_plain(c, "FillOfShape", {c.input(0)}, {{}, {onnx_type_of(dtype)}, {bits}}, 0, true));
}

void lower_identity(NodeContext& c) { c.set_output(0, c.input(0)); }

void lower_dropout(NodeContext& c) {
  if (c.has_input(2)) {
    const auto training = uniform_value(c.require_constant(2, "training_mode"));
    const auto ratio = c.has_input(1) ? uniform_value(c.require_constant(1, "the ratio")) : std::optional<double>(0.5);
    if (!training || (*training != 0.0 && ratio != 0.0)) c.refuse("training mode drops values at random; export the model for inference");
  }
  if (c.wants_output(1)) {
    // The mask of a dropout that drops nothing.
    const Shape shape = c.input_shape(0);
    const std::int64_t one = 1;
    c.set_output(1, c.add_constant(broadcast(make_constant(Shape{}, std::span(&one, 1), DType::kBool), shape)));
  }
  c.set_output(0, c.input(0));
}

void lower_cast(NodeContext& c) {
  const auto to = dtype_of(c.integer("to", 0));
  const DType from = c.draft().value(c.input(0)).dtype;
  // f16 and f64 run as f32, so a cast between reals does nothing.
  const bool same = is_float(from) ? is_float(*to) : *to == from;
  if (!same)
    c.refuse("a run-time cast from " + std::string(name_of(from)) + " to " + std::string(name_of(*to)) +
             "; supported are casts between reals");
  c.set_output(0, c.input(0));
}

}  // namespace sluice::importer
