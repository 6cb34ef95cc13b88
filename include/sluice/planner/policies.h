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
#include "sluice/planner/flexnn.h"
#include "sluice/planner/room.h"
#include "sluice/planner/stream.h"

namespace sluice::planner {

/// Stands for "no limit"; low enough that offsets never overflow.
inline constexpr std::uint64_t kEndlessArena = std::uint64_t{1} << 60;

inline std::optional<Candidate> resident_candidate(const Problem& problem, std::uint64_t target, std::uint64_t capacity,
                                                   std::vector<bool> derived = {}) {
  Draft draft = make_draft(problem, {.target = target, .derived = std::move(derived)});
  keep_all(problem, draft);
  return complete(problem, draft, Policy::kResident, capacity, {});
}

inline std::optional<Candidate> on_demand_candidate(const Problem& problem, const SliceRule& slices, std::uint64_t capacity) {
  PlaceRule rule;
  rule.preload = false;
  return complete(problem, make_draft(problem, slices), Policy::kOnDemand, capacity, rule);
}

inline constexpr std::uint64_t kResidentTarget = 4u << 20;
/// Loads of 1-4 MB read at the disk's full rate; smaller ones are for budgets that hold no more. The largest comes last: it saves steps
/// where memory abounds, and has to show it.
inline constexpr std::uint64_t kTargets[] = {4u << 20, 2u << 20, 1u << 20, 512u << 10, 256u << 10, 128u << 10, 64u << 10, 32u << 20};
inline constexpr std::uint64_t kFinest = 1;

/// The candidate of least memory that a policy may use: its arena and what its tables take. The finest cut has the smallest arena and the
/// longest tables; then weights are cut no finer than that arena, or a little more, asks for.
inline Candidate least_candidate(const Problem& problem, Policy policy) {
  std::optional<Candidate> least;
  const auto keep_smaller = [&](std::optional<Candidate> candidate) {
    if (candidate && (!least || candidate->bytes() < least->bytes())) least = std::move(candidate);
  };
  if (policy != Policy::kResident) {
    const Candidate finest = *on_demand_candidate(problem, {.target = kFinest, .hold = false}, kEndlessArena);
    const Room room = Room::beside_blocks(finest.layout, problem.views.order.size());
    for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{64} << 10, std::uint64_t{256} << 10})
      keep_smaller(
          on_demand_candidate(problem, {.room = room.within(finest.arena_bytes - finest.base + more), .hold = false}, kEndlessArena));
    keep_smaller(finest);
  }
  if (policy == Policy::kResident || policy == Policy::kSluice) keep_smaller(resident_candidate(problem, kResidentTarget, kEndlessArena));
  return std::move(*least);
}

/// Cuts at which keeping every weight is tried: the disk's rate, an early start, few steps.
inline constexpr std::uint64_t kResidentTargets[] = {kTargets[0], kTargets[2], kTargets[4], kTargets[7]};

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

/// Everything that streams in one capacity.
class StreamPolicies {
 public:
  StreamPolicies(const Problem& problem, const Candidate& least, Search& search)
      : problem_(problem),
        least_(least),
        search_(search),
        room_(Room::beside_blocks(least.layout, problem.views.order.size())),
        segment_(segment_bytes()) {}

  void on_demand() {
    SliceRule rule{.room = room_.within(search_.capacity - segment_)};
    for (const std::uint64_t target : kTargets) {
      rule.target = target;
      search_.offer(on_demand_candidate(problem_, rule, search_.capacity));
    }
  }

