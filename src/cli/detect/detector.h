// Which operators a runtime runs as one: fusion rules, from times alone.
//
// A pattern (patterns.h) is measured side by side and with a separator between its operators. Both models have the same operators and
// separators, so that their difference is what the operators save by being neighbours, and neither the cost of a call nor what a separator
// takes is in it. A block is two visits to each model, forwards and backwards: where memory lies changes times by some per cent from session
// to session, mostly upwards. Blocks go on until their answers decide (evidence.h) or the time is over.
//
// One pass gives each open pattern a block, so that the time of those that are decided goes to those that are not. Pairs come first; chains
// of three (where both pairs are fused), forks and joins (where one is) are asked about as soon as these pairs are known. A chain of three
// is fused if neither place can be cut without loss. A join is fused where its last operator runs as one with the first, with the second or
// with both.
//
// Before that, the operators' own times tell which of two separators disturbs the runtime less: (a |) without (|), of each.
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
  double cheaper_ms = 0;  // the least operator of the pattern, of a join the last
  double p_value = 1;     // that such savings come from the other answer
  int rounds = 0;
  bool simple = false;  // what T_a + T_b - T_ab > min(T_a, T_b) / 2 says of models of one repeat
};

struct Options {
  std::vector<std::string> operators;  // empty: kUsualOperators
  int most_rounds = 1000;              // blocks of a pattern
  double seconds = 90;                 // no block begins after that, but the first of each separator
  std::string directory;               // where models are written: file_name_of
  void (*progress)(void* context, std::size_t done, std::size_t all) = nullptr;
  void* progress_context = nullptr;
};

struct Detection {
  std::vector<Rule> rules;  // pairs in the order of the operators, then chains of three, forks, joins
  std::map<std::string, double> operator_ms;
  Separator separator = Separator::kImage;
  int repeats = 0;  // of the pattern in its models
  std::size_t measurements = 0;
  double seconds = 0;
};

/// Throws Failure where the runner fails or a model cannot be written.
Detection detect(Runner& runner, const Options& options);

}  // namespace sluice::cli::detect
