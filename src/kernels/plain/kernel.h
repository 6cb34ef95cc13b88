// The one kernel of all plain operators: it finds the operator's line and hands it dense tensors.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/kernels/plain.h"

namespace sluice::kernels::plain {

inline constexpr std::size_t kMaxInputs = 32;

void run(const KernelCall& call) noexcept;

using operators::infer_bound;
using operators::Planned;
using operators::within;

/// Scratch for the most. Arguments that `infer_bound` refuses are no ground for sizes: 0, and a run that takes more ends with an error.
std::uint64_t scratch_of(const PlainNode& node) noexcept;

/// Runs a node whose extents or arguments come at run time: what `infer` says of them is compared with the plan first. `out` has the data;
/// its shape is written where nothing is wrong.
PlainRefusal run_within(const PlainNode& stated, const Planned& planned, PlainTensor& out, std::byte* scratch) noexcept;

}  // namespace sluice::kernels::plain
