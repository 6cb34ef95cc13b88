// Which operators a runtime runs as one: fusion rules, from times alone.
//
// An arm is a pattern (patterns.h). Its slope is the time of one more repeat, from one repeat and eight, so that the cost of a call itself drops
// out. With T the slope of a pattern, A and B those of (a |) and (b |), S of (|):
//
//     chain   saving = A + B - S - T             0 where a and b run one after the other, near the cheaper of the two where they run as one
//     fork    saving = A + B - 2 S + E - T       E: of the fork of no operators
//     join    saving = A + C - 2 S + J - T       J: of the join that is b alone
//
// Arms are measured in turn, round after round, so that a machine that is slower for a while is so for all of them; a round gives each
// pattern one saving, and the test goes on until what it has seen says fused or not, or there are no more rounds:
//
//     fused      saving is above half of the cheapest operator by more than chance would give
//     not fused  below it by as much
//     neither    the detector abstains: also where the cheapest operator takes no longer than the noise
//
// A join is fused where b runs as one with a, with c or with both. Savings are summed up by their median, and their spread by the median
// deviation: one run that the system interrupted decides nothing. Pairs come first; chains of three, forks and joins are asked about where a
// pair in them is fused (in chains both).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/detect/patterns.h"
#include "src/cli/detect/runner.h"

namespace sluice::cli::detect {

struct Rule {
  Pattern pattern;
  std::optional<bool> fused;  // nothing: abstained
  double saving_ms = 0;
  double cheaper_ms = 0;  // the least operator of the pattern
  double p_value = 1;     // that such savings come from the other answer
  int rounds = 0;
  bool simple = false;  // what T_a + T_b - T_ab > min(T_a, T_b) / 2 says of the same models of one repeat
};

struct Options {
  std::vector<std::string> operators;  // empty: kUsualOperators
  int most_rounds = 1000;
  double seconds = 90;    // no round begins after that, but for the first six; pairs have three quarters of it
  std::string directory;  // where models are written: FORM-WORD-...-REPEATS.onnx
  void (*progress)(void* context, std::size_t done, std::size_t all) = nullptr;
  void* progress_context = nullptr;
};

struct Detection {
  std::vector<Rule> rules;  // pairs in the order of the operators, then chains of three, forks, joins
  std::map<std::string, double> operator_ms;
  std::size_t measurements = 0;
  double seconds = 0;
};

/// Throws Failure where the runner fails or a model cannot be written.
Detection detect(Runner& runner, const Options& options);

}  // namespace sluice::cli::detect
