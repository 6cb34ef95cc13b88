// A candidate: one way to run the graph in a capacity, complete but for being written as a Plan. Policies make candidates, the simulator
// prices them, `emit` writes the best one.
//
//     arena   | resident segment | kept pieces, in residency order | transforms | activations, workspaces, streamed loads |
//             0                                                                 base                                      capacity
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/cut/slice.h"
#include "sluice/planner/place/layout.h"
#include "sluice/planner/place/place_loads.h"
#include "sluice/planner/planner.h"
#include "sluice/planner/stream/fluid.h"
#include "sluice/planner/stream/problem.h"
#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

struct Candidate {
  Policy policy = Policy::kSluice;
  Schedule schedule;
  FixedLayout layout;
  LoadPlacement placement;                     // offsets of resident loads too
  std::vector<std::uint64_t> derived_offsets;  // by Schedule::derived
  std::uint64_t base = 0;                      // resident and derived weights end, activations begin
  std::uint64_t arena_bytes = 0;
  std::uint64_t table_bytes = 0;  // that count in the capacity: see Draft
  double seconds = 0;             // of the run that counts: the period where runs are repeated, else the prologue

  std::uint64_t bytes() const noexcept { return arena_bytes + table_bytes; }
};

/// A schedule with what follows from it alone.
struct Draft {
  Schedule schedule;
  FixedLayout layout;
  Costs costs;
  std::uint64_t base = 0;         // bytes that are kept
  std::uint64_t table_bytes = 0;  // of its tables beyond what is set aside for them, in whole blocks

  std::size_t items() const noexcept { return schedule.steps.size() + schedule.loads.size(); }
  /// The part of a capacity that is left for the arena, and the part of that for weights that are not kept.
  std::uint64_t arena(std::uint64_t capacity) const noexcept { return capacity - std::min(capacity, table_bytes); }
  std::uint64_t room(std::uint64_t capacity) const noexcept { return arena(capacity) - std::min(arena(capacity), base); }
};

/// Bytes that are taken for good: kept loads, then transforms, rounded up to a block.
inline std::uint64_t resident_bytes(const Schedule& schedule) {
  std::uint64_t bytes = 0;
  for (const LoadSpec& load : schedule.loads)
    if (load.resident) bytes += load.region_bytes();
  for (const DerivedSpec& derived : schedule.derived) bytes += derived.bytes;
  return align_up(bytes, kBlockBytes);
}

/// Bytes that each repeated run reads.
inline std::uint64_t streamed_bytes(const Schedule& schedule) {
  std::uint64_t bytes = 0;
  for (const LoadSpec& load : schedule.loads)
    if (load.streamed()) bytes += load.payload.read_bytes();
  return bytes;
}

/// Payload of the largest load that weights were cut for. Where it is no larger than a lesser target of slices, that target would have cut
/// the same loads.
inline std::uint64_t largest_load(const Schedule& schedule) {
  std::uint64_t largest = 0;
  for (const LoadSpec& load : schedule.loads)
    if (!load.resident) largest = std::max(largest, load.payload.held_bytes());
  return largest;
}

/// Without addresses: its layout is not packed.
inline Draft make_draft(const Problem& problem, SliceRule rule) {
  rule.threads = problem.threads;
  rule.ramp = rule.ramp && problem.search.small_first_loads;
  rule.chains = &problem.views.chains;
  Draft draft;
  draft.schedule = cut_weights(*problem.graph, problem.kernels, problem.views.order, rule);
  draft.schedule.steps.shrink_to_fit();  // several drafts are held at once, of thousands of steps where bands are
  draft.schedule.operands.shrink_to_fit();
  draft.schedule.loads.shrink_to_fit();
  draft.layout.blocks = problem.views.blocks.size();
  draft.layout.items =
      fixed_items(problem.views, workspaces(*problem.graph, problem.kernels, problem.views, draft.schedule, problem.threads));
  draft.costs = price(problem, draft.schedule);
  draft.base = resident_bytes(draft.schedule);
  draft.table_bytes = table_bytes(problem, draft.schedule);
  return draft;
}

