// `sluice convert --weights auto`: what a choice of forms costs in time is what `sluice plan` says of it, so that it holds for the runs
// that follow, with the same words for budget, profile and disk.
#pragma once

#include <string>

#include "sluice/importer/weight_choice.h"
#include "src/cli/json.h"

namespace sluice::cli {

/// The words that say what weights are chosen for.
struct WeightTarget {
  std::string budget;   // --for-budget
  std::string profile;  // --profile; empty: the one that `plan` finds
  std::string io_limit;
};

/// Prices plans for the target by running `sluice` from the same folder. `progress` is called before each.
importer::PriceWeights price_by_plans(const WeightTarget& target, const std::function<void(int plans)>& progress);

void print_choice(const WeightTarget& target, const importer::WeightChoice& choice);
Json json_of_choice(const WeightTarget& target, const importer::WeightChoice& choice);

}  // namespace sluice::cli
