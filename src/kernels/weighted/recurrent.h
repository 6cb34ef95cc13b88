// One direction of an RNN, GRU or LSTM behind its input matrix. A step multiplies the state of the time step before by its panels, with the
// tiles of dense layers, and finishes the cells with the loops of the elementwise kernels.
//
//     for each time step:   h before x panels --> sums [batch][channels] --> cells: gates + sums --> outputs, gate after gate
//
// Sums lie in the workspace. A GRU whose r multiplies h first has two rounds: the sums of its last gate need r of all units.
#pragma once

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {

/// The inner loops of one instruction set.
struct RecurrentTable {
  const TileTable& tiles;
  const elementwise::RunTable& runs;
};

Bytes recurrent_workspace(const operators::RecurrentParameters& parameters, const StepExtent& extent) noexcept;
CostFeatures recurrent_cost(const operators::RecurrentParameters& parameters, const StepExtent& extent) noexcept;
void run_recurrent(const KernelCall& call, const RecurrentTable& table) noexcept;

}  // namespace sluice::kernels::weighted
