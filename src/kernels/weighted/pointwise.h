// 1x1 convolutions without padding (any stride, groups of 16 outputs and more) and dense layers: each output pixel reads one input pixel,
// in place, whatever the pitches. No workspace.
#pragma once

#include "sluice/kernels/kernel.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

bool pointwise_supports(const model::Graph& graph, const model::Node& node) noexcept;
/// Does each output pixel of the window read one input pixel, in place?
bool reads_in_place(const model::ConvAttributes& conv) noexcept;
bool dense_supports(const model::Graph& graph, const model::Node& node) noexcept;
Bytes no_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
void run_pointwise(const KernelCall& call, const TileTable& tiles) noexcept;
void run_dense(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
