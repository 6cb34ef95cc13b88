// What plans need beyond steps, loads and buffers. A build that was trimmed to some plans has no code for what none of them needs
// (docs/small-binaries.md), and refuses others.
#pragma once

#include <cstdint>
#include <string_view>

#include "sluice/plan/plan.h"

namespace sluice::plan {

/// The numbers are those of lists of `sluice trim`.
enum class Need : std::uint8_t {
  kPassing = 0,  // tensors that are spilled, or handed over as they are made
  kSums = 1,     // steps that take a part of their sums
  kDerived = 2,  // transformed weights
  kReads = 3,    // weights that no load of the plan brings
};
inline constexpr int kNeedCount = 4;
std::string_view name_of(Need need) noexcept;

/// A bit for each.
using Needs = std::uint64_t;
constexpr Needs bit_of(Need need) noexcept { return Needs{1} << static_cast<int>(need); }

/// Of the plan and those of its subgraphs. Any plan will do: one from a file need not have been verified.
Needs needs_of(const Plan& plan) noexcept;

}  // namespace sluice::plan
