// A candidate: one way to run the graph in a capacity, complete but for being written as a Plan. Policies make candidates, the simulator
// prices them, `emit` writes the best one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/layout.h"
#include "sluice/planner/planner.h"
#include "sluice/planner/simulate.h"

namespace sluice::planner {

/// What all candidates of a request share.
struct Problem {
  const model::Graph* graph = nullptr;
  const profiler::DeviceProfile* profile = nullptr;
  int threads = 1;
  bool repeat = false;
  KernelChoice kernels;
  Views views;
  std::vector<DeriveOption> options;  // transforms that could be kept
};

struct Candidate {
  Policy policy = Policy::kSluice;
  Schedule schedule;
  FixedLayout layout;
  LoadPlacement placement;                     // offsets of resident loads too
  std::vector<std::uint64_t> derived_offsets;  // by Schedule::derived
  std::uint64_t base = 0;                      // resident and derived weights end, activations begin
  std::uint64_t arena_bytes = 0;
  double cold = 0;  // seconds
  double period = 0;
};

/// A schedule with what follows from it alone.
struct Draft {
  Schedule schedule;
  FixedLayout layout;
  Costs costs;
};

/// By position: what must lie in memory beside a slice of the node's first weight: its other streamed weights, and blocks that rounding
/// adds.
inline std::vector<std::uint64_t> bytes_beside_slices(const Problem& problem) {
  constexpr std::uint64_t kRounding = 2 * kBlockBytes;  // a region is rounded at both ends
  std::vector<std::uint64_t> bytes;
  std::vector<WeightId> reads;
  for (NodeId id : problem.views.order) {
    const model::Node& node = problem.graph->node(id);
    reads.clear();
    model::weights_read_by(*problem.graph, node, reads);
    bytes.push_back(kRounding);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const model::Weight& weight = problem.graph->weight(reads[i]);
      const bool cut = i == 0 && !node.weights.empty();
      if (!cut && !weight.always_resident) bytes.back() += weight.bytes.count() + kRounding;
    }
  }
  return bytes;
}

inline Draft make_draft(const Problem& problem, const SliceRule& rule) {
  Draft draft;
  draft.schedule = cut_weights(*problem.graph, problem.kernels, problem.views.order, rule);
  draft.layout =
      pack_fixed(problem.views, workspaces(*problem.graph, problem.kernels, problem.views.order, draft.schedule, problem.threads));
  draft.costs = price(*problem.graph, problem.kernels, problem.views.order, draft.schedule, *problem.profile, problem.threads);
  return draft;
}

/// Makes the chosen loads resident. A load that brings the same bytes as an earlier resident one (a weight that several nodes read) goes.
inline void keep_resident(Draft& draft, const std::vector<bool>& chosen) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> kept;
  std::vector<std::uint32_t> renumbered(draft.schedule.loads.size());
  std::vector<LoadSpec> loads;
  std::vector<double> seconds;
  for (std::size_t k = 0; k < draft.schedule.loads.size(); ++k) {
    LoadSpec load = draft.schedule.loads[k];
    load.resident = load.resident || (chosen[k] && !load.prologue_only);
    const auto [same, is_new] = kept.try_emplace({load.first_stretch, load.stretch_count}, static_cast<std::uint32_t>(loads.size()));
    if (!is_new && load.resident && loads[same->second].resident) {
      renumbered[k] = same->second;
      loads[same->second].uses = loads[same->second].uses.hull(load.uses);
      continue;
    }
    renumbered[k] = static_cast<std::uint32_t>(loads.size());
    loads.push_back(load);
    seconds.push_back(draft.costs.load[k]);
  }
  draft.schedule.loads = std::move(loads);
  draft.costs.load = std::move(seconds);
  for (OperandSpec& operand : draft.schedule.operands) operand.load = renumbered[operand.load];
  for (StepSpec& step : draft.schedule.steps) {
    step.loads_needed = 0;
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o)
      step.loads_needed = std::max(step.loads_needed, draft.schedule.operands[o].load + 1);
  }
}

/// Bytes that are taken for good: kept loads, then transforms, rounded up to a block.
inline std::uint64_t resident_bytes(const Schedule& schedule) {
  std::uint64_t bytes = 0;
  for (const LoadSpec& load : schedule.loads)
    if (load.resident) bytes += load.region_bytes();
  for (const DerivedSpec& derived : schedule.derived) bytes += derived.bytes;
  return align_up(bytes, kBlockBytes);
}

/// The fluid bound of a schedule beside a layout, in seconds.
inline double fluid_bound(const Schedule& schedule, const Costs& costs, const FixedLayout& layout, std::uint64_t capacity, bool prologue) {
  std::vector<std::uint64_t> live(schedule.steps.size(), 0);
  for (const FixedRect& rect : fixed_rects(layout, schedule, 0))
    for (std::int64_t i = rect.time.begin; i < rect.time.end; ++i) live[static_cast<std::size_t>(i)] += rect.bytes.size();
  return simulate(schedule, costs, fluid_gates(schedule, live, capacity), prologue);
}

/// Resident weights lie at the bottom of the arena, in load order; transforms above them.
inline Candidate finish(const Draft& draft, const FixedLayout& layout, Policy policy, std::uint64_t base, LoadPlacement placement) {
  Candidate candidate;
  candidate.policy = policy;
  candidate.base = base;
  std::uint64_t at = 0;
  for (std::size_t k = 0; k < draft.schedule.loads.size(); ++k) {
    if (!draft.schedule.loads[k].resident) continue;
    placement.offsets[k] = at;
    at += draft.schedule.loads[k].region_bytes();
  }
  const std::uint64_t regions_end = std::max(at, placement.height);
  for (const DerivedSpec& derived : draft.schedule.derived) {
    candidate.derived_offsets.push_back(at);
    at += derived.bytes;
  }
  std::uint64_t fixed_end = at;
  for (std::size_t i = 0; i < layout.items.size(); ++i)
    if (layout.items[i].size > 0) fixed_end = std::max(fixed_end, base + layout.offsets[i] + layout.items[i].size);
  // A kernel may read past the last weight of the arena.
  candidate.arena_bytes = std::max(fixed_end, regions_end == 0 ? 0 : regions_end + kernels::kReadTail.count());
  candidate.cold = simulate(draft.schedule, draft.costs, placement.gates, true);
  candidate.period = simulate(draft.schedule, draft.costs, placement.gates, false);
  candidate.schedule = draft.schedule;
  candidate.layout = layout;
  candidate.placement = std::move(placement);
  return candidate;
}

/// Places a draft: activations above the resident weights, streamed loads round them below `capacity`. Nothing if it does not fit.
inline std::optional<Candidate> complete(const Draft& draft, Policy policy, std::uint64_t capacity, PlaceRule rule) {
  const std::uint64_t base = resident_bytes(draft.schedule);
  const std::uint64_t tail = kernels::kReadTail.count();
  if (base + draft.layout.height > capacity || base + tail > capacity) return std::nullopt;
  rule.arena = {base, std::max(base, align_down(capacity - tail, kBlockBytes))};
  auto placement = place_loads(draft.schedule, fixed_rects(draft.layout, draft.schedule, base), rule);
  if (!placement) return std::nullopt;
  return finish(draft, draft.layout, policy, base, std::move(*placement));
}

}  // namespace sluice::planner
