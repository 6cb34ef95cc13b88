// One direction of an RNN, GRU or LSTM behind its input matrix. A step multiplies the state of the time step before by its panels, with the
// tiles of dense layers, and finishes the cells with the loops of the elementwise kernels.
//
//     for each time step:   h before x panels --> sums [batch][channels] --> cells: gates + sums --> outputs, gate after gate
//
// Sums lie in the workspace. A GRU whose r multiplies h first has two rounds: the sums of its last gate need r of all units.
#pragma once

#include "sluice/kernels/kernel.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

bool recurrent_supports(const model::Graph& graph, const model::Node& node) noexcept;
Bytes recurrent_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
CostFeatures recurrent_cost(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;
std::uint32_t recurrent_in_place(const model::Graph& graph, const model::Node& node) noexcept;
void run_recurrent(const KernelCall& call, const TileTable& tiles) noexcept;

}  // namespace sluice::kernels::weighted
