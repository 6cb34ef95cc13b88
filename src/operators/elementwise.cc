// Functions of the elements at one place.
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

Status validate_unary(const Graph& graph, const Node& node) { return NodeCheck(graph, node).same_shape<std::monostate>(0); }

Status validate_affine(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  SLUICE_RETURN_IF_ERROR(check.same_shape<std::monostate>(2));
  SLUICE_RETURN_IF_ERROR(check.plain_f32(node.weights[0], check.output().shape.back()));
  return check.plain_f32(node.weights[1], check.output().shape.back());
}

std::uint64_t affine_flops(const Graph&, const Node&) noexcept { return 2; }

// ---- binary: numpy's broadcasting

Status validate_binary(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  if (check.attributes<BinaryAttributes>() == nullptr) return check.invalid("G2: a binary operator has its function");
  SLUICE_RETURN_IF_ERROR(check.operands(2, 0));
  SLUICE_RETURN_IF_ERROR(check.f32());
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
    .in_bands = true,
    .validate = validate_unary,
    .infer = infer_same,
    .relate_input = relate_same,
};

constexpr OperatorDefinition kBinary = {
    .kind = OpKind::kBinary,
    .attributes = kAlternative<BinaryAttributes>,
    .inputs = 2,
    .epilogue = {.activation = true},
    .in_place = InPlace::kAny,
    .elementwise = true,
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

}  // namespace sluice::operators
