// Quantised panels, read one value at a time: what their bytes mean (`model/weight.h` has the picture).
#pragma once

#include "sluice/kernels/kernel.h"

namespace sluice::kernels::reference {

/// Value i of a lane of one panel.
float quantised_value(const model::PanelLayout& layout, const std::byte* panel, std::int64_t i, std::int64_t lane) noexcept;
/// The panels as f32 panels.
void decode_panels(const WeightOperand& operand, float* values) noexcept;

bool quantised_fits(const model::Graph& graph, const model::Node& node) noexcept;
Bytes quantised_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
void quantised_dense(const KernelCall& call) noexcept;
void quantised_conv(const KernelCall& call) noexcept;
void quantised_conv_transpose(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::reference
