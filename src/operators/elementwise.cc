// Functions of the elements at one place.
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

/// For 8-bit values, a table holds the result for each of the 256 values. Arithmetic does not take i8, but a table may read an input of i8
/// or make an output of i8.
Status validate_table(const NodeCheck& check) {
  if (check.attributes<std::monostate>() == nullptr) return check.invalid("G2: the attributes are not the operator's");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 1));
  const auto taken = [&](const Tensor& tensor) { return tensor.dtype == DType::kI8 || check.is_integer(tensor); };
  if (!taken(check.input(0)) || !taken(check.output())) return check.invalid("G2: a table is of i8, or of u8 of one scale");
  if (check.node().epilogue.activation.function != Function::kNone) return check.invalid("G2: a table has its activation in it");
  SLUICE_RETURN_IF_ERROR(check.plain_values(check.node().weights[0], DType::kU8, 256));
  return check.inferred("G2: input and output differ in shape");
}

Status validate_unary(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  return check.integer() ? validate_table(check) : check.same_shape<std::monostate>(0);
}

Status validate_affine(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  SLUICE_RETURN_IF_ERROR(check.same_shape<std::monostate>(2));
  SLUICE_RETURN_IF_ERROR(check.plain_f32(node.weights[0], check.output().shape.back()));
  return check.plain_f32(node.weights[1], check.output().shape.back());
}

std::uint64_t affine_flops(const Graph&, const Node&) noexcept { return 2; }

// ---- where integers begin and end

Status validate_border(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  if (check.attributes<std::monostate>() == nullptr) return check.invalid("G2: the attributes are not the operator's");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 0));
  const bool begins = node.op == OpKind::kQuantize;
  const auto is_real = [](const Tensor& tensor) { return tensor.dtype == DType::kF32; };
  if (!is_real(begins ? check.input(0) : check.output())) return check.invalid("G2: integers begin and end at f32");
  const Tensor& integers = begins ? check.output() : check.input(0);
  if (!check.is_integer(integers)) return check.invalid("G2: the integers are not u8 of one scale");
  return check.inferred("G2: input and output differ in shape");
}

std::uint64_t quantize_flops(const Graph&, const Node&) noexcept { return 4; }
std::uint64_t dequantize_flops(const Graph&, const Node&) noexcept { return 2; }

// ---- binary: numpy's broadcasting

Status validate_binary(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<BinaryAttributes>();
  if (a == nullptr) return check.invalid("G2: a binary operator has its function");
  SLUICE_RETURN_IF_ERROR(check.operands(2, 0));
  SLUICE_RETURN_IF_ERROR(check.f32_or_integers());
  if (check.integer() && (a->function == BinaryFunction::kPrelu || a->function == BinaryFunction::kPow))
    return check.invalid("G2: this function is none of integers");
  return check_broadcast(check, 0);
}

std::optional<Shape> infer_binary(const Graph& graph, const Node& node) noexcept {
  return broadcast_shape(shape_of_input(graph, node, 0), shape_of_input(graph, node, 1));
}

AxisRelations relate_binary(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const Shape &in = shape_of_input(graph, node, input), &out = shape_of_output(graph, node);
  AxisRelations axes(in.rank());
  for (int axis = 0; axis < in.rank(); ++axis) axes[axis] = relate_broadcast(in, out, axis);
  return axes;
}

std::uint64_t binary_flops(const Graph&, const Node&) noexcept { return 1; }

}  // namespace

constexpr OperatorDefinition kUnary = {
    .kind = OpKind::kUnary,
    .attributes = kAlternative<std::monostate>,
    .epilogue = {.activation = true},
    .in_place = InPlace::kFirst,
    .elementwise = true,
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_unary,
    .infer = infer_same,
    .relate_input = relate_same,
    .relate_weight = relate_looked_up,
};

constexpr OperatorDefinition kBinary = {
    .kind = OpKind::kBinary,
    .attributes = kAlternative<BinaryAttributes>,
    .inputs = 2,
    .epilogue = {.activation = true},
    .in_place = InPlace::kAny,
    .elementwise = true,
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_binary,
    .infer = infer_binary,
    .relate_input = relate_binary,
    .flops_per_output = binary_flops,
};

constexpr OperatorDefinition kAffine = {
    .kind = OpKind::kAffine,
    .attributes = kAlternative<std::monostate>,
    .epilogue = {.activation = true},
    .in_place = InPlace::kFirst,
    .elementwise = true,
    .in_bands = true,
    .validate = validate_affine,
    .infer = infer_same,
    .relate_input = relate_same,
    .relate_weight = relate_channels,
    .flops_per_output = affine_flops,
};

constexpr OperatorDefinition kQuantize = {
    .kind = OpKind::kQuantize,
    .attributes = kAlternative<std::monostate>,
    .elementwise = true,
    .integers = Integers::kAll,
    .in_bands = true,
    .validate = validate_border,
    .infer = infer_same,
    .relate_input = relate_same,
    .flops_per_output = quantize_flops,
};

constexpr OperatorDefinition kDequantize = {
    .kind = OpKind::kDequantize,
    .attributes = kAlternative<std::monostate>,
    .elementwise = true,
    .integers = Integers::kAll,
    .in_bands = true,
    .validate = validate_border,
    .infer = infer_same,
    .relate_input = relate_same,
    .flops_per_output = dequantize_flops,
};

}  // namespace sluice::operators
