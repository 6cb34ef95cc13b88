// T_LB of a plan from a run's own figures: the period that its loads would give if addresses did not matter (planner.md 3.1), computed
// apart from the planner. Loads run in order at one rate; each may start as early as the bytes alone allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/plan/plan.h"

namespace sluice::bench {

struct Bounds {
  double period_s = 0;   // T_LB
  double compute_s = 0;  // all steps
  double reading_s = 0;  // all streamed bytes
};

/// `compute_s` by step; `bytes_per_second` is the rate of the disk, checksums included.
inline Bounds bounds_of(const plan::Plan& plan, std::span<const double> compute_s, double bytes_per_second) {
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  std::vector<const plan::Load*> loads;
  for (const plan::Load& load : plan.loads)
    if (load.streamed()) loads.push_back(&load);

  // What lies in the arena at each step beside streamed weights.
  std::vector<std::uint64_t> fixed(plan.steps.size(), 0);
  std::vector<bool> streams(plan.buffers.size(), false);
  for (const plan::Load& load : plan.loads) streams[load.target.index()] = !load.resident;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::Buffer& buffer = plan.buffers[b];
    if (streams[b]) continue;
    const std::int64_t begin = buffer.whole_period ? 0 : buffer.lifetime.begin;
    const std::int64_t end = buffer.whole_period ? steps : buffer.lifetime.end;
    for (std::int64_t t = std::max<std::int64_t>(begin, 0); t < std::min(end, steps); ++t)
      fixed[static_cast<std::size_t>(t)] += buffer.size.count();
  }

  Bounds bounds;
  for (const double seconds : compute_s) bounds.compute_s += seconds;
  for (const plan::Load* load : loads) bounds.reading_s += static_cast<double>(load->file.size.count()) / bytes_per_second;

  // Periods one after the other; by the fourth the pipeline goes round.
  constexpr std::int64_t kPeriods = 5;
  const std::int64_t all_steps = kPeriods * steps;
  std::vector<std::uint64_t> freed(static_cast<std::size_t>(all_steps) + 1, 0);  // bytes of loads given up before step t
  for (std::int64_t p = 0; p < kPeriods; ++p)
    for (const plan::Load* load : loads)
      freed[static_cast<std::size_t>(std::min(p * steps + load->uses.end, all_steps))] += load->file.size.count();
  for (std::size_t t = 1; t < freed.size(); ++t) freed[t] += freed[t - 1];

  std::vector<double> step_end(static_cast<std::size_t>(all_steps) + 1, 0);  // [t]: when t steps are over
  std::uint64_t brought = 0;
  double loader = 0;
  std::int64_t done = 0;  // steps simulated so far
  std::int64_t gate = 0;
  std::vector<double> load_end;
  std::vector<double> period_end;
  const auto run_steps_until = [&](std::int64_t count, std::size_t loads_ended) {
    for (; done < count; ++done) {
      const plan::Step& step = plan.steps[static_cast<std::size_t>(done % steps)];
      std::size_t needed = 0;
      for (std::size_t k = 0; k < step.loads_needed; ++k) needed += plan.loads[k].streamed();
      needed += static_cast<std::size_t>(done / steps) * loads.size();
      if (needed > loads_ended) return;
      const double ready = needed == 0 ? 0 : load_end[needed - 1];
      const auto t = static_cast<std::size_t>(done);
      step_end[t + 1] = std::max(step_end[t], ready) + compute_s[static_cast<std::size_t>(done % steps)];
    }
  };
  for (std::int64_t p = 0; p < kPeriods; ++p) {
    for (const plan::Load* load : loads) {
      brought += load->file.size.count();
      const std::int64_t first_use = p * steps + load->uses.begin;
      std::int64_t earliest = first_use;
      while (earliest > gate) {
        const auto t = static_cast<std::size_t>(earliest - 1);
        if (brought - freed[t] + fixed[t % static_cast<std::size_t>(steps)] > plan.capacity.count()) break;
        --earliest;
      }
      gate = earliest;
      run_steps_until(gate, load_end.size());
      loader = std::max(loader, step_end[static_cast<std::size_t>(gate)]) + static_cast<double>(load->file.size.count()) / bytes_per_second;
      load_end.push_back(loader);
    }
    run_steps_until((p + 1) * steps, load_end.size());
    period_end.push_back(step_end[static_cast<std::size_t>((p + 1) * steps)]);
  }
  bounds.period_s = period_end[kPeriods - 1] - period_end[kPeriods - 2];
  return bounds;
}

}  // namespace sluice::bench