/// Makes all loads resident. A load that brings the same bytes as an earlier one (a weight that several nodes read) goes.
inline void keep_all(const Problem& problem, Draft& draft) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> kept;
  std::vector<std::uint32_t> renumbered(draft.schedule.loads.size());
  std::vector<LoadSpec> loads;
  Costs costs = draft.costs;
  costs.load.clear();
  costs.decode.clear();
  for (std::size_t k = 0; k < draft.schedule.loads.size(); ++k) {
    LoadSpec load = draft.schedule.loads[k];
    load.resident = !load.prologue_only;
    const auto [same, is_new] = kept.try_emplace({load.first_stretch, load.stretch_count}, static_cast<std::uint32_t>(loads.size()));
    if (!is_new && load.resident && loads[same->second].resident) {
      renumbered[k] = same->second;
      loads[same->second].uses = loads[same->second].uses.hull(load.uses);
      continue;
    }
    renumbered[k] = static_cast<std::uint32_t>(loads.size());
    loads.push_back(load);
    costs.load.push_back(draft.costs.load[k]);
    costs.decode.push_back(draft.costs.decode[k]);
  }
  draft.schedule.loads = std::move(loads);
  draft.costs = std::move(costs);
  for (OperandSpec& operand : draft.schedule.operands)
    if (operand.load != kReadInStep) operand.load = renumbered[operand.load];
  for (StepSpec& step : draft.schedule.steps) {
    step.loads_needed = 0;
    for (std::uint32_t o = step.first_operand; o < step.first_operand + step.operand_count; ++o)
      if (draft.schedule.operands[o].load != kReadInStep)
        step.loads_needed = std::max(step.loads_needed, draft.schedule.operands[o].load + 1);
  }
  draft.base = resident_bytes(draft.schedule);
  draft.table_bytes = table_bytes(problem, draft.schedule);
}

/// Addresses of what is kept. Returns the end of the kept loads, and of all with the transforms.
inline std::pair<std::uint64_t, std::uint64_t> place_kept(const Problem& problem, const Schedule& schedule, Candidate& candidate) {
  std::vector<std::uint32_t> load_of_piece(problem.pieces.all.size(), ~0u);
  std::uint64_t at = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    if (!load.resident) continue;
    if (load.piece != kNoPiece) {
      load_of_piece[load.piece] = static_cast<std::uint32_t>(k);
      continue;
    }
    candidate.placement.offsets[k] = at;
    at += load.region_bytes();
  }
  for (std::uint32_t piece : problem.residency.front()) {
    if (load_of_piece[piece] == ~0u) continue;
    candidate.placement.offsets[load_of_piece[piece]] = at;
    at += problem.pieces.all[piece].region_bytes();
  }
  const std::uint64_t loads_end = at;
  for (const DerivedSpec& derived : schedule.derived) {
    candidate.derived_offsets.push_back(at);
    at += derived.bytes;
  }
  return {loads_end, at};
}

inline Candidate finish(const Problem& problem, Draft draft, FixedLayout layout, Policy policy, LoadPlacement placement) {
  Candidate candidate;
  candidate.policy = policy;
  candidate.base = draft.base;
  candidate.table_bytes = draft.table_bytes;
  candidate.placement = std::move(placement);
  const auto [kept_end, all_kept_end] = place_kept(problem, draft.schedule, candidate);
  const std::uint64_t regions_end = std::max(kept_end, candidate.placement.height);
  std::uint64_t fixed_end = all_kept_end;
  for (std::size_t i = 0; i < layout.items.size(); ++i)
    if (layout.items[i].size > 0) fixed_end = std::max(fixed_end, draft.base + layout.offsets[i] + layout.items[i].size);
  // A kernel may read past the last weight of the arena.
  candidate.arena_bytes = std::max(fixed_end, regions_end == 0 ? 0 : regions_end + kernels::kReadTail.count());
  candidate.seconds = simulate(draft.schedule, draft.costs, candidate.placement.gates, problem.objective_run()).seconds();
  candidate.schedule = std::move(draft.schedule);
  candidate.layout = std::move(layout);
  return candidate;
}

/// The space that a draft leaves for streamed loads; empty if the draft does not fit `capacity`.
inline Interval<std::uint64_t> arena_for_loads(const Draft& draft, std::uint64_t capacity) {
  const std::uint64_t tail = kernels::kReadTail.count();
  const std::uint64_t arena = draft.arena(capacity);
  if (draft.base + draft.layout.height > arena || draft.base + tail > arena) return {};
  return {draft.base, std::max(draft.base, align_down(arena - tail, kBlockBytes))};
}

/// Places a draft by the rule, above what is kept and below `capacity`. Nothing if it does not fit.
inline std::optional<Candidate> complete(const Problem& problem, Draft draft, Policy policy, std::uint64_t capacity, PlaceRule rule) {
  problem.shared->pack(draft.layout);
  if (draft.base + std::max(draft.layout.height, kernels::kReadTail.count()) > draft.arena(capacity)) return std::nullopt;
  rule.arena = arena_for_loads(draft, capacity);
  auto placement = place_loads(draft.schedule, fixed_rects(draft.layout, draft.schedule, draft.base), rule);
  if (!placement) return std::nullopt;
  FixedLayout layout = draft.layout;
  return finish(problem, std::move(draft), std::move(layout), policy, std::move(*placement));
}

}  // namespace sluice::planner
