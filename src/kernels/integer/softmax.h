// Softmax of lines of bytes: as a line has no more than 256 different values, their results are a table of 256 bytes.
#pragma once

#include "sluice/kernels/call.h"
#include "src/kernels/integer/tile.h"

namespace sluice::kernels::integer {

void run_softmax_step(const KernelCall& call, const TileTable& table) noexcept;

}  // namespace sluice::kernels::integer
