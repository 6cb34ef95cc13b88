// The run functions of the movement kernels: they describe views as strided copies. Where a ring wraps or a reshape has gaps on both sides,
// which no strided copy describes, the reference runs.
#pragma once

#include "sluice/core/cpu.h"
#include "sluice/kernels/call.h"

namespace sluice::kernels::movement {

void concat_step(const KernelCall& call, Isa isa) noexcept;
void slice_step(const KernelCall& call, Isa isa) noexcept;
void pad_step(const KernelCall& call, Isa isa) noexcept;
void transpose_step(const KernelCall& call, Isa isa) noexcept;
void reshape_step(const KernelCall& call, Isa isa) noexcept;

}  // namespace sluice::kernels::movement
