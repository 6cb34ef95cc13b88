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
  void place(Planning* former) {
    if (former != nullptr) {
      search.to_beat = std::min(search.to_beat, former->seconds() * problem.search.worthwhile);
      search.work_left = former->search.work_left + search.quick_work() / 2;
    }
    drafts->place();
  }
};

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
  constexpr double kMuchMore = 1.05;
  // Reading more takes power, as reading at all does: ViT-B/16 in bf16 in 32 MiB read half as much again for a four-hundredth of its time.
  const StreamDrafts::Mix& mix = fast.drafts->best_mix();
  const bool reads_more = lean->drafts->reading(mix) > fast.drafts->reading(mix) * kMuchMore;
  const double worth = reads_more ? fast.problem.search.worth_reading : fast.problem.search.worthwhile;
  const bool lean_first = expected < fast.drafts->best_bound() * worth;
  if (lean_first) lean->drafts->judge_mixes();
  Planning& first = lean_first ? *lean : fast;
  Planning& second = lean_first ? fast : *lean;
  first.place(nullptr);
  if (second.drafts->best_bound() >= first.seconds() * first.problem.search.worth_both) return;
  if (!lean_first) lean->drafts->judge_mixes();
  second.place(&first);
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
  Planning& chosen = lean != nullptr && (lean->seconds() < fast.seconds() || !fast.fits()) ? *lean : fast;
  if (!chosen.search.best) chosen.search.best = complete_least(chosen.problem, chosen.least);
  // A plan that the default policy takes is counted as its own, also if a baseline made it. A baseline's plan is counted under the rule
  // that made it.
  if (request.policy == Policy::kSluice) chosen.search.best->policy = Policy::kSluice;
  return chosen;
}

}  // namespace sluice::planner
