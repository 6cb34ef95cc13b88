// From a draft to candidates: gates, trim, addresses, extension, in this order (planner.md section 3).
//
//     draft -> fluid gates -> T_LB: is it worth going on?
//                |-> trim (some slack) -> addresses by three rules -> extend left -> simulate -> the best one stays
//
// Where addresses cost more than the threshold, the same is tried with other slack; the ring (planner/ring.h) always gives something.
// Invariant: no candidate is faster than the draft's fluid bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "sluice/planner/candidate.h"
#include "sluice/planner/trim.h"

namespace sluice::planner {

inline constexpr double kWorthwhile = 0.999;
/// A candidate this close to its bound is not worked on further.
inline constexpr double kCloseEnough = 1.002;

/// The best candidate so far, and the least bound of all that was looked at.
struct Search {
  const Problem& problem;
  std::uint64_t capacity;
  std::optional<Candidate> best = {};
  double bound = std::numeric_limits<double>::infinity();

  /// Keeps the better of two candidates; on a near tie the one that came first.
  void offer(std::optional<Candidate> candidate) {
    if (!candidate) return;
    bound = std::min(bound, candidate->seconds);
    if (!best || candidate->seconds < best->seconds * kWorthwhile) best = std::move(candidate);
  }
  bool promises(double seconds) const noexcept { return !best || seconds < best->seconds * kWorthwhile; }
};

/// Fluid gates of a draft, and the run that they would give.
struct FluidRun {
  FluidGates fluid;
  Timeline times;
};

inline FluidRun fluid_run(const Problem& problem, const Draft& draft, std::uint64_t capacity) {
  FluidRun run;
  const std::uint64_t room = capacity - std::min(capacity, draft.base);
  run.fluid = fluid_gates(draft.schedule, live_by_step(draft.layout, draft.schedule), room, problem.objective_run(), problem.repeat);
  run.times = simulate(draft.schedule, draft.costs, run.fluid.gates, problem.objective_run());
  return run;
}

/// Tails in the way of a run's last loads cost them their place: then nothing goes round.
inline PlaceRule unwrapped(PlaceRule rule) {
  for (std::int64_t& gate : rule.least_gates) gate = std::max<std::int64_t>(gate, 0);
  return rule;
}

/// Streams a draft, unless its fluid bound says that it cannot beat the best.
inline void stream(Search& search, Draft& draft, const FluidRun& run) {
  const Problem& problem = search.problem;
  const double bound = run.times.seconds();
  if (!run.fluid.fits) return;
  search.bound = std::min(search.bound, bound);
  if (!search.promises(bound)) return;
  problem.memo->pack(draft.layout);
  if (arena_for_loads(draft, search.capacity).empty()) return;
  const std::vector<FixedRect> fixed = fixed_rects(draft.layout, draft.schedule, draft.base);
  PlaceRule rule;
  rule.arena = arena_for_loads(draft, search.capacity);
  for (const TrimSlack slack : {TrimSlack{}, TrimSlack{0.0, 0.5}, TrimSlack{1.0, 0.0}}) {
    rule.least_gates = trim_gates(draft.schedule, draft.costs, run.fluid.gates, run.times, problem.objective_run(), slack);
    for (const AddressRule address : {AddressRule::kLowest, AddressRule::kHighest, AddressRule::kRing}) {
      rule.address = address;
      auto placed = place_loads(draft.schedule, fixed, rule);
      if (!placed && problem.repeat) placed = place_loads(draft.schedule, fixed, unwrapped(rule));
      if (!placed) continue;
      search.offer(finish(problem, draft, draft.layout, Policy::kSluice, extend_left(draft.schedule, fixed, rule, std::move(*placed))));
      if (search.best && search.best->seconds <= bound * kCloseEnough) return;
    }
  }
}

/// The order of pieces whose prefixes stream best, judged by the fluid bound at three sizes (planner/residency.h). Constant for a model and
/// a profile, so that what one budget keeps a larger one keeps too, at the same addresses.
inline std::vector<std::uint32_t> best_residency(const Problem& problem) {
  constexpr std::uint64_t kTarget = 1u << 20;
  std::vector<double> compute;
  Draft whole = make_draft(problem, {.target = kTarget});
  problem.memo->pack(whole.layout);
  for (const Interval<std::int64_t>& steps : whole.schedule.steps_of)
    compute.push_back(std::accumulate(whole.costs.step.begin() + steps.begin, whole.costs.step.begin() + steps.end, 0.0));
  std::uint64_t total = 0;
  for (const Piece& piece : problem.pieces.all) total += piece.region_bytes();
  std::vector<std::uint32_t> best;
  double best_sum = std::numeric_limits<double>::infinity();
  for (const ResidencyOrder rule : kResidencyOrders) {
    std::vector<std::uint32_t> order = order_pieces(problem.pieces, compute, rule);
    double sum = 0;
    for (const std::uint64_t quarters : {1, 2, 3}) {
      const std::uint64_t kept = total / 4 * quarters;
      const Draft draft =
          make_draft(problem, {.target = kTarget, .pieces = &problem.pieces, .kept = keep_prefix(problem.pieces, order, kept)});
      sum += fluid_run(problem, draft, draft.base + whole.layout.height + 4 * kTarget).times.seconds();
    }
    if (sum >= best_sum * kWorthwhile) continue;
    best_sum = sum;
    best = std::move(order);
  }
  return best;
}

}  // namespace sluice::planner
