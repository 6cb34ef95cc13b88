// From a draft to candidates: gates, trim, addresses, extension, in this order.
//
//     draft -> fluid gates -> T_LB: is it worth going on?
//                |-> trim (some slack) -> addresses by three rules -> extend left -> simulate -> the best one stays
//                |     where a load finds no address, those in its way come late and all are placed again
//                |-> trim -> addresses for everything at once -> extend left -> ...   (planner/choose/place_together.h)
//                |-> round activations again, and loads that are in the way change sides                    (planner/stream/load_sides.h)
//
// The next way is gone only where the one before leaves more than a threshold above the bound.
// Invariant: no candidate is faster than the draft's fluid bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/choose/place_together.h"
#include "sluice/planner/place/free_space.h"
#include "sluice/planner/stream/load_sides.h"
#include "sluice/planner/stream/trim.h"

namespace sluice::planner {

/// The best candidate so far, and the least bound of all that was looked at.
struct Search {
  const Problem& problem;
  std::uint64_t capacity;
  std::optional<Candidate> best = {};
  double bound = std::numeric_limits<double>::infinity();
  double to_beat = std::numeric_limits<double>::infinity();  // seconds of the best plan found elsewhere: only less is useful
  double worthwhile = problem.search.worthwhile;             // of the best candidate's seconds: what a later one must beat
  /// What drafts, addresses and the exact search may still take together, in the unit of SearchLimit. Once it is spent, the best candidate
  /// stays; where there is none yet, the search goes on until there is.
  std::int64_t work_left = quick_work();
  std::uint64_t exact_share = 0;  // of the exact search, in one placement of everything together
  int together_left = 1;          // such placements: each may take its whole share and find nothing

  std::int64_t quick_work() const noexcept { return static_cast<std::int64_t>(SearchLimit::of_milliseconds(problem.search.quick_ms).work); }
  void allow(SearchLimit limit) noexcept {
    work_left = quick_work() + static_cast<std::int64_t>(std::min<std::uint64_t>(limit.work / 8 * 7, std::int64_t{1} << 60));
    exact_share = limit.work / problem.search.exact_shares;
    together_left = limit.work > 0 ? problem.search.exact_tries : 1;
  }
  void spend(std::uint64_t work) noexcept { work_left -= static_cast<std::int64_t>(work); }
  bool has_any() const noexcept { return best || to_beat < std::numeric_limits<double>::infinity(); }
  bool may_go_on() const noexcept { return work_left > 0 || !has_any(); }
  /// The limits of one placement of everything together.
  PlaceOptions limits_together() const noexcept {
    const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(work_left, 0));
    return {
        .goal = PlaceGoal::kFit, .search = {std::min(exact_share, left)}, .quick_work = left, .search_up_to = problem.search.exact_up_to};
  }

  /// The time of the best candidate so far, of this draft or another.
  double found() const noexcept { return best ? std::min(best->seconds, to_beat) : to_beat; }

  /// Keeps the better of two candidates; on a near tie the one that came first. One that reads more must win by more than a tie, also where
  /// `worthwhile` is 1, as for baselines.
  void offer(std::optional<Candidate> candidate) {
    if (!candidate || candidate->bytes() > capacity) return;
    bound = std::min(bound, candidate->seconds);
    if (best && candidate->seconds >= best->seconds * problem.search.worthwhile &&
        streamed_bytes(candidate->schedule) > streamed_bytes(best->schedule))
      return;
    if (promises(candidate->seconds)) best = std::move(candidate);
  }
  /// Judges a placement likewise; it becomes a candidate only if it is the better one.
  void offer(const Draft& draft, const FixedLayout& layout, LoadPlacement placement) {
    const double seconds = simulate(draft.schedule, draft.costs, placement.gates, problem.objective_run()).seconds();
    bound = std::min(bound, seconds);
    if (promises(seconds)) offer(finish(problem, draft, layout, Policy::kSluice, std::move(placement)));
  }
  /// Would a candidate of so many seconds be taken?
  bool promises(double seconds) const noexcept { return seconds < to_beat && (!best || seconds < best->seconds * worthwhile); }
};

/// What a step or a load of a draft costs to cut, price and simulate, as measured, in the unit of SearchLimit.
inline constexpr std::uint64_t kWorkAnItem = 64;

/// Fluid gates of a draft, and the run that they would give.
struct FluidRun {
  FluidGates fluid;
  Timeline times;
};

inline FluidRun fluid_run(const Problem& problem, const Draft& draft, std::uint64_t capacity) {
  FluidRun run;
  run.fluid = fluid_gates(draft.schedule, live_by_step(draft.layout, draft.schedule), draft.room(capacity), problem.objective_run(),
                          problem.wraps());
  run.times = simulate(draft.schedule, draft.costs, run.fluid.gates, problem.objective_run());
  return run;
}

/// Tails in the way of a run's last loads cost them their place: then nothing goes round.
inline PlaceRule unwrapped(PlaceRule rule) {
  for (std::int64_t& gate : rule.least_gates) gate = std::max<std::int64_t>(gate, 0);
  return rule;
}

