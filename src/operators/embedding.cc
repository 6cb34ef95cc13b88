// Rows of a table, looked up.
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

Status validate_embedding(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<EmbeddingAttributes>();
  if (a == nullptr) return check.invalid("G2: an embedding has its attributes");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 1));
  if (check.input(0).dtype != DType::kI32 && check.input(0).dtype != DType::kI64) return check.invalid("G2: indices are i32 or i64");
  if (check.output().dtype != DType::kF32) return check.invalid("G2: an embedding's output is f32");
  if (a->table_rows < 1 || a->features < 1) return check.invalid("G2: a table has rows and features");
  SLUICE_RETURN_IF_ERROR(check.inferred("G2: the output is not a row for each index"));
  return check.panels(WeightLayout::kPanels, a->table_rows, a->table_rows, 1, a->features);
}

std::optional<Shape> infer_embedding(const Graph& graph, const Node& node) noexcept {
  const Shape& indices = shape_of_input(graph, node);
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  if (indices.rank() == Shape::kMaxRank) return std::nullopt;
  for (int axis = 0; axis < indices.rank(); ++axis) dims[static_cast<std::size_t>(axis)] = indices[axis];
  dims[static_cast<std::size_t>(indices.rank())] = node.as<EmbeddingAttributes>().features;
  return Shape::make(std::span(dims).first(static_cast<std::size_t>(indices.rank()) + 1));
}

/// Lanes are rows of the table: which of them is read depends on the indices.
AxisRelations relate_table(const Graph& graph, const Node& node, std::size_t) noexcept {
  AxisRelations axes(kPanelAxes);
  axes[kLanes] = any();
  axes[kTaps] = reduced();
  axes[kDepth] = same(shape_of_output(graph, node).rank() - 1);
  return axes;
}

/// Channels are rows of the table here: each index copies one row, and slices share the indices.
CostFeatures cost(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  CostFeatures cost;
  cost.output_bytes = share_of(graph.tensor(node.outputs[0]).bytes().count(), extent.channels.size(), step_channels(graph, node));
  cost.weight_bytes = cost.output_bytes;
  for (TensorId input : node.inputs) cost.input_bytes += graph.tensor(input).bytes().count();
  return cost;
}

}  // namespace

constexpr OperatorDefinition kEmbedding = {
    .kind = OpKind::kEmbedding,
    .attributes = kAlternative<EmbeddingAttributes>,
    .quantised_panels = true,
    .validate = validate_embedding,
    .infer = infer_embedding,
    .relate_input = relate_same,
    .relate_weight = relate_table,
    .cost = cost,
};

}  // namespace sluice::operators
