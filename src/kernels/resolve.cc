#include "src/kernels/resolve.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

operators::PanelGeometry panel_geometry(const model::Graph& graph, const model::Node& node) noexcept {
  const model::Weight& weight = graph.weight(node.weights[0]);
  return {.layout = weight.panel_layout,
          .values = static_cast<std::int64_t>(model::values_of_lane(weight)),
          .outputs_per_group = model::outputs_per_group(node),
          .panel_bytes = weight.panel_bytes};
}

operators::WeightedParameters weighted_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  return {.panels = panel_geometry(graph, node),
          .epilogue = node.epilogue,
          .input_elements = graph.tensor(node.inputs[0]).shape.element_count(),
          .out_rows = out.rows,
          .out_pixels = out.pixels};
}

}  // namespace

operators::ConvolutionParameters convolution_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::ConvAttributes>();
  return {weighted_parameters(graph, node), a.window, a.groups, a.in_channels, a.out_channels};
}

operators::DenseParameters dense_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::DenseAttributes>();
  return {weighted_parameters(graph, node), a.in_features, a.out_features};
}

operators::RecurrentParameters recurrent_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::RecurrentAttributes>();
  return {.weighted = weighted_parameters(graph, node),
          .hidden = a.hidden,
          .batches = graph.tensor(node.outputs[0]).shape[1],
          .cell = a.cell,
          .reverse = a.reverse,
          .linear_before_reset = a.linear_before_reset,
          .input_forget = a.input_forget,
          .first_hidden = a.first_hidden,
          .first_cell = a.first_cell,
          .peepholes = a.peepholes,
          .functions = a.functions};
}

operators::UnaryParameters unary_parameters(const model::Graph&, const model::Node& node) noexcept { return {node.epilogue.activation}; }

operators::BinaryParameters binary_parameters(const model::Graph&, const model::Node& node) noexcept {
  return {node.as<model::BinaryAttributes>().function, node.epilogue.activation};
}

operators::AffineParameters affine_parameters(const model::Graph&, const model::Node& node) noexcept { return {node.epilogue.activation}; }

operators::PoolParameters pool_parameters(const model::Graph&, const model::Node& node) noexcept {
  const auto& a = node.as<model::PoolAttributes>();
  return {a.window, a.kind, a.count_include_pad, node.epilogue.activation};
}

operators::SoftmaxParameters softmax_parameters(const model::Graph&, const model::Node& node) noexcept {
  return {node.as<model::SoftmaxAttributes>().log};
}

operators::LrnParameters lrn_parameters(const model::Graph&, const model::Node& node) noexcept {
  const auto& a = node.as<model::LrnAttributes>();
  return {a.size, a.alpha, a.beta, a.bias};
}

operators::MatMulParameters matmul_parameters(const model::Graph&, const model::Node&) noexcept { return {}; }

operators::ConcatParameters concat_parameters(const model::Graph&, const model::Node& node) noexcept {
  return {node.as<model::AxisAttributes>().axis};
}

operators::SliceParameters slice_parameters(const model::Graph&, const model::Node& node) noexcept {
  const auto& a = node.as<model::SliceAttributes>();
  return {a.start, a.step};
}

operators::PadParameters pad_parameters(const model::Graph&, const model::Node& node) noexcept {
  const auto& a = node.as<model::PadAttributes>();
  return {a.mode, a.value, a.before};
}

operators::ResizeParameters resize_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::ResizeAttributes>();
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  return {
      a.mode, a.coordinates, a.rounding, a.cubic_a, a.scale, out.rank() < 3 ? 1 : out[out.rank() - 2], out.rank() == 0 ? 1 : out.back()};
}

operators::TransposeParameters transpose_parameters(const model::Graph&, const model::Node& node) noexcept {
  return {node.as<model::TransposeAttributes>().perm};
}

operators::ReshapeParameters reshape_parameters(const model::Graph&, const model::Node&) noexcept { return {}; }

operators::LayerNormParameters layer_norm_parameters(const model::Graph&, const model::Node& node) noexcept {
  return {node.as<model::LayerNormAttributes>().epsilon};
}

operators::AttentionParameters attention_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::AttentionAttributes>();
  const Shape &q = graph.tensor(node.inputs[0]).shape, &v = graph.tensor(node.inputs[2]).shape;
  return {.heads = a.heads,
          .depth = q.back() / a.heads,
          .width = v.back() / a.heads,
          .queries = q[q.rank() - 2],
          .keys = v[v.rank() - 2],
          .scale = a.scale,
          .causal = a.causal};
}

operators::EmbeddingParameters embedding_parameters(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& a = node.as<model::EmbeddingAttributes>();
  const model::Weight& table = graph.weight(node.weights[0]);
  operators::EmbeddingParameters parameters{.table_rows = a.table_rows, .features = a.features, .panels = panel_geometry(graph, node)};
  // All stretches of a weight but the last are alike (graph.h, G5).
  if (table.stretch_count > 0 && table.panel_bytes > Bytes()) {
    const Bytes first = graph.stretches_of(table).front().raw_size;
    parameters.panels_of_piece = std::max<std::int64_t>(1, static_cast<std::int64_t>(first.count() / table.panel_bytes.count()));
  }
  return parameters;
}

}  // namespace sluice::kernels
