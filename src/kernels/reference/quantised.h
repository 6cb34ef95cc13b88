// Narrow panels (core/panels.h has the picture), read one value at a time: what their bytes mean.
#pragma once

#include "sluice/core/work.h"
#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/weighted.h"

namespace sluice::kernels::reference {

/// Value i of a lane of one panel.
float narrow_value(const PanelLayout& layout, const std::byte* panel, std::int64_t i, std::int64_t lane) noexcept;
/// The panels as f32 panels.
void decode_panels(const operators::PanelGeometry& geometry, const WeightOperand& operand, float* values) noexcept;

Bytes quantised_workspace(const operators::WeightedParameters& weighted, const StepExtent& extent) noexcept;
void quantised_dense(const KernelCall& call) noexcept;
void quantised_conv(const KernelCall& call) noexcept;
void quantised_conv_transpose(const KernelCall& call) noexcept;
void quantised_conv_winograd(const KernelCall& call) noexcept;
void quantised_recurrent(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::reference
