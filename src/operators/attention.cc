// Attention of heads, the scores not stored (AttentionAttributes).
#include <cmath>

#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

Status validate(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<AttentionAttributes>();
  if (a == nullptr) return check.invalid("G2: an attention has its attributes");
  SLUICE_RETURN_IF_ERROR(check.operands(3, 0));
  SLUICE_RETURN_IF_ERROR(check.f32());
  const Shape &q = check.input(0).shape, &k = check.input(1).shape, &v = check.input(2).shape, &out = check.output().shape;
  const int rank = out.rank();
  if (rank < 2 || rank > 3 || q.rank() != rank || k.rank() != rank || v.rank() != rank) {
    return check.invalid("G2: an attention is of tensors [batch, rows, channels] or [rows, channels]");
  }
  if (rank == 3 && (q[0] != out[0] || k[0] != out[0] || v[0] != out[0])) return check.invalid("G2: batches differ");
  SLUICE_RETURN_IF_ERROR(check.inferred("G2: queries, keys, values and output do not fit each other"));
  if (a->heads < 1 || q.back() % a->heads != 0 || v.back() % a->heads != 0) return check.invalid("G2: heads do not divide the channels");
  if (!std::isfinite(a->scale)) return check.invalid("G2: a number is not finite");
  if (a->causal && q[rank - 2] > k[rank - 2]) return check.invalid("G2: a causal attention has more queries than keys");
  return {};
}

std::optional<Shape> infer(const Graph& graph, const Node& node) noexcept {
  const Shape &q = shape_of_input(graph, node, 0), &k = shape_of_input(graph, node, 1), &v = shape_of_input(graph, node, 2);
  const int rank = q.rank();
  if (rank < 2 || k.rank() != rank || v.rank() != rank || k[rank - 2] != v[rank - 2] || q.back() != k.back()) return std::nullopt;
  Shape out = q;
  out[rank - 1] = v.back();
  return out;
}

/// In causal attention row s sees keys up to T - S + s: a window as long as the keys that ends there.
AxisRelation relate_keys(const AttentionAttributes& a, int axis, std::int64_t queries, std::int64_t keys) noexcept {
  if (!a.causal) return reduced();
  return {.kind = AxisKind::kWindow, .output_axis = static_cast<std::int8_t>(axis), .kernel = keys, .pad_before = queries - 1};
}

AxisRelations relate_attention(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const auto& a = node.as<AttentionAttributes>();
  const Shape &in = shape_of_input(graph, node, input), &out = shape_of_output(graph, node);
  AxisRelations axes = relate_same(graph, node, input);
  const int rows = in.rank() - 2, channels = in.rank() - 1;
  if (input > 0) axes[rows] = relate_keys(a, rows, out[rows], in[rows]);
  if (input < 2 && a.heads > 1) axes[channels] = blocks(channels, out.back() / a.heads, in.back() / a.heads);
  if (input < 2 && a.heads == 1) axes[channels] = reduced();
  return axes;
}

/// A dot product and a weighted sum over the keys, and for each head an exponential a key, shared among the head's outputs.
std::uint64_t flops(const Graph& graph, const Node& node) noexcept {
  const Shape &q = shape_of_input(graph, node, 0), &v = shape_of_input(graph, node, 2);
  const std::int64_t keys = v[v.rank() - 2], exponentials = 20 * node.as<AttentionAttributes>().heads / v.back();
  return static_cast<std::uint64_t>(keys * (2 + 2 * q.back() / v.back() + exponentials));
}

/// A causal row counts the keys that rows see in the mean: which rows a band has is not asked by what remembers its price.
CostFeatures cost_of_rows(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  CostFeatures cost = usual_cost_of(graph, node, extent);
  const Shape &q = shape_of_input(graph, node, 0), &k = shape_of_input(graph, node, 1);
  const auto queries = static_cast<double>(q[q.rank() - 2]), keys = static_cast<double>(k[k.rank() - 2]);
  if (!node.as<AttentionAttributes>().causal || queries < 1 || keys < queries) return cost;
  const double seen = (keys - queries + (queries + 1) / 2) / keys;
  if (seen < 1) cost.flops = static_cast<std::uint64_t>(static_cast<double>(cost.flops) * seen);
  return cost;
}

std::uint64_t macs(const Graph& graph, const Node& node) noexcept {
  const Shape &q = shape_of_input(graph, node, 0), &k = shape_of_input(graph, node, 1);
  const auto outputs = static_cast<std::uint64_t>(shape_of_output(graph, node).element_count());
  return (outputs + static_cast<std::uint64_t>(q.element_count())) * static_cast<std::uint64_t>(k[k.rank() - 2]);
}

}  // namespace

constexpr OperatorDefinition kAttention = {
    .kind = OpKind::kAttention,
    .attributes = kAlternative<AttentionAttributes>,
    .inputs = 3,
    .validate = validate,
    .infer = infer,
    .relate_input = relate_attention,
    .flops_per_output = flops,
    .macs = macs,
    .cost = cost_of_rows,
};

}  // namespace sluice::operators
