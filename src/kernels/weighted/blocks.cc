#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {
Blocks::Blocks(const model::Weight& weight, ChannelRange channels, std::int64_t outputs, std::int64_t outputs_per_group,
               std::int64_t block_bytes, std::int64_t granule) noexcept
    : channels_(channels),
      panels_(model::panels_of_channels(channels, outputs_per_group)),
      outputs_(outputs),
      per_group_(outputs_per_group),
      granule_(granule),
      granules_(ceil_div(panels_.size(), granule)),
      count_(1) {
  if (per_group_ < outputs_ && per_group_ >= model::kPanelLanes) {
    count_ = (channels.end - 1) / per_group_ - channels.begin / per_group_ + 1;
  } else {
    const auto granule_bytes = static_cast<std::int64_t>(weight.panel_bytes.count()) * granule;
    set_count(ceil_div(granules_, std::max<std::int64_t>(1, block_bytes / granule_bytes)));
  }
}

void Blocks::set_count(std::int64_t count) noexcept {
  if (per_group_ < outputs_ && per_group_ >= model::kPanelLanes) return;
  count_ = std::clamp<std::int64_t>(count, 1, granules_);
}

Block Blocks::operator[](std::int64_t i) const noexcept {
  PanelRange p;
  if (per_group_ < outputs_ && per_group_ >= model::kPanelLanes) {
    const std::int64_t group = channels_.begin / per_group_ + i;
    const ChannelRange c{std::max(channels_.begin, group * per_group_), std::min(channels_.end, (group + 1) * per_group_)};
    p = model::panels_of_channels(c, per_group_);
  } else {
    const auto part = even_part({0, granules_}, i, count_);
    p = {panels_.begin + part.begin * granule_, std::min(panels_.end, panels_.begin + part.end * granule_)};
  }
  const ChannelRange c = model::channels_of_panels(p, per_group_, outputs_);
  return {p.begin, p.size(), c.begin / per_group_, c.begin, static_cast<int>(c.size() - (p.size() - 1) * model::kPanelLanes)};
}

TileJob make_job(const KernelCall& call, const Block& block) noexcept {
  const WeightOperand& weight = call.weights[0];
  const auto panel_bytes = static_cast<std::int64_t>(weight.weight->panel_bytes.count());
  TileJob job;
  job.panels = reinterpret_cast<const float*>(weight.data + (block.first_panel - weight.panels.begin) * panel_bytes);
  job.panel_floats = panel_bytes / static_cast<std::int64_t>(sizeof(float));
  job.panel_count = static_cast<int>(block.panels);
  job.last_lanes = block.last_lanes;
  if (call.node->epilogue.has_bias) job.bias = reinterpret_cast<const float*>(call.weights[1].data) + block.channel;
  job.has_residual = call.node->epilogue.has_residual;
  job.activation = call.node->epilogue.activation;
  job.outputs_are_far = is_far(call.outputs[0].view);
  job.k_group = weight.weight->panel_layout.k_group;
  return job;
}

bool shares_pixels(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const CostFeatures cost = weighted_cost(graph, node, extent);
  return cost.weight_bytes <= 4 * (cost.input_bytes + cost.output_bytes);
}

bool tensors_fit(const model::Graph& graph, const model::Node& node) noexcept {
  const auto fits = [&](TensorId id) { return graph.tensor(id).dtype == DType::kF32; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) && std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

bool tensors_and_weights_fit(const model::Graph& graph, const model::Node& node, model::WeightLayout layout) noexcept {
  if (node.weights.empty() || !tensors_fit(graph, node)) return false;
  const model::PanelLayout& panel = graph.weight(node.weights[0]).panel_layout;
  return panel.layout == layout && panel.dtype == DType::kF32 && panel.lanes == model::kPanelLanes && panel.k_block == 1;
}

std::uint32_t residual_input(const model::Graph&, const model::Node& node) noexcept {
  return node.epilogue.has_residual ? 1u << (node.inputs.size() - 1) : 0u;
}

CostFeatures weighted_cost(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const RowExtents in = row_extents(graph.tensor(node.inputs[0]).shape);
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  const model::Weight& weight = graph.weight(node.weights[0]);
  const PanelRange panels = weight.panel_layout.layout == model::WeightLayout::kDepthwise
                                ? PanelRange{extent.channels.begin / model::kPanelLanes, ceil_div(extent.channels.end, model::kPanelLanes)}
                                : model::panels_of_channels(extent.channels, model::outputs_per_group(node));
  const std::uint64_t outputs = unsigned_of(extent.rows.size() * out.pixels * extent.channels.size());
  CostFeatures cost;
  // A panel holds 16 lanes of so many values: as many products an output.
  const bool floats = !model::is_quantised(weight.panel_layout);
  cost.flops = outputs * (floats ? weight.panel_bytes.count() / (model::kPanelLanes * sizeof(float)) : model::values_of_lane(weight)) * 2;
  cost.weight_bytes = unsigned_of(panels.size()) * weight.panel_bytes.count();
  cost.output_bytes = outputs * sizeof(float);
  const std::uint64_t whole_input = unsigned_of(in.rows * in.pixels * in.channels) * sizeof(float);
  cost.input_bytes = out.rows == 0 ? 0 : whole_input * unsigned_of(extent.rows.size()) / unsigned_of(out.rows);
  if (node.epilogue.has_residual) cost.input_bytes += cost.output_bytes;
  return cost;
}

}  // namespace sluice::kernels::weighted
