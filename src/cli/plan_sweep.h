// `sluice plan --sweep`: the whole curve of memory against time, from the smallest budget that works to the one that keeps every weight.
#pragma once

#include "sluice/engine/engine.h"

namespace sluice::cli {

/// Plans ten budgets, evenly spread on a logarithmic scale, each by every policy, and prints one line a budget or one JSON object.
void print_sweep(const Model& model, const SessionOptions& options, bool json);

}  // namespace sluice::cli
