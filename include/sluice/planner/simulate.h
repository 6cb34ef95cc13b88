// Pass: what a schedule with gates will take. Two lanes, in order (planner.md section 1):
//
//     start_load(k) = max(end_load(k-1), end of the first gate_k steps + load_start, if that is later than end_load(k-1))
//     start_step(i) = max(end_step(i-1), end_load(last load that i needs) + wake, if that is later than end_step(i-1))
//
// The prologue runs all loads and prepare steps, a period only the streamed loads and the other steps; with gates >= 0 periods do not
// overlap, so one of each is enough. The fluid bound ignores addresses: each load starts as soon as the bytes that must live with it fit.
// No plan with the same loads in the same order is faster, because each of its gates is at least the fluid one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/planner/slice.h"
#include "sluice/profiler/latency.h"

namespace sluice::planner {

/// Seconds of each step and load of a schedule.
struct Costs {
  std::vector<double> step;
  std::vector<double> load;
  double compute = 0;       // all steps of a period
  double load_start = 0;    // before a load that waited for its gate
  double wake = 0;          // before a step that waited for a load
  double beside_reads = 1;  // factor on steps while the loader reads (DeviceProfile::step_time_beside_reads)
};

inline Costs price(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order, const Schedule& schedule,
                   const profiler::DeviceProfile& profile, int threads) {
  Costs costs;
  costs.load_start = profile.load_start_seconds;
  costs.wake = profile.wake_seconds;
  costs.beside_reads = profile.step_time_beside_reads;
  for (const StepSpec& step : schedule.steps) {
    const NodeId id = order[step.position];
    const model::Node& node = graph.node(id);
    const kernels::KernelDescriptor& kernel = *kernels[id.index()];
    const kernels::StepExtent extent{
        {0, row_extents(graph.tensor(node.outputs[0]).shape).rows}, step.channels, threads, step.derived != kNotDerived};
    const auto cost = step.prepare && kernel.prepare_cost != nullptr ? kernel.prepare_cost : kernel.cost;
    using profiler::KernelUse;
    const KernelUse use = step.prepare ? KernelUse::kPrepare : step.derived != kNotDerived ? KernelUse::kRunDerived : KernelUse::kRun;
    costs.step.push_back(profiler::step_seconds(profile, {kernel.id, use}, node, cost(graph, node, extent)));
    if (!step.prepare) costs.compute += costs.step.back();
  }
  for (const LoadSpec& load : schedule.loads) costs.load.push_back(profiler::load_seconds(profile, Bytes(load.region_bytes())));
  return costs;
}

/// Seconds of all reading in the prologue or in a period.
inline double reading_seconds(const Schedule& schedule, const Costs& costs, bool prologue) {
  double sum = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k)
    if (prologue || schedule.loads[k].streamed()) sum += costs.load[k];
  return sum;
}

/// End of the last step. `prologue`: all loads and steps run.
inline double simulate(const Schedule& schedule, const Costs& costs, const std::vector<std::int64_t>& gates, bool prologue) {
  std::vector<double> step_end(schedule.steps.size() + 1, 0.0);  // [i]: the first i steps are over
  double load_end = 0;
  std::size_t next_load = 0;
  const double slower = profiler::slowdown(costs.beside_reads, costs.compute, reading_seconds(schedule, costs, prologue));
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    double ready = step_end[i];
    for (; next_load < schedule.steps[i].loads_needed; ++next_load) {
      if (!schedule.loads[next_load].streamed() && !prologue) continue;
      const auto gate = static_cast<std::size_t>(std::max<std::int64_t>(gates[next_load], 0));
      load_end = (step_end[gate] > load_end ? step_end[gate] + costs.load_start : load_end) + costs.load[next_load];
    }
    if (schedule.steps[i].prepare && !prologue) {
      step_end[i + 1] = step_end[i];
      continue;
    }
    if (load_end > ready) ready = load_end + costs.wake;
    step_end[i + 1] = ready + costs.step[i] * slower;
  }
  return step_end.back();
}

/// The earliest gates that the bytes alone allow: for load k the least g such that, in every step of [g, end of its first use), the fixed
/// bytes of the step, the resident weights and the loads up to k that are still needed fit `capacity`. `fixed` holds the live bytes by
/// step.
inline std::vector<std::int64_t> fluid_gates(const Schedule& schedule, const std::vector<std::uint64_t>& fixed, std::uint64_t capacity) {
  std::vector<std::int64_t> used;  // by step: bytes of fixed buffers and of the loads placed so far
  std::uint64_t resident = 0;
  for (const LoadSpec& load : schedule.loads)
    if (load.resident) resident += load.region_bytes();
  for (const DerivedSpec& derived : schedule.derived) resident += derived.bytes;
  for (std::uint64_t bytes : fixed) used.push_back(static_cast<std::int64_t>(bytes + resident));
  std::vector<std::int64_t> gates(schedule.loads.size(), 0);
  std::int64_t former = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    const auto bytes = static_cast<std::int64_t>(load.region_bytes());
    gates[k] = former;
    if (load.resident) continue;
    std::int64_t gate = load.uses.begin;
    while (gate > former && used[static_cast<std::size_t>(gate - 1)] + bytes <= static_cast<std::int64_t>(capacity)) --gate;
    for (std::int64_t i = gate; i < load.uses.end; ++i) used[static_cast<std::size_t>(i)] += bytes;
    gates[k] = former = gate;
  }
  return gates;
}

}  // namespace sluice::planner
