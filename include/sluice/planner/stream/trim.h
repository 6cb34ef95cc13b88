// Pass: late trim. Fluid gates let each load start as early as bytes allow; most need not. With the times of that run as deadlines, a
// backward pass finds the latest start of each load that delays no step:
//
//     latest_end(k)   = min(start of the first step that needs k, latest_start(k + 1))
//     latest_start(k) = latest_end(k) - read_k - load_start          (load_start: a trimmed load waits for its gate)
//
//     bytes |   fluid   :#######======|        = what a trimmed load takes: far smaller rectangles, the same latency; what it gives up
//           |  gate ^   ^trimmed      use      (#) makes room for addresses to be found
//
// Some slack stays, so that a read that comes late finds a loader that was ahead. Then a gate is the last one that opens by that time.
// Invariants: fluid gate <= trimmed gate <= first use; gates never fall; without slack the simulated time does not change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

/// How much earlier than just in time loads are.
struct TrimSlack {
  double share = 0.1;  // of the time between fluid gate and latest start
  double loads = 2;    // and as many reads of average length
};

/// `gates`: those to start from (fluid). `times`: what `simulate` says of them.
inline Gates trim_gates(const Schedule& schedule, const Costs& costs, const Gates& gates, const Timeline& times, Run kind,
                        TrimSlack slack) {
  const std::int64_t steps = schedule.step_count();
  const double period = times.seconds();  // the length of the run
  const auto runs = [&](const LoadSpec& load) { return kind == Run::kPrologue || load.streamed(); };
  double mean_read = 0;
  double count = 0;
  for (std::size_t k = 0; k < gates.size(); ++k) {
    if (!runs(schedule.loads[k])) continue;
    mean_read += costs.load[k];
    count += 1;
  }
  mean_read /= std::max(count, 1.0);
  const auto opens = [&](std::int64_t gate) {
    return gate >= 0 ? times.step_end[static_cast<std::size_t>(gate)] : times.step_end[static_cast<std::size_t>(gate + steps)] - period;
  };
  // If periods follow one another, the last load of one must leave time for the first of the next: a second pass knows when that one
  // starts.
  const bool wraps = kind == Run::kPeriod && std::any_of(gates.begin(), gates.end(), [](std::int64_t g) { return g < 0; });
  std::vector<double> latest(gates.size(), 0.0);
  double next_start = period;
  for (int pass = 0; pass < (wraps ? 2 : 1); ++pass) {
    for (std::size_t k = gates.size(); k-- > 0;) {
      if (!runs(schedule.loads[k])) continue;
      const double decode = costs.decode.empty() ? 0.0 : costs.decode[k];
      const double needed = times.step_start[static_cast<std::size_t>(schedule.loads[k].uses.begin)];
      latest[k] = next_start = std::min(needed - costs.wake - decode, next_start) - costs.load[k] - costs.load_start;
    }
    next_start = std::min(period, period + next_start);
  }
  Gates trimmed = gates;
  std::int64_t former = -steps;
  for (std::size_t k = 0; k < gates.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    if (!runs(load)) continue;
    const double earliest = opens(gates[k]);
    const double window = std::max(latest[k] - earliest, 0.0);
    const double target = latest[k] - std::min(window, slack.share * window + slack.loads * mean_read);
    std::int64_t gate = std::max(gates[k], former);
    while (gate < load.uses.begin && opens(gate + 1) <= target) ++gate;
    trimmed[k] = former = std::max(former, std::min(gate, load.uses.begin));
  }
  return trimmed;
}

}  // namespace sluice::planner
