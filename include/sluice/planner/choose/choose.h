// Pass: the choice. The least candidate says whether there is a plan; then the best one is sought.
//
//     resident   every weight kept, if that fits           -> nothing is left to look at, unless transforms could save time
//     streamed   with chains for time, or for least memory -> one draft of each says which to look at first, and whether at both
//     baselines  flexnn, on demand                         -> so that the default is never worse
//
// Invariants: candidates come in a fixed order and a later one must be better by 0.1 % to win, so a request always gives the same plan; one
// that reads in each run must be better by 1 % than one that keeps every weight, and one whose bands read weights again than one that reads
// them once, for reading takes power and a processor's time; the baselines need only be better at all, if they read no more.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "sluice/planner/choose/draft_search.h"
#include "sluice/planner/choose/policies.h"
#include "sluice/planner/planner.h"

namespace sluice::planner {

/// The planning of one problem at one capacity.
struct Planning {
  const Problem& problem;
  Least least;
  Search search;
  std::optional<StreamDrafts> drafts = {};

  Planning(const Problem& p, const PlanRequest& request)
      : problem(p), least(least_candidate(p, request.policy)), search{p, request.capacity.count()} {}
  void begin(SearchLimit limit) {
    search.capacity = ample_capacity(problem, least, search.capacity);
    search.allow(limit);
  }
  bool fits() const noexcept { return search.capacity >= least.bytes(); }
  double seconds() const noexcept { return search.best ? search.best->seconds : std::numeric_limits<double>::infinity(); }

  void draft() { drafts.emplace(problem, detail::ground_of(problem, least), search); }

  /// `former`: what has found something already.
  /// `worth`: the part of the former's seconds that a plan must beat.
  void place(Planning* former, double worth = 1) {
    if (former != nullptr) {
      search.to_beat = std::min(search.to_beat, former->seconds() * worth);
      search.work_left = former->search.work_left + search.quick_work() / 2;
    }
    drafts->place();
  }
};

/// More reading than this is no rounding of loads to blocks, nor other pieces that are kept: bands read weights again.
inline constexpr double kMuchMore = 1.05;

/// The chains for time and the chains for least memory, if there are others: which of them first, and are both worth it? One draft of each,
/// alike in what it keeps, says what to expect.
inline void stream_either(Planning& fast, Planning* lean) {
  if (fast.fits()) {
    fast.draft();
    fast.drafts->judge_mixes();
  }
  if (lean == nullptr || !lean->fits()) return fast.place(nullptr);
  lean->draft();
  if (!fast.fits()) {
    lean->drafts->judge_mixes();
    return lean->place(nullptr);
  }
  const double expected = lean->drafts->judge(fast.drafts->best_mix());
  const StreamDrafts::Mix& mix = fast.drafts->best_mix();
  const SearchParameters& allowed = fast.problem.search;
  const bool reads_more = lean->drafts->reading(mix) > fast.drafts->reading(mix) * kMuchMore;
  const bool lean_first = expected < fast.drafts->best_bound() * (reads_more ? allowed.worth_reading : allowed.worthwhile);
  if (lean_first) lean->drafts->judge_mixes();
  Planning& first = lean_first ? *lean : fast;
  Planning& second = lean_first ? fast : *lean;
  first.place(nullptr);
  if (lean_first && reads_more) {  // what was promised may not be kept
    if (second.drafts->best_bound() * allowed.worth_reading < first.seconds()) second.place(&first, 1 / allowed.worth_reading);
    return;
  }
  if (second.drafts->best_bound() >= first.seconds() * allowed.worth_both) return;
  if (!lean_first) lean->drafts->judge_mixes();
  second.place(&first, reads_more ? allowed.worth_reading : allowed.worthwhile);
}

/// Is the plan with chains for least memory the better one? If it reads more, it must be better by more than a tie.
inline bool prefers_lean(const Planning& fast, const Planning& lean) {
  if (!fast.search.best || !lean.search.best) return lean.seconds() < fast.seconds();
  const auto read = [](const Planning& each) { return static_cast<double>(streamed_bytes(each.search.best->schedule)); };
  const bool reads_more = read(lean) > read(fast) * kMuchMore;
  return lean.seconds() < fast.seconds() * (reads_more ? fast.problem.search.worth_reading : 1);
}

/// The default policy's best, in either search.
inline void choose_best(Planning& fast, Planning* lean) {
  if (fast.fits() && keep_everything(fast.search)) return try_baselines(fast.search, fast.least);
  if (lean != nullptr && lean->fits()) keep_everything(lean->search);
  const double kept = std::min(fast.seconds(), lean != nullptr ? lean->seconds() : fast.seconds());
  for (Planning* each : {&fast, lean})
    if (each != nullptr) each->search.to_beat = kept * fast.problem.search.worth_reading;
  stream_either(fast, lean);
  if (fast.fits()) try_baselines(fast.search, fast.least);
  for (Planning* each : {&fast, lean})
    if (each != nullptr && each->fits() && std::min(fast.seconds(), each->seconds()) == std::numeric_limits<double>::infinity())
      try_baselines(each->search, each->least);
}

/// The better of the two at the request's capacity, which is not below the lesser of their least; `search.best` is set in it.
inline Planning& choose(Planning& fast, Planning* lean, const PlanRequest& request) {
  const SearchLimit limit = SearchLimit::of_milliseconds(request.search_ms);
  for (Planning* each : {&fast, lean})
    if (each != nullptr && each->fits()) each->begin(limit);
  if (request.policy == Policy::kSluice) {
    choose_best(fast, lean);
  } else {
    choose_baseline(fast.search, request.policy, fast.least);
  }
  Planning& chosen = lean != nullptr && (!fast.fits() || prefers_lean(fast, *lean)) ? *lean : fast;
  if (!chosen.search.best) chosen.search.best = complete_least(chosen.problem, chosen.least);
  // A plan that the default policy takes is counted as its own, also if a baseline made it. A baseline's plan is counted under the rule
  // that made it.
  if (request.policy == Policy::kSluice) chosen.search.best->policy = Policy::kSluice;
  return chosen;
}

}  // namespace sluice::planner
