// The policies: which candidates each of them makes.
//
//   resident    all weights kept; loads are gated by nothing
//   on_demand   a load starts when the step before its first use is over: the least memory, and the fallback of the others
//   flexnn      the paper's rule (planner/choose/flexnn.h); where it finds no plan, on_demand stands in, and the plan bears that name
//   sluice      the best simulated of all (planner/choose/choose.h)
//
// Invariant: the least capacity of a policy is found first and is exact, because its candidate is kept as the fallback: what fits at the
// least capacity fits at every larger one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/choose/draft_search.h"
#include "sluice/planner/choose/flexnn.h"
#include "sluice/planner/choose/stream_draft.h"
#include "sluice/planner/place/free_space.h"

namespace sluice::planner {

/// By Policy. What chooses a policy by its name reads them here.
inline constexpr std::string_view kPolicyNames[] = {"sluice", "resident", "on_demand", "flexnn"};

/// Stands for "no limit"; low enough that offsets never overflow.
inline constexpr std::uint64_t kEndlessArena = std::uint64_t{1} << 60;

inline constexpr std::uint64_t kWholeTarget = 32u << 20;

inline std::optional<Candidate> resident_candidate(const Problem& problem, std::uint64_t target, std::uint64_t capacity,
                                                   std::vector<bool> derived = {}) {
  std::uint64_t weights = 0;
  for (const Piece& piece : problem.pieces.all) weights += piece.payload.held_bytes();
  if (derived.empty() && weights > capacity) return std::nullopt;
  // Small first loads are for the first run: later ones would pay for the steps. At one size they do not.
  const bool ramp = !problem.repeat || target < kWholeTarget;
  Draft draft = make_draft(problem, {.target = target, .ramp = ramp, .derived = std::move(derived), .keeps_all = true});
  keep_all(problem, draft);
  return complete(problem, std::move(draft), Policy::kResident, capacity, {});
}

inline std::optional<Candidate> place_on_demand(const Problem& problem, Draft draft, std::uint64_t capacity) {
  PlaceRule rule;
  rule.preload = false;
  return complete(problem, std::move(draft), Policy::kOnDemand, capacity, rule);
}

inline constexpr std::uint64_t kResidentTarget = 4u << 20;
inline constexpr std::uint64_t kFinest = 1;

/// The candidate of least memory: where it fits, a plan exists.
struct Least {
  Candidate candidate;  // of a sampled schedule, where weights are cut
  SliceRule rule;       // that cuts them

