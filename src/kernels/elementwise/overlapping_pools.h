// Pools whose windows overlap much, as 31 x 31 with stride 1: a row of the input is folded along itself once, and what that gives is handed
// to each row of outputs that meets it. The order of a fold is that of reference/pool.cc (along each row, then row after row), so the bits
// are the same; the price is kernel_h + kernel_w operations an output and not their product.
//
//     input row 5  -> taps along it: part -> output rows 3, 4, 5, 6, 7 (of a kernel of five rows)
#pragma once

#include "sluice/kernels/call.h"
#include "src/kernels/elementwise/runs.h"

namespace sluice::kernels::elementwise {

/// Does folding rows once pay, and do the views have rows without gaps?
bool row_folds_pay(const KernelCall& call) noexcept;

/// Runs the step where `row_folds_pay` says so.
void pool_overlapping(const KernelCall& call, const RunTable& runs) noexcept;

}  // namespace sluice::kernels::elementwise
