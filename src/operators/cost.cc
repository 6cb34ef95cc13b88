#include "sluice/operators/cost.h"

#include "sluice/operators/definition.h"

namespace sluice::operators {
namespace {

/// Activations that need an exponential count as 16.
std::uint64_t epilogue_flops(const model::Epilogue& epilogue) noexcept {
  using model::Function;
  const Function f = epilogue.activation.function;
  const std::uint64_t parts = (epilogue.has_bias ? 1 : 0) + (epilogue.has_residual ? 1 : 0);
  if (f == Function::kNone) return parts;
  return parts + (f <= Function::kLeakyRelu || f == Function::kNeg || f == Function::kAbs ? 1 : 16);
}

}  // namespace

std::uint64_t share_of(std::uint64_t whole, std::int64_t part, std::int64_t all) noexcept {
  if (all <= 0) return 0;
  if (part == all) return whole;
  return static_cast<std::uint64_t>(static_cast<double>(whole) * static_cast<double>(part) / static_cast<double>(all));
}

CostFeatures cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const OperatorDefinition& definition = definition_of(node.op);
  return definition.cost != nullptr ? definition.cost(graph, node, extent) : usual_cost_of(graph, node, extent);
}

CostFeatures usual_cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const OperatorDefinition& definition = definition_of(node.op);
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  const RowExtents whole = row_extents(out.shape);
  const auto pixels = static_cast<std::uint64_t>(extent.rows.size() * whole.pixels);
  const std::uint64_t elements = pixels * static_cast<std::uint64_t>(extent.channels.size());
  const std::uint64_t flops = definition.flops_per_output == nullptr ? 0 : definition.flops_per_output(graph, node);
  CostFeatures cost;
  cost.flops = elements * (flops + epilogue_flops(node.epilogue));
  cost.output_bytes = elements * size_of(out.dtype);
  for (TensorId input : node.inputs) cost.input_bytes += share_of(graph.tensor(input).bytes().count(), extent.rows.size(), whole.rows);
  for (WeightId weight : node.weights)
    cost.weight_bytes += share_of(graph.weight(weight).bytes.count(), extent.channels.size(), whole.channels);
  return cost;
}

}  // namespace sluice::operators