  std::uint64_t bytes() const noexcept { return candidate.bytes(); }
};

/// The candidate of least memory that a policy may use: its arena and what its tables take. The finest cut has the smallest arena and the
/// longest tables; then weights are cut no finer than that arena, or a little more, asks for. On demand each slice lies where the one
/// before it lay, so that a sample of the slices has the arena of all of them.
inline Least least_candidate(const Problem& problem, Policy policy) {
  std::optional<Least> least;  // and no other: candidates of thousands of steps are most of what planning holds
  const auto keep = [&](std::optional<Candidate> candidate, SliceRule rule, bool no_smaller) {
    const bool kept = candidate && (!least || candidate->bytes() < least->bytes() + (no_smaller ? 1 : 0));
    if (kept) least = Least{std::move(*candidate), std::move(rule)};
    return kept;
  };
  if (policy != Policy::kResident) {
    SliceRule rule{.target = kFinest, .hold = false, .sample = true};
    keep(place_on_demand(problem, make_draft(problem, rule), kEndlessArena), rule, true);
    if (least->candidate.table_bytes > 0) {
      const std::uint64_t arena = least->candidate.arena_bytes - least->candidate.base;
      const Room room = Room::beside_blocks(least->candidate.layout, problem.views.order.size());
      bool is_finest = true;
      for (const int more : {0, 64 << 10, 256 << 10}) {
        const SliceRule coarse{.room = room.within(arena + static_cast<std::uint64_t>(more)), .hold = false, .sample = true};
        if (keep(place_on_demand(problem, make_draft(problem, coarse), kEndlessArena), coarse, is_finest)) is_finest = false;
      }
    }
  }
  if (policy == Policy::kResident || policy == Policy::kSluice)
    keep(resident_candidate(problem, kResidentTarget, least ? least->bytes() : kEndlessArena), {}, false);
  return std::move(*least);
}

/// The least candidate with all its steps.
inline Candidate complete_least(const Problem& problem, const Least& least) {
  if (!least.rule.sample) return least.candidate;
  SliceRule rule = least.rule;
  rule.sample = false;
  return *place_on_demand(problem, make_draft(problem, rule), kEndlessArena);
}

/// Cuts at which keeping every weight is tried: the disk's rate, an early start, few steps.
inline constexpr std::uint64_t kResidentTargets[] = {4u << 20, 1u << 20, 256u << 10, kWholeTarget};

/// More than this no plan has a use for: it keeps every weight at each of the cuts. A rule that works from both ends of the arena would
/// otherwise put a buffer at the far end of an endless one. `capacity` itself, if it is no larger than all that there is.
inline std::uint64_t ample_capacity(const Problem& problem, const Least& least, std::uint64_t capacity) {
  std::uint64_t all = least.bytes();
  for (const Piece& piece : problem.pieces.all) all += piece.region_bytes();
  for (const DeriveOption& option : problem.options) all += option.derived_bytes;
  if (capacity <= all) return capacity;
  std::uint64_t ample = least.bytes();
  for (const std::uint64_t target : kResidentTargets) {
    ample = std::max(ample, resident_candidate(problem, target, kEndlessArena)->bytes());
    if (problem.options.empty()) continue;
    std::vector<bool> transformed = choose_derived(problem.options, problem.views.order.size(), kEndlessArena);
    ample = std::max(ample, resident_candidate(problem, target, kEndlessArena, std::move(transformed))->bytes());
  }
  return std::min(ample, capacity);
}

namespace detail {

/// Common to all plans of a problem: the addresses of activations, and the bytes of the resident segment.
inline Ground ground_of(const Problem& problem, const Least& least) {
  const bool resident = least.candidate.policy == Policy::kResident;
  return {Room::beside_blocks(least.candidate.layout, problem.views.order.size()),
          resident ? make_draft(problem, {.target = kResidentTarget}).base : least.candidate.base, least.bytes(), least.rule};
}

/// A lower bound: nothing is read while steps compute, and each step that reads waits for the loader, which has waited for the step.
inline double on_demand_seconds(const Problem& problem, const Draft& draft) {
  const Run run = problem.objective_run();
  std::int64_t waits = 0;
  std::int64_t former = -1;
  for (const LoadSpec& load : draft.schedule.loads) {
    if ((run == Run::kPeriod && !load.streamed()) || load.uses.begin == former) continue;
    former = load.uses.begin;
    ++waits;
  }
  return draft.costs.compute + reading_seconds(draft.schedule, draft.costs, run) +
         static_cast<double>(waits) * (draft.costs.load_start + draft.costs.wake);
}

inline void offer_on_demand(Search& search, const Ground& ground) {
  SliceRule rule{.room = ground.room.within(search.capacity - ground.segment)};
  std::uint64_t former = kEndlessArena;  // the largest load of the draft before
  for (std::size_t size = kTargets.size(); size-- > 0;) {
    if (former <= kTargets[size]) continue;
    rule.target = kTargets[size];
    Draft draft = make_draft(search.problem, rule);
    former = largest_load(draft.schedule);
    if (!search.promises(on_demand_seconds(search.problem, draft))) return;  // smaller slices take longer
    search.offer(place_on_demand(search.problem, std::move(draft), search.capacity));
  }
}

/// Everything kept, and transforms in place of raw weights as far as memory goes.
inline void offer_resident(Search& search, std::uint64_t target, bool transforms) {
  const Problem& problem = search.problem;
  std::optional<Candidate> raw = resident_candidate(problem, target, search.capacity);
  if (!raw) return;
  const std::uint64_t spare = search.capacity - raw->bytes();
  search.offer(std::move(raw));
  if (problem.options.empty() || !transforms) return;
  // A raw weight needs room beside the kept weights until it is transformed, so not all of the spare bytes can be used.
  for (const std::uint64_t percent : {100u, 95u, 85u, 70u, 50u, 25u}) {
    auto candidate = resident_candidate(problem, target, search.capacity,
                                        choose_derived(problem.options, problem.views.order.size(), spare / 100 * percent));
    if (!candidate) continue;
    search.offer(std::move(candidate));
    return;
  }
}

}  // namespace detail

/// A baseline's choice at a capacity that is not below `least`, in `search.best`. If the paper's rule finds nothing, loads on demand take
/// its place.
inline void choose_baseline(Search& search, Policy policy, const Least& least) {
  if (policy == Policy::kResident) search.offer(resident_candidate(search.problem, kResidentTarget, search.capacity));
  if (policy == Policy::kFlexnn) search.offer(flexnn_candidate(search.problem, search.capacity));
  if (!search.best && policy != Policy::kResident) detail::offer_on_demand(search, detail::ground_of(search.problem, least));
}

/// The plan that the default policy tries before it streams: every weight kept. True if nothing else need be tried.
inline bool keep_everything(Search& search) {
  const Problem& problem = search.problem;
  // Transforms are for repeated runs, to which it hardly matters in what pieces the first one read.
  for (const std::uint64_t target : kResidentTargets) detail::offer_resident(search, target, problem.repeat && target == kResidentTarget);
  // Nothing waits for a gate then, and later runs read nothing: where there is room for every weight, every weight stays.
  return search.best.has_value() && problem.options.empty();
}

/// The plans that it tries afterwards: the baselines, so that it is never worse than they are.
inline void try_baselines(Search& search, const Least& least) {
  if (!search.problem.search.baselines && search.best) return;
  search.worthwhile = 1;
  search.to_beat = std::numeric_limits<double>::infinity();
  search.offer(flexnn_candidate(search.problem, search.capacity, search.best ? search.best->seconds : search.to_beat));
  detail::offer_on_demand(search, detail::ground_of(search.problem, least));
}

}  // namespace sluice::planner
