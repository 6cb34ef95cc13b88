// The machine's peak of sums of four products of u8 and i8, measured beside what is to be judged by it.
#pragma once

#include "sluice/core/cpu.h"

namespace sluice::bench {

/// GOP/s of one thread on independent chains of VNNI's instruction in registers, a product and a sum being two; the best of a few bursts.
/// Instruction sets without it have none: 0.
double dot_peak(DotIsa isa) noexcept;

}  // namespace sluice::bench