namespace detail {

/// The gates to place by: late ones, or the fluid ones where that rule is off.
inline Gates trimmed_gates(const Problem& problem, const Draft& draft, const FluidRun& run, TrimSlack slack) {
  if (!problem.search.late_trim) return run.fluid.gates;
  return trim_gates(draft.schedule, draft.costs, run.fluid.gates, run.times, problem.objective_run(), slack);
}

inline LoadPlacement extended_left(const Problem& problem, const Draft& draft, const std::vector<FixedRect>& fixed, const PlaceRule& rule,
                                   LoadPlacement placed) {
  if (!problem.search.left_extension) return placed;
  return extend_left(draft.schedule, fixed, rule, std::move(placed));
}

/// Round activations as the draft's layout has them, by three rules; where there is time, each load then goes to the better side
/// (planner/stream/load_sides.h).
inline void stream_round(Search& search, const Draft& draft, const FluidRun& run, TrimSlack slack, double enough, bool sides) {
  const Problem& problem = search.problem;
  const SearchParameters& allowed = problem.search;
  const std::vector<FixedRect> fixed = fixed_rects(draft.layout, draft.schedule, draft.base);
  PlaceRule rule;
  rule.arena = arena_for_loads(draft, search.capacity);
  if (rule.arena.empty()) return;
  rule.least_gates = trimmed_gates(problem, draft, run, slack);
  for (const AddressRule address : {AddressRule::kLowest, AddressRule::kHighest, AddressRule::kRing}) {
    if (!search.may_go_on() || (address != AddressRule::kLowest && !allowed.address_rules)) return;
    rule.address = address;
    PlaceRule used = rule;
    std::uint64_t work = kWorkAnItem * draft.items();  // to simulate it, too
    auto placed = place_loads(draft.schedule, fixed, used, &work);
    if (!placed && problem.wraps()) placed = place_loads(draft.schedule, fixed, used = unwrapped(rule), &work);
    if (!placed) placed = place_loads_late(draft.schedule, fixed, used = rule, work);
    search.spend(work);
    if (!placed) return;  // nor will another rule find a place
    if (sides && allowed.load_sides && address != AddressRule::kRing && search.work_left > 0) {
      work = 0;
      SideSearch side_search(draft.schedule, draft.costs, fixed, problem.objective_run(), allowed);
      *placed = side_search.improve(used, std::move(*placed), run.times, enough, kWorkAnItem * draft.items() / 4,
                                    static_cast<std::uint64_t>(search.work_left) / allowed.side_share_of_work, work);
      search.spend(work);
    }
    search.offer(draft, draft.layout, extended_left(problem, draft, fixed, used, std::move(*placed)));
    if (search.best && search.best->seconds <= enough) return;
  }
}

/// Together with the activations; with less and less room for gates while no addresses are found.
inline void stream_together(Search& search, const Draft& draft, double enough) {
  const Problem& problem = search.problem;
  const std::uint64_t room = draft.room(search.capacity);
  const std::vector<std::uint64_t> live = live_by_step(draft.layout, draft.schedule);
  for (const std::uint64_t thousandths : {0u, 5u, 10u, 20u, 30u, 50u, 80u, 120u}) {
    FluidRun run{fluid_gates(draft.schedule, live, room - room / 1000 * thousandths, problem.objective_run(), problem.wraps()), {}};
    if (!run.fluid.fits) return;
    run.times = simulate(draft.schedule, draft.costs, run.fluid.gates, problem.objective_run());
    search.spend(kWorkAnItem * draft.items());
    if (search.together_left == 0 || search.work_left <= 0 || !search.promises(run.times.seconds())) return;
    --search.together_left;
    const Gates trimmed = trimmed_gates(problem, draft, run, {0.0, 0.5});
    std::uint64_t work = 0;
    auto placed = place_together(draft, trimmed, room, search.limits_together(), work);
    search.spend(work);
    if (!placed) continue;
    PlaceRule rule;
    const std::vector<FixedRect> fixed = fixed_rects(placed->layout, draft.schedule, draft.base);
    rule.arena = {draft.base, std::max(placed->placement.height, draft.base)};
    search.offer(draft, placed->layout, extended_left(problem, draft, fixed, rule, std::move(placed->placement)));
    if (search.best && search.best->seconds <= enough) return;
  }
}

}  // namespace detail

/// kQuick: round activations as they lie in the ground that the draft was cut for. kTogether: activations move, too, if the exact search
/// may help. kThorough: in every other way round activations. kLast: activations move, with or without the search.
enum class Effort : std::uint8_t { kQuick, kTogether, kThorough, kLast };

/// Streams a draft, unless its fluid bound says that it cannot beat the best.
inline void stream(Search& search, Draft& draft, const FluidRun& run, const Room& ground, Effort effort) {
  const double bound = run.times.seconds();
  if (!run.fluid.fits) return;
  search.bound = std::min(search.bound, bound);
  if (!search.promises(bound)) return;
  const SearchParameters& allowed = search.problem.search;
  const double enough = bound * allowed.close_enough;
  if (effort == Effort::kTogether || effort == Effort::kLast) {
    if (allowed.together) detail::stream_together(search, draft, enough);
    return;
  }
  const auto near = [&](double times) { return search.found() <= bound * times; };
  const auto fits = [&] { return draft.layout.height <= draft.room(search.capacity); };
  const bool on_ground = ground.lay_out(draft.layout, draft.room(search.capacity)) && fits();
  if (effort == Effort::kThorough && near(allowed.worth_searching)) return;
  if (effort == Effort::kQuick && on_ground) return detail::stream_round(search, draft, run, TrimSlack{}, enough, false);
  if (on_ground) detail::stream_round(search, draft, run, TrimSlack{0.0, 0.5}, enough, true);
  // Packing again may give the same addresses.
  const std::vector<std::uint64_t> ground_offsets = on_ground ? draft.layout.offsets : std::vector<std::uint64_t>();
  search.problem.shared->pack(draft.layout);  // activations and workspaces together
  if (fits() && !near(allowed.worth_searching) && draft.layout.offsets != ground_offsets)
    detail::stream_round(search, draft, run, TrimSlack{}, enough, true);
}

}  // namespace sluice::planner
