// The rules of the planner's search by name, for what turns each off: a test, and the benchmark that says what each is worth.
#pragma once

#include "sluice/planner/search_parameters.h"

namespace sluice::planner {

struct SearchRule {
  const char* name;
  bool SearchParameters::*on;
};

inline constexpr SearchRule kSearchRules[] = {
    {"greedy_order", &SearchParameters::greedy_order},     {"time_bands", &SearchParameters::time_bands},
    {"memory_bands", &SearchParameters::memory_bands},     {"kept_transforms", &SearchParameters::kept_transforms},
    {"other_orders", &SearchParameters::other_orders},     {"small_first_loads", &SearchParameters::small_first_loads},
    {"other_sizes", &SearchParameters::other_sizes},       {"more_drafts", &SearchParameters::more_drafts},
    {"late_trim", &SearchParameters::late_trim},           {"address_rules", &SearchParameters::address_rules},
    {"load_sides", &SearchParameters::load_sides},         {"together", &SearchParameters::together},
    {"left_extension", &SearchParameters::left_extension}, {"baselines", &SearchParameters::baselines},
};

}  // namespace sluice::planner
