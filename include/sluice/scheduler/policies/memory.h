// The memory of a policy: what it keeps between decisions, and scratch. Allocated once, for the limits of the board.
#pragma once

#include <vector>

#include "sluice/scheduler/route.h"
#include "sluice/scheduler/search/plan_search.h"

namespace sluice::scheduler {

struct PolicyMemory {
  struct Reservation {  // heft_reserved: where a job goes after the run that it is in
    std::uint64_t ticket = 0;
    std::size_t processor = 0;
    Time work = 0;
  };
  struct Candidate {
    JobSlot job{};
    Time key = 0;
  };

  /// `fixed` names a processor for each model; empty: model i is given to processor i modulo their number, as Band's examples do.
  PolicyMemory(const State& state, std::vector<ProcessorId> fixed_processors = {}, SearchParameters parameters = {})
      : fixed(std::move(fixed_processors)), reservations(state.jobs.size()), search(state, parameters) {
    candidates.reserve(state.jobs.size());
    yielded.resize(state.jobs.size());
    next.resize(state.processors.size());
    for (std::size_t m = fixed.size(); m < state.profile->models(); ++m) fixed.push_back(ProcessorId(m % state.processors.size()));
  }

  std::vector<ProcessorId> fixed;         // by model
  std::vector<Reservation> reservations;  // by slot
  std::vector<Candidate> candidates;
  std::vector<std::uint8_t> yielded;                                                 // by slot
  PlanSearch search;                                                                 // sluice: its plan...
  std::vector<std::size_t> next;                                                     // ...the next slot of each processor...
  std::uint64_t seen_changes = ~std::uint64_t{0}, seen_version = ~std::uint64_t{0};  // ...what it was made for...
  std::uint64_t seen_arrivals = 0;
  bool provisional = false;      // ...and whether jobs that came since have places that no search has found
  Time next_look = 0;            // when a job that is left out is past hope
  std::uint64_t plans = 0;       // full decisions
  std::uint64_t last_cells = 0;  // that the plan took
  std::uint64_t cells = 0;       // work done, counted: what the tests of the cost of a decision look at
};

/// Can a published policy decide about the job now? They run one run of units of a job at a time.
inline bool is_free(const State& state, JobSlot slot) noexcept {
  const JobState& job = state.job(slot);
  return job.live && !job.dropped && job.running == 0;
}

}  // namespace sluice::scheduler
