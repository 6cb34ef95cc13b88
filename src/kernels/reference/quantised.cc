// Dense layers, convolutions and recurrent nodes over narrow panels: the panels become floats in the workspace, and the reference of floats does
// the rest.
#include "src/kernels/reference/quantised.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sluice/core/check.h"
#include "sluice/core/half.h"
#include "src/kernels/reference/kernels.h"

namespace sluice::kernels::reference {
namespace {

Bytes panel_bytes_as_floats(const operators::PanelGeometry& geometry) noexcept {
  return Bytes(static_cast<std::uint64_t>(geometry.values * kPanelLanes) * sizeof(float));
}

void run_as_floats(const KernelCall& call, KernelEntry run) noexcept {
  const operators::PanelGeometry& geometry = call.parameters<operators::WeightedParameters>().panels;
  const WeightOperand& given = call.weights[0];
  decode_panels(geometry, given, reinterpret_cast<float*>(call.workspace));
  std::array<WeightOperand, 3> weights;  // a recurrent node has peepholes behind its bias
  SLUICE_DCHECK(call.weights.size() <= weights.size(), "no operator with panels has more weights");
  std::copy(call.weights.begin(), call.weights.end(), weights.begin());
  weights[0] = {call.workspace, given.panels, panel_bytes_as_floats(geometry)};
  KernelCall as_float = call;
  as_float.weights = std::span(weights).first(call.weights.size());
  run(as_float);
}

}  // namespace

float narrow_value(const PanelLayout& layout, const std::byte* panel, std::int64_t i, std::int64_t lane) noexcept {
  if (layout.scale == PanelScale::kNone) {
    std::uint16_t half;
    std::memcpy(&half, panel + (i * kPanelLanes + lane) * static_cast<std::int64_t>(sizeof half), sizeof half);
    return layout.dtype == DType::kBF16 ? float_of_bf16(half) : float_of_f16(half);
  }
  const std::int64_t group = layout.k_group, within = group == 0 ? i : i % group;
  const std::byte* const head = panel + (group == 0 ? 0 : i / group * quantised_group_bytes(layout));
  const std::byte* const zeros = head + kPanelLanes * static_cast<std::int64_t>(sizeof(float));
  const auto byte_of = [&](std::byte byte, int shift, unsigned mask) {
    return layout.dtype == DType::kI8 ? static_cast<float>(std::to_integer<std::int8_t>(byte))
                                      : static_cast<float>(std::to_integer<unsigned>(byte) >> shift & mask);
  };
  const int bits = bits_of(layout);
  const std::byte stored = head[quantised_head_bytes(layout) + within / layout.k_block * kPanelLanes + lane];
  const float q = byte_of(stored, static_cast<int>(within % layout.k_block) * bits, (1u << bits) - 1u);
  if (layout.scale == PanelScale::kF16) {
    std::uint16_t scale;
    std::memcpy(&scale, head + lane * static_cast<std::int64_t>(sizeof scale), sizeof scale);
    const float middle = layout.dtype == DType::kI8 ? 0.0f : static_cast<float>(1 << (bits - 1));
    return (q - middle) * float_of_f16(scale);
  }
  const float zero = group == 0 ? reinterpret_cast<const float*>(zeros)[lane] : byte_of(zeros[lane], 0, 255u);
  return (q - zero) * reinterpret_cast<const float*>(head)[lane];
}

void decode_panels(const operators::PanelGeometry& geometry, const WeightOperand& operand, float* values) noexcept {
  for (std::int64_t p = 0; p < operand.panels.size(); ++p) {
    const std::byte* panel = operand.data + p * static_cast<std::int64_t>(geometry.panel_bytes.count());
    for (std::int64_t i = 0; i < geometry.values; ++i)
      for (std::int64_t lane = 0; lane < kPanelLanes; ++lane) *values++ = narrow_value(geometry.layout, panel, i, lane);
  }
}

Bytes quantised_workspace(const operators::WeightedParameters& weighted, const StepExtent& extent) noexcept {
  const PanelRange panels = panels_of_channels(extent.channels, weighted.panels.outputs_per_group);
  return panel_bytes_as_floats(weighted.panels) * static_cast<std::uint64_t>(panels.size());
}

void quantised_dense(const KernelCall& call) noexcept { run_as_floats(call, dense); }
void quantised_conv(const KernelCall& call) noexcept { run_as_floats(call, conv); }
void quantised_conv_transpose(const KernelCall& call) noexcept { run_as_floats(call, conv_transpose); }
void quantised_conv_winograd(const KernelCall& call) noexcept { run_as_floats(call, conv_winograd); }
void quantised_recurrent(const KernelCall& call) noexcept { run_as_floats(call, recurrent); }

}  // namespace sluice::kernels::reference
