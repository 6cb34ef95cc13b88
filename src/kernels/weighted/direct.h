// KxK convolutions, any stride, dilation and padding, groups of 16 outputs and more: tiles over zero-padded strips (strip.h).
// 1x1 convolutions with padding come here too, and transposed convolutions: stride_h x stride_w small convolutions, one a phase.
#pragma once

#include "sluice/kernels/kernel.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

bool direct_supports(const model::Graph& graph, const model::Node& node) noexcept;
Bytes direct_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
void run_direct(const KernelCall& call, const TileTable& tiles) noexcept;

bool transposed_supports(const model::Graph& graph, const model::Node& node) noexcept;
Bytes transposed_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
void run_transposed(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
