// What measured differences say: an estimate of their middle with its standard error, and the answer that follows from it.
//
// In detect, a saving is what a pattern takes with a separator between two operators beyond what it takes with the same separator behind
// them (patterns.h). Operators that run one after the other save nothing by that, exactly, for nothing else differs. Operators that run as
// one save the call of the second, and its pass over a map that the first cache does not hold: nearly all of its time if values stay in
// registers, about half if it still is a loop of its own over pieces that the first cache holds. So the answers lie apart, and the bars are
// between them:
//
//     fused    above 0.2 of the operator's time by 4 standard errors
//     apart    below 0.4 of it by as many
//     nothing  neither; or the operator takes no longer than the noise; or the pattern is slower together by half of the operator or more,
//              which says that the separator takes part
//
// Where both hold, the bar that is farther away decides. Where the effect is far from both bars, few measurements decide.
#pragma once

#include <optional>
#include <vector>

namespace sluice::cli::detect {

struct Estimate {
  double middle = 0;
  double error = 0;
};

/// The mean of the middle three fifths, so that interrupted runs decide nothing, and its standard error (Tukey and McLaughlin). Few samples
/// may lie together by chance: they count as less sure.
Estimate estimate_of(std::vector<double> samples);

struct Verdict {
  std::optional<bool> fused;
  double p_value = 1;  // that such savings come from the other answer
};
Verdict verdict_of(const Estimate& saving, const Estimate& cost);

}  // namespace sluice::cli::detect
