// Products of two activations of bytes. The right matrix becomes i8 panels in the workspace, a block of columns at a time, less 128; with
// zero points za and zb, and zb' = zb - 128 the zero point of the panels' values b':
//
//     sum of (a - za) * (b - zb)  =  sum of a * b'  -  zb' * sum of a  -  za * sum of b'  +  K * za * zb'
//
// in 32 bits that wrap round: what belongs to a column is its bias, what belongs to a line begins its sums.
#pragma once

#include "sluice/kernels/call.h"
#include "src/kernels/integer/tile.h"
#include "src/kernels/integer/walk.h"

namespace sluice::kernels::integer {

Bytes matmul_workspace(const operators::IntegerMatMulParameters& p, const StepExtent& extent) noexcept;
void run_matmul(const KernelCall& call, const TileTable& table) noexcept;

/// The zero points of both matrices, known or of the run time.
struct MatMulZeros {
  std::uint8_t a = 0;
  std::uint8_t b = 0;
};
MatMulZeros zeros_of(const KernelCall& call) noexcept;

}  // namespace sluice::kernels::integer
