// Dense layers and convolutions over quantised panels: the panels become floats in the workspace, and the reference of floats does the
// rest.
#include "src/kernels/reference/quantised.h"

#include <array>

#include "src/kernels/reference/kernels.h"

namespace sluice::kernels::reference {
namespace {

/// Without its name, which would be allocated.
model::Weight as_floats(const model::Weight& weight) noexcept {
  model::Weight floats{.panel_layout = {.layout = model::WeightLayout::kPanels, .dtype = DType::kF32},
                       .shape = weight.shape,
                       .panels = weight.panels,
                       .offset = weight.offset,
                       .bytes = weight.bytes};
  floats.panel_bytes = *model::panel_bytes_of(floats.panel_layout, model::values_of_lane(weight));
  return floats;
}

void run_as_floats(const KernelCall& call, void (*run)(const KernelCall&) noexcept) noexcept {
  const WeightOperand& given = call.weights[0];
  const model::Weight floats = as_floats(*given.weight);
  auto* values = reinterpret_cast<float*>(call.workspace);
  decode_panels(given, values);
  std::array<WeightOperand, 2> weights{WeightOperand{call.workspace, given.panels, &floats}, WeightOperand{}};
  if (call.weights.size() > 1) weights[1] = call.weights[1];
  KernelCall as_float = call;
  as_float.weights = std::span(weights).first(call.weights.size());
  run(as_float);
}

}  // namespace

float quantised_value(const model::PanelLayout& layout, const std::byte* panel, std::int64_t i, std::int64_t lane) noexcept {
  const std::int64_t group = layout.k_group, within = group == 0 ? i : i % group;
  const std::byte* const head = panel + (group == 0 ? 0 : i / group * model::quantised_group_bytes(layout));
  const std::byte* const zeros = head + model::kPanelLanes * static_cast<std::int64_t>(sizeof(float));
  const auto byte_of = [&](std::byte byte, int shift, unsigned mask) {
    return layout.dtype == DType::kI8 ? static_cast<float>(std::to_integer<std::int8_t>(byte))
                                      : static_cast<float>(std::to_integer<unsigned>(byte) >> shift & mask);
  };
  const int bits = model::bits_of(layout);
  const std::byte stored = head[model::quantised_head_bytes(layout) + within / layout.k_block * model::kPanelLanes + lane];
  const float q = byte_of(stored, static_cast<int>(within % layout.k_block) * bits, (1u << bits) - 1u);
  const float zero = group == 0 ? reinterpret_cast<const float*>(zeros)[lane] : byte_of(zeros[lane], 0, 255u);
  return (q - zero) * reinterpret_cast<const float*>(head)[lane];
}

void decode_panels(const WeightOperand& operand, float* values) noexcept {
  const model::Weight& weight = *operand.weight;
  const auto count = static_cast<std::int64_t>(model::values_of_lane(weight));
  for (std::int64_t p = 0; p < operand.panels.size(); ++p) {
    const std::byte* panel = operand.data + p * static_cast<std::int64_t>(weight.panel_bytes.count());
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t lane = 0; lane < model::kPanelLanes; ++lane) *values++ = quantised_value(weight.panel_layout, panel, i, lane);
  }
}

bool quantised_fits(const model::Graph& graph, const model::Node& node) noexcept {
  if (node.weights.empty() || !model::is_quantised(graph.weight(node.weights[0]).panel_layout)) return false;
  for (TensorId id : node.inputs)
    if (graph.tensor(id).dtype != DType::kF32) return false;
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  return graph.tensor(node.outputs[0]).dtype == DType::kF32 && (conv == nullptr || !conv->depthwise());
}

Bytes quantised_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const PanelRange panels = model::panels_of_channels(extent.channels, model::outputs_per_group(node));
  return as_floats(graph.weight(node.weights[0])).panel_bytes * static_cast<std::uint64_t>(panels.size());
}

void quantised_dense(const KernelCall& call) noexcept { run_as_floats(call, dense); }
void quantised_conv(const KernelCall& call) noexcept { run_as_floats(call, conv); }
void quantised_conv_transpose(const KernelCall& call) noexcept { run_as_floats(call, conv_transpose); }

}  // namespace sluice::kernels::reference
