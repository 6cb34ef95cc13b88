// Dense layers and products of two activations.
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

// ---- dense: [..., K] x panels -> [..., N]

Status validate_dense(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<DenseAttributes>();
  if (a == nullptr) return check.invalid("G2: a dense layer has its attributes");
  SLUICE_RETURN_IF_ERROR(check.products());
  const Shape &in = check.input(0).shape, &out = check.output().shape;
  if (in.rank() == 0 || in.rank() != out.rank() || in.back() != a->in_features || out.back() != a->out_features) {
    return check.invalid("G2: the last axes are not the features in and out");
  }
  SLUICE_RETURN_IF_ERROR(check.inferred("G2: a dense layer changes the last axis only"));
  SLUICE_RETURN_IF_ERROR(check.residual());
  const bool sparse = graph.weight(node.weights[0]).panel_layout.layout == WeightLayout::kSparse;
  return check.panels(sparse ? WeightLayout::kSparse : WeightLayout::kPanels, a->out_features, a->out_features, 1, a->in_features);
}

std::optional<Shape> infer_dense(const Graph& graph, const Node& node) noexcept {
  Shape out = shape_of_input(graph, node);
  if (out.rank() == 0) return std::nullopt;
  out[out.rank() - 1] = node.as<DenseAttributes>().out_features;
  return out;
}

Reduction dense_reduction(const Graph& graph, const Node& node) noexcept {
  if (!adds_in_one_chain(graph, node)) return {};
  return {.input_axis = shape_of_input(graph, node).rank() - 1, .extent = node.as<DenseAttributes>().in_features};
}

std::uint64_t dense_flops(const Graph&, const Node& node) noexcept {
  return static_cast<std::uint64_t>(2 * node.as<DenseAttributes>().in_features);
}
std::uint64_t dense_macs(const Graph& graph, const Node& node) noexcept {
  return macs_of_outputs(graph, node, node.as<DenseAttributes>().in_features);
}

// ---- matmul: [..., M, K] x [..., K, N] -> [..., M, N], leading axes broadcast

/// For 8-bit operands: u8 with a scale each, or with zero points and perhaps a scale that are inputs.
Status check_integer_matmul(const NodeCheck& check) {
  const std::size_t count = check.node().inputs.size();
  const DType out = check.output().dtype;
  SLUICE_RETURN_IF_ERROR(check.operands(count == 4 || count == 5 ? count : 2, 0));
  if (count == 2) return check.integers(out != DType::kF32);
  for (std::size_t i = 0; i < 4; ++i)
    if (check.input(i).dtype != DType::kU8 || (i > 1 && check.input(i).shape.element_count() != 1))
      return check.invalid("G2: matrices of bytes and their zero points are u8, and a zero point is one value");
  if (out != (count == 5 ? DType::kF32 : DType::kI32)) return check.invalid("G2: products of bytes are i32, or f32 with a scale");
  if (count == 4) return {};
  const std::int64_t scales = check.input(4).shape.element_count();
  if (check.input(4).dtype == DType::kF32 && (scales == 1 || scales == check.output().shape.back())) return {};
  return check.invalid("G2: a scale of the run time is one f32, or one for each column");
}

Status validate_matmul(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  if (check.attributes<std::monostate>() == nullptr) return check.invalid("G2: a matrix product has no attributes");
  SLUICE_RETURN_IF_ERROR(check.integer() ? check_integer_matmul(check) : check.operands(2, 0));
  if (!check.integer()) SLUICE_RETURN_IF_ERROR(check.f32());
  const Shape &a = check.input(0).shape, &b = check.input(1).shape;
  if (a.rank() < 2 || b.rank() < 2) return check.invalid("G2: a matrix product is of matrices");
  SLUICE_RETURN_IF_ERROR(check_broadcast(check, 2));
  return check.inferred("G2: the matrices do not fit each other and the output");
}

std::optional<Shape> infer_matmul(const Graph& graph, const Node& node) noexcept {
  const Shape &a = shape_of_input(graph, node, 0), &b = shape_of_input(graph, node, 1);
  if (a.rank() < 2 || b.rank() < 2 || a.back() != extent_from_last(b, 1)) return std::nullopt;
  std::optional<Shape> out = broadcast_shape(a, b, 2);
  if (!out) return std::nullopt;
  (*out)[out->rank() - 2] = extent_from_last(a, 1);
  (*out)[out->rank() - 1] = b.back();
  return out;
}

AxisRelations relate_matmul(const Graph& graph, const Node& node, std::size_t input) noexcept {
  if (input > 1) return relate_along_last(graph, node, input);  // zero points and a scale
  const Shape &in = shape_of_input(graph, node, input), &out = shape_of_output(graph, node);
  AxisRelations axes(in.rank());
  for (int axis = 0; axis < in.rank() - 2; ++axis) axes[axis] = relate_broadcast(in, out, axis);
  axes[in.rank() - 2] = input == 0 ? same(out.rank() - 2) : reduced();
  axes[in.rank() - 1] = input == 0 ? reduced() : same(out.rank() - 1);
  return axes;
}

Reduction matmul_reduction(const Graph& graph, const Node& node) noexcept {
  if (node.numeric == NumericClass::kInt8) return {};
  const Shape &a = shape_of_input(graph, node, 0), &b = shape_of_input(graph, node, 1);
  return {.input_axis = a.rank() - 1, .second_axis = b.rank() - 2, .extent = a.back()};
}

std::uint64_t matmul_flops(const Graph& graph, const Node& node) noexcept {
  return static_cast<std::uint64_t>(2 * shape_of_input(graph, node).back());
}
std::uint64_t matmul_macs(const Graph& graph, const Node& node) noexcept {
  return macs_of_outputs(graph, node, shape_of_input(graph, node).back());
}

}  // namespace

constexpr OperatorDefinition kDense = {
    .kind = OpKind::kDense,
    .attributes = kAlternative<DenseAttributes>,
    .epilogue = {.bias = true, .residual = true, .activation = true},
    .quantised_panels = true,
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_dense,
    .infer = infer_dense,
    .relate_input = relate_along_last,
    .relate_weight = relate_panels,
    .reduction = dense_reduction,
    .flops_per_output = dense_flops,
    .macs = dense_macs,
};

constexpr OperatorDefinition kMatMul = {
    .kind = OpKind::kMatMul,
    .attributes = kAlternative<std::monostate>,
    .inputs = 2,
    .integers = Integers::kSome,
    .validate = validate_matmul,
    .infer = infer_matmul,
    .relate_input = relate_matmul,
    .reduction = matmul_reduction,
    .flops_per_output = matmul_flops,
    .macs = matmul_macs,
};

}  // namespace sluice::operators
