// What measured differences say: an estimate of their middle with its standard error, and the answer that follows from it.
//
// In detect, a saving is what a pattern takes with a separator between two operators beyond what it takes with the same separator behind
// them (patterns.h). Operators that run one after the other save nothing by that, exactly, for nothing else differs. Operators that run as
// one save the call of the second, and its pass over a map that the first cache does not hold: nearly all of its time if values stay in
// registers. If it still is a loop of its own over pieces that the first cache holds, that is from nothing to nearly all, by the processor:
// what saves nothing is told apart by no clock. The bars are between the answers that can be told:
//
//     fused    above 0.2 of the operator's time by 4 standard errors
//     apart    below 0.45 of it by as many
//     nothing  neither; or the operator takes no longer than the noise; or the pattern is slower together by half of the operator, or saves
//              twice the dearer one of the two, which says that the separator takes part, or that chance does
//
// Where both hold, the bar that is farther away decides. Where the effect is far from both bars, few measurements decide.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace sluice::cli::detect {

struct Estimate {
  double middle = 0;
  double error = 0;
};

/// What a model takes beyond another, from the answers for both, `block` of each at a time: the difference of the means of their lower
/// quarters, and its standard error (a jackknife over blocks, since neighbours err together; at least what answers are rounded to). A machine that
/// others share is slower by a quarter for some milliseconds at a time, and does not answer for both in one of its states; at its fastest it
/// comes back to the same times. So a quarter of the answers must be undisturbed. Few blocks may lie together by chance: they count as less
/// sure.
Estimate difference_of(std::span<const double> less, std::span<const double> more, std::size_t block);

struct Verdict {
  std::optional<bool> fused;
  double p_value = 1;  // that such savings come from the other answer
};
/// `cost`: of the operator that a saving is held against; `dearer`: of the dearer one of the two that it is between.
Verdict verdict_of(const Estimate& saving, const Estimate& cost, double dearer);

}  // namespace sluice::cli::detect
