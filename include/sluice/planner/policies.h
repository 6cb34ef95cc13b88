// The policies: which candidates are made and which one is kept.
//
//   resident    all weights kept; loads are gated by nothing
//   on_demand   a load starts when the step before its first use is over: the least memory, and the fallback of the others
//   flexnn      the paper's rule (planner/flexnn.h)
//   sluice      the best simulated of all: resident if it fits, else slice sizes x address rules x residency
//
// Invariants: the least capacity of a policy is found first and is exact, because its candidate is kept as the fallback: what fits at the
// least capacity fits at every larger one. Candidates come in a fixed order and a later one must be better by 0.1 % to win, so a request
// always gives the same plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/planner/candidate.h"
#include "sluice/planner/flexnn.h"
#include "sluice/planner/residency.h"

namespace sluice::planner {

/// Stands for "no limit"; low enough that offsets never overflow.
inline constexpr std::uint64_t kEndlessArena = std::uint64_t{1} << 60;

inline double objective(const Problem& problem, const Candidate& candidate) { return problem.repeat ? candidate.period : candidate.cold; }

inline constexpr double kWorthwhile = 0.999;

/// Keeps the better of two candidates; on a near tie the one that came first.
inline void keep_better(const Problem& problem, std::optional<Candidate>& best, std::optional<Candidate> candidate) {
  if (!candidate) return;
  if (!best || objective(problem, *candidate) < objective(problem, *best) * kWorthwhile) best = std::move(candidate);
}

inline std::optional<Candidate> resident_candidate(const Problem& problem, std::uint64_t target, std::uint64_t capacity,
                                                   std::vector<bool> derived = {}) {
  Draft draft = make_draft(problem, {.target = target, .derived = std::move(derived)});
  keep_resident(draft, std::vector<bool>(draft.schedule.loads.size(), true));
  return complete(draft, Policy::kResident, capacity, {});
}

inline std::optional<Candidate> on_demand_candidate(const Problem& problem, const SliceRule& slices, std::uint64_t capacity) {
  PlaceRule rule;
  rule.preload = false;
  return complete(make_draft(problem, slices), Policy::kOnDemand, capacity, rule);
}

inline constexpr std::uint64_t kResidentTarget = 4u << 20;
/// Loads of 1-4 MB read at the disk's full rate; smaller ones are for budgets that hold no more. The largest comes last: it saves steps
/// where memory abounds, and has to show it.
inline constexpr std::uint64_t kTargets[] = {4u << 20, 2u << 20, 1u << 20, 512u << 10, 256u << 10, 128u << 10, 64u << 10, 32u << 20};
inline constexpr std::uint64_t kFinest = 1;

/// The candidate of least memory that a policy may use.
inline Candidate least_candidate(const Problem& problem, Policy policy) {
  std::optional<Candidate> least;
  const auto keep_smaller = [&](std::optional<Candidate> candidate) {
    if (candidate && (!least || candidate->arena_bytes < least->arena_bytes)) least = std::move(candidate);
  };
  if (policy != Policy::kResident)
    for (const std::uint64_t target : {kFinest, std::uint64_t{64} << 10, std::uint64_t{512} << 10})
      keep_smaller(on_demand_candidate(problem, {.target = target}, kEndlessArena));
  if (policy == Policy::kResident || policy == Policy::kSluice) keep_smaller(resident_candidate(problem, kResidentTarget, kEndlessArena));
  return std::move(*least);
}

/// By position, what a load may have at `capacity`: the free run beside the activations over `depth` loads at a time.
inline std::vector<std::uint64_t> room_for_loads(const Problem& problem, const FixedLayout& layout, std::uint64_t base,
                                                 std::uint64_t capacity, std::uint64_t depth) {
  std::vector<std::uint64_t> room = free_room(layout, problem.views.order.size(), base, capacity);
  const std::vector<std::uint64_t> beside = bytes_beside_slices(problem);
  for (std::size_t p = 0; p < room.size(); ++p) {
    room[p] /= depth;
    room[p] -= std::min(room[p], beside[p]);
  }
  return room;
}

inline std::optional<Candidate> best_on_demand(const Problem& problem, const Candidate& least, std::uint64_t capacity) {
  std::optional<Candidate> best;
  const SliceRule slices{.room = room_for_loads(problem, least.layout, least.base, capacity, 1)};
  for (const std::uint64_t target : kTargets) {
    SliceRule rule = slices;
    rule.target = target;
    keep_better(problem, best, on_demand_candidate(problem, rule, capacity));
  }
  return best;
}

/// Streams a draft by each address rule, unless its fluid bound says that it cannot beat the best.
inline void stream(const Problem& problem, const Draft& draft, std::uint64_t capacity, std::optional<Candidate>& best) {
  const double bound = fluid_bound(draft.schedule, draft.costs, draft.layout, capacity, !problem.repeat);
  for (const AddressRule address : {AddressRule::kLowest, AddressRule::kHighest, AddressRule::kRing}) {
    if (best && bound > objective(problem, *best) * kWorthwhile) return;
    PlaceRule rule;
    rule.address = address;
    keep_better(problem, best, complete(draft, Policy::kSluice, capacity, rule));
  }
}

/// Slice sizes x address rules with no more residents than the resident segment.
inline void stream_all(const Problem& problem, const Candidate& least, std::uint64_t capacity, std::optional<Candidate>& best) {
  for (const std::uint64_t depth : {2, 3}) {
    SliceRule rule{.room = room_for_loads(problem, least.layout, least.base, capacity, depth)};
    for (const std::uint64_t target : kTargets) {
      rule.target = target;
      stream(problem, make_draft(problem, rule), capacity, best);
    }
  }
}

/// Streams with a share of the spare memory given to weights that stay. Only worth it for repeated runs: one run reads all of them anyway.
inline void stream_the_rest(const Problem& problem, const Candidate& least, std::uint64_t capacity, std::optional<Candidate>& best) {
  const std::uint64_t spare = capacity - least.arena_bytes;
  for (const std::uint64_t twentieths : {20, 19, 17, 14, 10, 6, 3}) {
    const std::uint64_t kept = spare / 20 * twentieths;
    SliceRule rule{.room = room_for_loads(problem, least.layout, least.base, capacity - kept, 2)};
    for (const std::uint64_t target : {kTargets[0], kTargets[2], kTargets[4]}) {
      rule.target = target;
      const Draft draft = make_draft(problem, rule);
      for (const ResidencyOrder order : {ResidencyOrder::kFront, ResidencyOrder::kEven}) {
        Draft with_residents = draft;
        keep_resident(with_residents, choose_resident(draft.schedule, kept, order));
        stream(problem, with_residents, capacity, best);
      }
    }
  }
}

/// Cuts at which keeping every weight is tried: the disk's rate, an early start, few steps.
inline constexpr std::uint64_t kResidentTargets[] = {kTargets[0], kTargets[2], kTargets[4], kTargets[7]};

/// More than this no plan has a use for: it keeps every weight at each of the cuts. A rule that works from both ends of the arena would
/// otherwise put a buffer at the far end of an endless one.
inline std::uint64_t ample_capacity(const Problem& problem, const Candidate& least) {
  std::uint64_t ample = least.arena_bytes;
  for (const std::uint64_t target : kResidentTargets) {
    ample = std::max(ample, resident_candidate(problem, target, kEndlessArena)->arena_bytes);
    if (problem.options.empty()) continue;
    std::vector<bool> all = choose_derived(problem.options, problem.views.order.size(), kEndlessArena);
    ample = std::max(ample, resident_candidate(problem, target, kEndlessArena, std::move(all))->arena_bytes);
  }
  return ample;
}

/// Everything kept, and transforms in place of raw weights as far as memory goes.
inline void derive_all(const Problem& problem, std::uint64_t target, std::uint64_t capacity, std::optional<Candidate>& best) {
  const std::optional<Candidate> raw = resident_candidate(problem, target, capacity);
  if (!raw || problem.options.empty()) return;
  const std::uint64_t spare = capacity - raw->arena_bytes;
  // A raw weight needs room beside what is kept until it is transformed, so not all of the spare bytes can be had.
  for (const std::uint64_t percent : {100, 95, 85, 70, 50, 25}) {
    auto candidate =
        resident_candidate(problem, target, capacity, choose_derived(problem.options, problem.views.order.size(), spare / 100 * percent));
    if (!candidate) continue;
    keep_better(problem, best, std::move(candidate));
    return;
  }
}

inline std::optional<Candidate> best_of_all(const Problem& problem, const Candidate& least, std::uint64_t capacity) {
  std::optional<Candidate> best;
  for (const std::uint64_t target : kResidentTargets) keep_better(problem, best, resident_candidate(problem, target, capacity));
  if (best && problem.repeat)
    for (const std::uint64_t target : kResidentTargets) derive_all(problem, target, capacity, best);
  // Nothing waits for a gate then, and later runs read nothing: where there is room for every weight, every weight stays.
  if (best) return best;
  keep_better(problem, best, flexnn_candidate(problem, capacity));
  stream_all(problem, least, capacity, best);
  if (problem.repeat) stream_the_rest(problem, least, capacity, best);
  keep_better(problem, best, best_on_demand(problem, least, capacity));
  return best;
}

/// The policy's choice at a capacity that is not below `least`. Where a policy's own rule finds nothing, its least candidate stands in.
inline Candidate choose(const Problem& problem, Policy policy, const Candidate& least, std::uint64_t capacity) {
  std::optional<Candidate> best;
  switch (policy) {
    case Policy::kResident:
      best = resident_candidate(problem, kResidentTarget, capacity);
      break;
    case Policy::kOnDemand:
      best = best_on_demand(problem, least, capacity);
      break;
    case Policy::kFlexnn:
      best = flexnn_candidate(problem, capacity);
      if (!best) best = best_on_demand(problem, least, capacity);
      break;
    case Policy::kSluice:
      best = best_of_all(problem, least, capacity);
      break;
  }
  if (!best || policy == Policy::kSluice) keep_better(problem, best, least);
  best->policy = policy;
  return std::move(*best);
}

}  // namespace sluice::planner
