#include "sluice/model/graph.h"

#include <set>

#include "src/model/built_features.h"

namespace sluice::model {

namespace {

/// What the nodes of a node's subgraphs read, as far as it has not been `seen`.
void weights_of_subgraphs(const Graph& graph, const Node& node, std::set<WeightId>& seen, std::vector<WeightId>& out) {
  const auto add = [&](WeightId weight) {
    if (weight.valid() && seen.insert(weight).second) out.push_back(weight);
  };
  for (std::uint32_t i = 0; i < node.subgraph_count; ++i) {
    const Subgraph& subgraph = graph.subgraphs[node.first_subgraph + i];
    for (const Node& inner : subgraph.nodes) {
      for (const WeightId weight : inner.weights) add(weight);
      for (const TensorId id : inner.inputs) add(subgraph.tensors[id.index()].weight);
      weights_of_subgraphs(graph, inner, seen, out);
    }
  }
}

}  // namespace

std::size_t count_own_weights(const Graph& graph, const Node& node) {
  if (!kRunsSubgraphs || node.subgraph_count == 0) return node.weights.size();
  std::vector<WeightId> weights = node.weights;
  std::set<WeightId> seen(weights.begin(), weights.end());
  weights_of_subgraphs(graph, node, seen, weights);
  return weights.size();
}

void weights_read_by(const Graph& graph, const Node& node, std::vector<WeightId>& out) {
  out.insert(out.end(), node.weights.begin(), node.weights.end());
  if (kRunsSubgraphs && node.subgraph_count > 0) {
    std::set<WeightId> seen(node.weights.begin(), node.weights.end());
    weights_of_subgraphs(graph, node, seen, out);
  }
  for (const TensorId id : node.inputs) {
    const WeightId weight = graph.tensor(id).weight;
    if (weight.valid()) out.push_back(weight);
  }
}

Bytes least_piece(const Graph& graph, const Weight& weight) noexcept {
  const Bytes raw = weight.panel_layout.layout == WeightLayout::kPlain ? weight.bytes : Bytes(graph.stretches_of(weight).front().raw_size);
  // Stored bytes that expand lie at the end of the region, after the values that they become, with a block more for their own rounding.
  return weight.code == kNoCode ? piece_region(raw) : piece_region(raw) + Bytes(4096);
}

std::int64_t outputs_per_group(const Node& node) noexcept {
  if (const auto* conv = std::get_if<ConvAttributes>(&node.attributes)) {
    // A depthwise panel is 16 neighbouring channels, as if there were one group.
    return conv->depthwise() ? conv->out_channels : conv->out_channels / conv->groups;
  }
  if (const auto* dense = std::get_if<DenseAttributes>(&node.attributes)) return dense->out_features;
  if (const auto* table = std::get_if<EmbeddingAttributes>(&node.attributes)) return table->table_rows;
  if (const auto* recurrent = std::get_if<RecurrentAttributes>(&node.attributes)) return recurrent->gates() * recurrent->hidden;
  SLUICE_CHECK(false, "the node has no panels");
  return 1;
}

std::int64_t rows_of_turn(const Graph& graph, const Node& node) noexcept {
  return node.op == OpKind::kRecurrent ? graph.tensor(node.outputs[0]).shape[1] : 0;
}

std::int64_t reduction_of(const Graph& graph, const Node& node) noexcept {
  if (node.numeric != NumericClass::kExact || node.weights.empty()) return 0;
  const PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  if (layout != PanelLayout{.layout = WeightLayout::kPanels} && layout != PanelLayout{.layout = WeightLayout::kSparse}) return 0;
  if (node.op == OpKind::kDense) return node.as<DenseAttributes>().in_features;
  if (node.op != OpKind::kConv) return 0;
  const auto& conv = node.as<ConvAttributes>();
  return conv.groups == 1 && conv.window.kernel_h == 1 && conv.window.kernel_w == 1 ? conv.in_channels : 0;
}

std::int64_t step_channels(const Graph& graph, const Node& node) noexcept {
  if (const auto* table = std::get_if<EmbeddingAttributes>(&node.attributes)) return table->table_rows;
  return row_extents(graph.tensor(node.outputs[0]).shape).channels;
}

}  // namespace sluice::model
