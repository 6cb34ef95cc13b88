// The three ways to run a plan, which differ in what is loaded and prepared.
//
//     kFirst      every load and every step          the first run, and the run after an error
//     kTakenOver  all but what is held               the first run of a plan that finds its resident or derived weights in the arena
//     kPeriod     streamed loads, no prepare steps   each later run
#pragma once

#include <array>
#include <cstdint>

#include "sluice/plan/plan.h"

namespace sluice::executor {

enum class Pass : std::uint8_t { kFirst, kTakenOver, kPeriod };
inline constexpr std::array kPasses = {Pass::kFirst, Pass::kTakenOver, Pass::kPeriod};

constexpr bool runs_in(Pass pass, const plan::Load& load, bool held) noexcept {
  return pass == Pass::kPeriod ? load.streamed() : pass == Pass::kFirst || !held;
}

}  // namespace sluice::executor
