// The paper's planning rule (FlexNN, MobiCom'24) on our kernels and format: the baseline of the experiments.
//
//     top     | act 1 | act 3 |        1. activations first, alternately at both ends: one gap stays between them
//             |   one gap     |        2. weights node by node, each at the earliest time that finds room
//     bottom  | act 0 | act 2 |        3. workspaces in what is left; a node whose workspace does not fit loses its neighbours' preload
//
// Slices are as few as the budget allows: a weight is cut only when the whole of it does not fit beside the activations. Latency is not
// asked about; the simulator only prices the result. If the rule finds no plan, `--policy flexnn` loads on demand, and the plan is named
// on_demand; tables of policies say "none" there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/place/free_space.h"

namespace sluice::planner {

namespace detail {

/// Loads each weight by one load of its own.
inline SliceRule uncut_slices() { return {.target = std::uint64_t{1} << 60, .span_nodes = false, .ramp = false}; }

/// Free runs of [0, top) once `taken` is out.
inline std::vector<Interval<std::uint64_t>> free_runs(std::vector<Interval<std::uint64_t>> taken, std::uint64_t top) {
  sluice::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<Interval<std::uint64_t>> runs;
  std::uint64_t from = 0;
  for (const auto& run : taken) {
    if (run.begin > from) runs.push_back({from, run.begin});
    from = std::max(from, run.end);
  }
  if (from < top) runs.push_back({from, top});
  return runs;
}

/// Step 1: offsets of blocks below `top`, or false when they do not fit.
inline bool place_at_both_ends(FixedLayout& layout, std::uint64_t top) {
  std::vector<std::size_t> order(layout.blocks);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  sluice::stable_sort(order.begin(), order.end(),
                      [&](std::size_t a, std::size_t b) { return layout.items[a].time.begin < layout.items[b].time.begin; });
  std::vector<std::size_t> placed;
  bool at_bottom = true;
  for (std::size_t i : order) {
    std::vector<Interval<std::uint64_t>> taken;
    for (std::size_t p : placed)
      if (layout.items[p].time.overlaps(layout.items[i].time))
        taken.push_back({layout.offsets[p], layout.offsets[p] + layout.items[p].size});
    std::optional<std::uint64_t> at;
    for (const auto& run : free_runs(std::move(taken), top)) {
      if (run.size() < layout.items[i].size) continue;
      if (at_bottom && at) break;
      at = at_bottom ? run.begin : run.end - layout.items[i].size;
    }
    if (!at) return false;
    layout.offsets[i] = *at;
    placed.push_back(i);
    at_bottom = !at_bottom;
  }
  return true;
}

/// Step 3 for one position: an offset for its workspace while its steps run, among activations and placed loads.
inline std::optional<std::uint64_t> find_workspace(const FixedLayout& layout, const Schedule& schedule, const LoadPlacement& placement,
                                                   std::size_t position, std::uint64_t base, std::uint64_t top) {
  std::vector<Interval<std::uint64_t>> taken;
  const auto at = static_cast<std::int64_t>(position);
  for (std::size_t b = 0; b < layout.blocks; ++b)
    if (layout.items[b].time.contains(at)) taken.push_back({layout.offsets[b], layout.offsets[b] + layout.items[b].size});
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    const Interval<std::int64_t> live{placement.gates[k], load.uses.end};
    if (load.resident || !live.overlaps(schedule.steps_of[position])) continue;
    taken.push_back({placement.offsets[k] - base, placement.offsets[k] - base + load.region_bytes()});
  }
  for (const auto& run : free_runs(std::move(taken), top)) {
    const std::uint64_t begin = align_up(run.begin, kBufferAlignment);
    if (begin + layout.workspace(position).size <= run.end) return begin;
  }
  return std::nullopt;
}

/// The rule in an arena of so many bytes. `uncut`: the draft whose weights are whole, for the resident segment and the workspaces.
inline std::optional<Candidate> flexnn_within(const Problem& problem, const Draft& uncut, std::uint64_t arena, double to_beat) {
  constexpr int kMostRounds = 64;  // of planning again without some preload
  const std::uint64_t base = uncut.base;
  if (base >= arena) return std::nullopt;
  const std::uint64_t top = align_down(arena - base, kBufferAlignment);
  FixedLayout layout = uncut.layout;
  layout.offsets.assign(layout.items.size(), 0);
  if (!place_at_both_ends(layout, top)) return std::nullopt;
  layout.height = top;

  FixedLayout blocks_only = layout;
  for (std::size_t i = layout.blocks; i < layout.items.size(); ++i) blocks_only.items[i].size = 0;
  SliceRule slices = uncut_slices();
  slices.room = Room::beside_blocks(layout, problem.views.order.size()).within(top);
  Draft cut = make_draft(problem, slices);
  if (std::max(cut.costs.compute, reading_seconds(cut.schedule, cut.costs, problem.objective_run())) >= to_beat) return std::nullopt;
  layout.items = cut.layout.items;
  for (std::size_t i = 0; i < layout.blocks; ++i) blocks_only.items[i] = layout.items[i];

  PlaceRule rule;
  rule.arena = {base, align_down(arena - kernels::kReadTail.count(), kBlockBytes)};
  rule.least_gates.assign(cut.schedule.loads.size(), 0);
  for (int round = 0; round < kMostRounds; ++round) {
    auto placement = place_loads(cut.schedule, fixed_rects(blocks_only, cut.schedule, base), rule);
    if (!placement) return std::nullopt;
    bool again = false;
    for (std::size_t p = 0; p < problem.views.order.size(); ++p) {
      if (layout.workspace(p).size == 0) continue;
      const auto offset = find_workspace(layout, cut.schedule, *placement, p, base, top);
      if (offset) {
        layout.offsets[layout.blocks + p] = *offset;
        continue;
      }
      const Interval<std::int64_t> steps = cut.schedule.steps_of[p];
      bool preloaded = false;  // loads that are here only for later nodes: they wait until this one is over
      for (std::size_t k = 0; k < cut.schedule.loads.size(); ++k) {
        const LoadSpec& load = cut.schedule.loads[k];
        if (load.resident || load.uses.begin < steps.end || placement->gates[k] >= steps.end) continue;
        rule.least_gates[k] = std::max(rule.least_gates[k], steps.end);
        preloaded = true;
      }
      if (!preloaded) return std::nullopt;
      again = true;
    }
    if (!again) return finish(problem, std::move(cut), std::move(layout), Policy::kFlexnn, std::move(*placement));
  }
  return std::nullopt;
}

}  // namespace detail

/// The rule's plan, or nothing when it finds none, or when its reading or computing alone takes `to_beat` seconds. What its tables take is
/// not its arena's, as with every policy; smaller slices have more of them, so a few arenas are tried until one leaves enough.
inline std::optional<Candidate> flexnn_candidate(const Problem& problem, std::uint64_t capacity,
                                                 double to_beat = std::numeric_limits<double>::infinity()) {
  constexpr std::size_t kMostBlocks = 4096;  // the rule's search for room costs their square
  constexpr int kMostArenas = 4;
  const Draft uncut = make_draft(problem, detail::uncut_slices());
  if (uncut.layout.blocks > kMostBlocks) return std::nullopt;
  std::uint64_t tables = uncut.table_bytes;
  for (int i = 0; i < kMostArenas; ++i) {
    if (tables >= capacity) return std::nullopt;
    std::optional<Candidate> candidate = detail::flexnn_within(problem, uncut, capacity - tables, to_beat);
    if (!candidate || candidate->table_bytes <= tables) return candidate;
    tables = candidate->table_bytes;
  }
  return std::nullopt;
}

}  // namespace sluice::planner