  /// Slice sizes x shares of the spare memory that go to pieces and transforms that stay. Keeping is only worth it for repeated runs: one
  /// run reads everything anyway. All are judged by their fluid bounds; addresses are sought for the most promising first.
  void stream_all() {
    for (const std::uint64_t target : kTargets) add(rule_keeping(0, 0), target);
    const std::uint64_t spare = search_.capacity - std::min(search_.capacity, least_.bytes());
    for (const std::uint64_t twentieths : {20, 19, 17, 14, 10, 6, 3}) {
      if (!problem_.repeat) break;
      const std::uint64_t kept = spare / 20 * twentieths;
      for (const std::uint64_t target : {kTargets[0], kTargets[2], kTargets[4]}) add(rule_keeping(kept, 0), target);
      for (const std::uint64_t quarters : {1, 2, 4})
        if (!problem_.options.empty()) add(rule_keeping(kept, kept / 4 * quarters), kTargets[0]);
    }
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Judged& a, const Judged& b) { return a.bound < b.bound; });
    constexpr int kMostPlaced = 4;  // once something good is found; at the least budgets the promising drafts find no place at all
    constexpr double kGood = 1.02;
    int placed = 0;
    for (const Judged& judged : drafts_) {
      const double bound = judged.bound;
      search_.bound = std::min(search_.bound, bound);
      const double enough = placed++ < kMostPlaced ? kCloseEnough : kGood;
      if (search_.best && search_.best->seconds <= bound * enough) break;
      Draft draft = make_draft(problem_, judged.rule);
      stream(search_, draft, fluid_run(problem_, draft, search_.capacity));
    }
  }

 private:
  /// A draft is made again when its turn comes: dozens of them would take megabytes, in a process that has promised not to.
  struct Judged {
    SliceRule rule;
    double bound;
  };

  void add(SliceRule rule, std::uint64_t target) {
    rule.target = target;
    const Draft draft = make_draft(problem_, rule);
    // What nothing can beat costs less to find out than the fluid bound.
    const double pipe = std::max(draft.costs.compute, reading_seconds(draft.schedule, draft.costs, problem_.objective_run()));
    if (!search_.promises(pipe)) return;
    const FluidRun run = fluid_run(problem_, draft, search_.capacity);
    if (run.fluid.fits) drafts_.push_back({std::move(rule), run.times.seconds()});
  }

  /// `kept` bytes for pieces and transforms together.
  SliceRule rule_keeping(std::uint64_t kept, std::uint64_t for_transforms) {
    SliceRule rule{.room = room_.within(search_.capacity - std::min(search_.capacity, segment_ + kept)), .depth = 2};
    rule.pieces = &problem_.pieces;
    std::vector<bool> skipped;
    if (for_transforms > 0) {
      rule.derived = choose_derived_alone(problem_.options, problem_.views.order.size(), for_transforms);
      skipped.assign(problem_.pieces.all.size(), false);
      for (const DeriveOption& option : problem_.options) {
        if (!rule.derived[option.position]) continue;
        kept -= std::min(kept, option.derived_bytes);
        const WeightId weight = problem_.graph->node(problem_.views.order[option.position]).weights[0];
        const Interval<std::uint32_t> pieces = problem_.pieces.of_weight[weight.index()];
        for (std::uint32_t p = pieces.begin; p < pieces.end; ++p) skipped[p] = pieces.size() > 1 || alone(p, weight);
      }
    }
    rule.kept = keep_prefix(problem_.pieces, problem_.residency, kept, skipped);
    return rule;
  }

  bool alone(std::uint32_t piece, WeightId weight) const {
    return problem_.pieces.all[piece].stretch_count == problem_.graph->weight(weight).stretch_count;
  }

  /// What every plan keeps, and its transforms and pieces apart from it.
  std::uint64_t segment_bytes() const { return make_draft(problem_, {.target = kTargets[0]}).base; }

  const Problem& problem_;
  const Candidate& least_;
  Search& search_;
  std::vector<Judged> drafts_;
  const Room room_;
  const std::uint64_t segment_;  // bytes that every plan keeps
};

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
  StreamPolicies streams(problem, least, search);
  streams.on_demand();
  streams.stream_all();
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
      detail::StreamPolicies(problem, least, search).on_demand();
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
