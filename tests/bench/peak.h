// The machine's peak of fused multiply-adds, measured beside what is to be judged by it: clocks wander on shared machines.
#pragma once

#include "sluice/core/cpu.h"

namespace sluice::bench {

/// GFLOP/s of one thread on independent chains of f32 multiply-adds in registers; the best of a few bursts of a tenth of a millisecond.
double fma_peak(Isa isa) noexcept;

/// Seconds of CPU time of this thread.
double thread_seconds() noexcept;

}  // namespace sluice::bench
