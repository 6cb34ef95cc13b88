#include "sluice/operators/cost.h"

#include <algorithm>

namespace sluice::operators {
namespace {

/// Floating-point operations for one output element, a multiply-add counted as two. Activations that need an exponential count as 16.
std::uint64_t flops_per_output(const model::Graph& graph, const model::Node& node) noexcept {
  using model::Function;
  std::uint64_t flops = 0;
  const Function f = node.epilogue.activation.function;
  if (f != Function::kNone) flops += f <= Function::kLeakyRelu || f == Function::kNeg || f == Function::kAbs ? 1 : 16;
  flops += (node.epilogue.has_bias ? 1 : 0) + (node.epilogue.has_residual ? 1 : 0);
  switch (node.op) {
    case model::OpKind::kConv:
    case model::OpKind::kConvTranspose: {
      const auto& a = node.as<model::ConvAttributes>();
      const std::int64_t strides = node.op == model::OpKind::kConv ? 1 : a.window.stride_h * a.window.stride_w;
      return flops + static_cast<std::uint64_t>(2 * a.window.taps() * (a.in_channels / std::max<std::int64_t>(1, a.groups)) / strides);
    }
    case model::OpKind::kDense:
      return flops + static_cast<std::uint64_t>(2 * node.as<model::DenseAttributes>().in_features);
    case model::OpKind::kMatMul:
      return flops + static_cast<std::uint64_t>(2 * graph.tensor(node.inputs[0]).shape.back());
    case model::OpKind::kAttention: {
      // A dot product and a weighted sum over the keys, and for each head an exponential a key, shared among the head's outputs.
      const Shape &q = graph.tensor(node.inputs[0]).shape, &v = graph.tensor(node.inputs[2]).shape;
      const std::int64_t keys = v[v.rank() - 2], exponentials = 20 * node.as<model::AttentionAttributes>().heads / v.back();
      return flops + static_cast<std::uint64_t>(keys * (2 + 2 * q.back() / v.back() + exponentials));
    }
    case model::OpKind::kLayerNorm:
      return flops + 8;
    case model::OpKind::kPool:
      return flops + static_cast<std::uint64_t>(node.as<model::PoolAttributes>().window.taps());
    case model::OpKind::kBinary:
      return flops + 1;
    case model::OpKind::kAffine:
      return flops + 2;
    case model::OpKind::kSoftmax:
      return flops + 20;
    case model::OpKind::kLrn:
      return flops + 40;
    case model::OpKind::kResize:
      return flops + (node.as<model::ResizeAttributes>().mode == model::ResizeMode::kNearest ? 0 : 8);
    default:
      return flops;
  }
}

std::uint64_t share(std::uint64_t whole, std::int64_t part, std::int64_t all) noexcept {
  if (all <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(whole) * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

CostFeatures cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  const RowExtents whole = row_extents(out.shape);
  const auto pixels = static_cast<std::uint64_t>(extent.rows.size() * whole.pixels);
  const std::uint64_t elements = pixels * static_cast<std::uint64_t>(extent.channels.size());
  CostFeatures cost;
  if (node.op == model::OpKind::kEmbedding) {
    // Channels are rows of the table here: a lookup copies the one it asks for, and slices share the lookups.
    cost.output_bytes = share(out.bytes().count(), extent.channels.size(), model::step_channels(graph, node));
    cost.weight_bytes = cost.output_bytes;
    for (TensorId input : node.inputs) cost.input_bytes += graph.tensor(input).bytes().count();
    return cost;
  }
  cost.flops = elements * flops_per_output(graph, node);
  cost.output_bytes = elements * size_of(out.dtype);
  for (TensorId input : node.inputs) cost.input_bytes += share(graph.tensor(input).bytes().count(), extent.rows.size(), whole.rows);
  for (WeightId weight : node.weights)
    cost.weight_bytes += share(graph.weight(weight).bytes.count(), extent.channels.size(), whole.channels);
  return cost;
}

}  // namespace sluice::operators
