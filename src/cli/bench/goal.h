// Finds the smallest budget in which a model reaches a latency.
#pragma once

#include "src/cli/bench/measure.h"

namespace sluice::cli::bench_detail {

/// Halves the range from the smallest budget that works to one that keeps all weights, by the median of measured runs, until it is known to
/// 2 % or 256 KiB: some ten measurements. `budget` of the point is not used. The row is that of the budget found; where not even the
/// largest reaches the goal, its row has a `refusal` that says how near it comes.
Row smallest_budget_for(const BenchOptions& options, const Point& point, double goal_ms);

}  // namespace sluice::cli::bench_detail
