// The policies: which candidates are made and which one is kept.
//
//   resident    all weights kept; loads are gated by nothing
//   on_demand   a load starts when the step before its first use is over: the least memory, and the fallback of the others
//   flexnn      the paper's rule (planner/flexnn.h)
//   sluice      the best simulated of all: resident if it fits, else slice sizes x kept bytes x transforms, streamed
//
// Invariants: the least capacity of a policy is found first and is exact, because its candidate is kept as the fallback: what fits at the
// least capacity fits at every larger one. Candidates come in a fixed order and a later one must be better by 0.1 % to win, so a request
// always gives the same plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/candidate.h"
#include "sluice/planner/drafts.h"
#include "sluice/planner/flexnn.h"
#include "sluice/planner/room.h"
#include "sluice/planner/stream.h"

namespace sluice::planner {

/// Stands for "no limit"; low enough that offsets never overflow.
inline constexpr std::uint64_t kEndlessArena = std::uint64_t{1} << 60;

inline std::optional<Candidate> resident_candidate(const Problem& problem, std::uint64_t target, std::uint64_t capacity,
                                                   std::vector<bool> derived = {}) {
  std::uint64_t weights = 0;
  for (const Piece& piece : problem.pieces.all) weights += piece.payload.size.count();
  if (derived.empty() && weights > capacity) return std::nullopt;
  Draft draft = make_draft(problem, {.target = target, .derived = std::move(derived)});
  keep_all(problem, draft);
  return complete(problem, draft, Policy::kResident, capacity, {});
}

inline std::optional<Candidate> place_on_demand(const Problem& problem, const Draft& draft, std::uint64_t capacity) {
  PlaceRule rule;
  rule.preload = false;
  return complete(problem, draft, Policy::kOnDemand, capacity, rule);
}

inline constexpr std::uint64_t kResidentTarget = 4u << 20;
inline constexpr std::uint64_t kFinest = 1;

/// The candidate of least memory that a policy may use: its arena and what its tables take. The finest cut has the smallest arena and the
/// longest tables; then weights are cut no finer than that arena, or a little more, asks for.
inline Candidate least_candidate(const Problem& problem, Policy policy) {
  std::optional<Candidate> least;
  const auto keep_smaller = [&](std::optional<Candidate> candidate) {
    if (candidate && (!least || candidate->bytes() < least->bytes())) least = std::move(candidate);
  };
  if (policy != Policy::kResident) {
    Candidate finest = *place_on_demand(problem, make_draft(problem, {.target = kFinest, .hold = false}), kEndlessArena);
    if (finest.table_bytes > 0) {
      const Room room = Room::beside_blocks(finest.layout, problem.views.order.size());
      for (const int more : {0, 64 << 10, 256 << 10}) {
        const SliceRule rule{.room = room.within(finest.arena_bytes - finest.base + static_cast<std::uint64_t>(more)), .hold = false};
        keep_smaller(place_on_demand(problem, make_draft(problem, rule), kEndlessArena));
      }
    }
    keep_smaller(std::move(finest));
  }
  if (policy == Policy::kResident || policy == Policy::kSluice)
    keep_smaller(resident_candidate(problem, kResidentTarget, least ? least->bytes() : kEndlessArena));
  return std::move(*least);
}

/// Cuts at which keeping every weight is tried: the disk's rate, an early start, few steps.
inline constexpr std::uint64_t kResidentTargets[] = {4u << 20, 1u << 20, 256u << 10, 32u << 20};

/// More than this no plan has a use for: it keeps every weight at each of the cuts. A rule that works from both ends of the arena would
/// otherwise put a buffer at the far end of an endless one. `capacity` itself, if it is no larger than all that there is.
inline std::uint64_t ample_capacity(const Problem& problem, const Candidate& least, std::uint64_t capacity) {
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

/// Bytes that every plan keeps: the resident segment.
inline std::uint64_t segment_bytes(const Problem& problem, const Candidate& least) {
  return least.policy == Policy::kResident ? make_draft(problem, {.target = kResidentTarget}).base : least.base;
}

inline void offer_on_demand(Search& search, const Candidate& least) {
  const Room room = Room::beside_blocks(least.layout, search.problem.views.order.size());
  SliceRule rule{.room = room.within(search.capacity - segment_bytes(search.problem, least))};
  for (std::size_t size = kTargets.size(); size-- > 0;) {
    rule.target = kTargets[size];
    const Draft draft = make_draft(search.problem, rule);
    // Nothing is read beside computing, so this is what it takes at least; smaller slices take longer.
    const double serial = draft.costs.compute + reading_seconds(draft.schedule, draft.costs, search.problem.objective_run());
    if (!search.promises(serial)) return;
    search.offer(place_on_demand(search.problem, draft, search.capacity));
  }
}

/// Everything kept, and transforms in place of raw weights as far as memory goes.
inline void derive_all(Search& search, std::uint64_t target) {
  const Problem& problem = search.problem;
  const std::optional<Candidate> raw = resident_candidate(problem, target, search.capacity);
  if (!raw || problem.options.empty()) return;
  const std::uint64_t spare = search.capacity - raw->bytes();
  // A raw weight needs room beside what is kept until it is transformed, so not all of the spare bytes can be had.
  for (const std::uint64_t percent : {100, 95, 85, 70, 50, 25}) {
    auto candidate = resident_candidate(problem, target, search.capacity,
                                        choose_derived(problem.options, problem.views.order.size(), spare / 100 * percent));
    if (!candidate) continue;
    search.offer(std::move(candidate));
    return;
  }
}

inline void best_of_all(Search& search, const Candidate& least) {
  const Problem& problem = search.problem;
  for (const std::uint64_t target : kResidentTargets) search.offer(resident_candidate(problem, target, search.capacity));
  const bool all_fit = search.best.has_value();
  if (all_fit && problem.repeat)
    for (const std::uint64_t target : kResidentTargets) derive_all(search, target);
  // Nothing waits for a gate then, and later runs read nothing: where there is room for every weight, every weight stays.
  if (all_fit && problem.options.empty()) return;
  search.offer(flexnn_candidate(problem, search.capacity));
  const Room room = Room::beside_blocks(least.layout, problem.views.order.size());
  StreamDrafts(problem, room, segment_bytes(problem, least), least.bytes(), search).stream_all();
  offer_on_demand(search, least);
}

}  // namespace detail

/// The policy's choice at a capacity that is not below `least`, in `search.best`. Where a policy's own rule finds nothing, its least
/// candidate stands in.
inline void choose(Search& search, Policy policy, const Candidate& least) {
  const Problem& problem = search.problem;
  switch (policy) {
    case Policy::kResident:
      search.offer(resident_candidate(problem, kResidentTarget, search.capacity));
      break;
    case Policy::kFlexnn:
      search.offer(flexnn_candidate(problem, search.capacity));
      if (search.best) break;
      [[fallthrough]];
    case Policy::kOnDemand:
      detail::offer_on_demand(search, least);
      break;
    case Policy::kSluice:
      detail::best_of_all(search, least);
      break;
  }
  if (policy == Policy::kSluice) search.offer(least);
  if (!search.best) search.best = least;
  search.best->policy = policy;
}

}  // namespace sluice::planner
