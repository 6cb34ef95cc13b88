#include "src/emit/model_layers.h"

#include <algorithm>
#include <variant>

namespace sluice::emit {
namespace {

template <class Id>
void shift(Id& id, std::size_t by) {
  if (id.valid()) id = Id(id.index() + by);
}

template <class Id>
void shift(std::vector<Id>& ids, std::size_t by) {
  for (Id& id : ids) shift(id, by);
}

/// A tensor of fewer channels.
TensorId narrowed(model::Graph& graph, TensorId id, std::int64_t channels) {
  model::Tensor tensor = graph.tensor(id);
  tensor.shape[tensor.shape.rank() - 1] = channels;
  graph.tensors.push_back(std::move(tensor));
  return TensorId(graph.tensors.size() - 1);
}

}  // namespace

model::Graph side_by_side(const model::Graph& first, const model::Graph& second) {
  model::Graph both;
  both.tensors = first.tensors, both.weights = first.weights, both.nodes = first.nodes, both.quantisations = first.quantisations;
  const std::size_t tensors = both.tensors.size(), weights = both.weights.size(), quantisations = both.quantisations.size();
  for (model::Tensor tensor : second.tensors) {
    shift(tensor.weight, weights);
    if (tensor.quantisation != model::kNoQuantisation) tensor.quantisation += static_cast<std::uint32_t>(quantisations);
    both.tensors.push_back(std::move(tensor));
  }
  for (model::Quantisation quantisation : second.quantisations) {
    shift(quantisation.scale_weight, weights);
    shift(quantisation.zero_weight, weights);
    both.quantisations.push_back(std::move(quantisation));
  }
  both.weights.insert(both.weights.end(), second.weights.begin(), second.weights.end());
  for (model::Node node : second.nodes) {
    shift(node.inputs, tensors);
    shift(node.outputs, tensors);
    shift(node.weights, weights);
    if (node.quantisation != model::kNoQuantisation) node.quantisation += static_cast<std::uint32_t>(quantisations);
    both.nodes.push_back(std::move(node));
  }
  return both;
}

std::optional<NodeId> with_few_weights(model::Graph& graph, NodeId id, std::int64_t most_values) {
  model::Node node = graph.node(id);
  if (node.weights.empty() || graph.weight(node.weights[0]).shape.element_count() <= most_values) return id;
  const bool dense = node.op == model::OpKind::kDense;
  if (!dense && (node.op != model::OpKind::kConv || node.as<model::ConvAttributes>().depthwise())) return std::nullopt;
  model::Weight weight = graph.weight(node.weights[0]);
  const std::int64_t groups = dense ? 1 : node.as<model::ConvAttributes>().groups;
  // Whole panels where there is one: the engine's work is counted in them. Else pairs, since emitted kernels sum two outputs at a time.
  const std::int64_t most = most_values / (weight.shape.element_count() / weight.shape[0]);
  constexpr std::int64_t kPair = 2;
  const std::int64_t unit = groups != 1 ? groups : most >= kPanelLanes ? kPanelLanes : std::min(most, kPair);
  const std::int64_t outputs = unit == 0 ? 0 : most / unit * unit;
  if (outputs == 0) return std::nullopt;
  (dense ? std::get<model::DenseAttributes>(node.attributes).out_features : std::get<model::ConvAttributes>(node.attributes).out_channels) =
      outputs;
  weight.shape[0] = outputs;
  weight.panels = model::panel_count(outputs, model::outputs_per_group(node));
  weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(weight.panels);
  graph.weights.push_back(std::move(weight));
  node.weights[0] = WeightId(graph.weights.size() - 1);
  node.outputs[0] = narrowed(graph, node.outputs[0], outputs);
  if (node.epilogue.has_residual) node.inputs.back() = narrowed(graph, node.inputs.back(), outputs);
  graph.nodes.push_back(std::move(node));
  return NodeId(graph.nodes.size() - 1);
}

}  // namespace sluice::emit
