// What a policy sees: jobs, processors and expected times at one moment. Plain data, written by `Board` (board.h) alone.
//
//     jobs        a table of `capacity` places; `live` lists the taken ones in order of arrival. A job's units are pending, running or done
//     processors  what each runs until when, what waits for it there, what it ran last
//     profile     expected times
//
// Invariants: (S1) `live` names each live job once; (S2) a unit runs only when all units it reads from are done, or come before it in the
// run of units it belongs to; (S3) a processor runs one run of units at a time; (S4) `done` and `running` count units, and a job leaves the
// table only when none of its units runs; (S5) `changes` grows with every event that a standing plan could not foresee: an arrival, a
// cancelled job, a processor lost or back. `arrivals` says how many of them are of the first kind.
#pragma once

#include <vector>

#include "sluice/scheduler/decision.h"
#include "sluice/scheduler/profile.h"

namespace sluice::scheduler {

/// How much there may be at once. Everything is allocated for it when the scheduler is made.
struct Limits {
  std::size_t jobs = 64;  // live at one time; a submission beyond is refused
};

enum class UnitPhase : std::uint8_t { kPending, kRunning, kDone };

struct JobState {
  static constexpr UnitIndex kNone = ~UnitIndex{0};

  std::uint64_t ticket = 0;  // names the job for good
  ModelId model{};
  Time arrival = 0;
  Time deadline = kNever;  // kNever: as soon as possible, after those that have one
  int priority = 0;        // a job comes before all of a lower one
  bool live = false;
  bool dropped = false;  // leaves when what runs of it has ended
  std::uint32_t done = 0, running = 0;
  Time expected_end = kNever;
  UnitIndex interrupted = kNone;  // a unit that gave way at a step boundary...
  ProcessorId interrupted_on{};   // ...its processor, which keeps what is done of it...
  Time rest = 0;                  // ...and how long the rest takes there
};

struct Run {  // of units
  JobSlot job{};
  UnitIndex first = 0, last = 0;
  Time expected = 0;  // its duration
};

struct ProcessorState {
  bool usable = true;
  bool busy = false;
  bool giving_way = false;  // told to stop at the next step boundary
  Time step = 0;            // the longest way there; 0: never
  Run run;                  // while busy
  Time began = 0, expected_end = 0;
  std::vector<Run> waiting;  // first come, first run; room is reserved
  Time waiting_work = 0;
  std::uint64_t last_ticket = ~std::uint64_t{0};  // what it ran last: the next unit of the same job needs no dispatch
  UnitIndex last_unit = 0;
};

struct State {
  Time now = 0;
  const Profile* profile = nullptr;
  std::vector<JobState> jobs;
  std::vector<JobSlot> live;
  std::vector<ProcessorState> processors;
  std::size_t most_units = 0;        // of a model
  std::vector<UnitPhase> phases;     // [slot * most_units + unit]
  std::vector<std::uint8_t> places;  // the same: where it ran or runs
  std::uint64_t changes = 0;
  std::uint64_t arrivals = 0;  // of the changes

  const JobState& job(JobSlot slot) const noexcept { return jobs[slot.index()]; }
  std::size_t units_of(JobSlot slot) const noexcept { return profile->table(job(slot).model).units; }
  UnitPhase phase(JobSlot slot, UnitIndex unit) const noexcept { return phases[slot.index() * most_units + unit]; }
  std::size_t place(JobSlot slot, UnitIndex unit) const noexcept { return places[slot.index() * most_units + unit]; }

  bool idle(std::size_t p) const noexcept { return processors[p].usable && !processors[p].busy && processors[p].waiting.empty(); }

  /// How long until a processor is through with all that it has been given. An overdue unit is taken to end any moment.
  Time wait(std::size_t p) const noexcept {
    const ProcessorState& processor = processors[p];
    if (!processor.usable) return kNever;
    return (processor.busy ? std::max<Time>(processor.expected_end - now, 0) : 0) + processor.waiting_work;
  }

  bool runs_last(std::size_t p, JobSlot slot, UnitIndex unit) const noexcept {
    return processors[p].last_ticket == job(slot).ticket && processors[p].last_unit == unit;
  }

  /// The time of units [first, last) of a job on a processor if they begin now: dispatch, copies and the units themselves.
  Time expected_run(JobSlot slot, UnitIndex first, UnitIndex last, std::size_t p) const noexcept {
    const ModelId model = job(slot).model;
    Time total = first > 0 && runs_last(p, slot, first - 1) ? 0 : profile->dispatch(p);
    for (UnitIndex u = first; u < last; ++u) {
      for (const UnitIndex source : profile->sources(model, u))
        if (source < first) total += profile->copy(model, source, place(slot, source), p);
      const JobState& j = job(slot);
      total += u == j.interrupted && j.interrupted_on.index() == p ? j.rest : profile->time(model, u, p);
    }
    return total;
  }

  /// S2 for a run that would begin now.
  bool ready(JobSlot slot, UnitIndex first, UnitIndex last) const noexcept {
    for (UnitIndex u = first; u < last; ++u) {
      if (phase(slot, u) != UnitPhase::kPending) return false;
      for (const UnitIndex source : profile->sources(job(slot).model, u))
        if (source < first && phase(slot, source) != UnitPhase::kDone) return false;
    }
    return first < last;
  }

  /// A lower bound of the time until the job ends, as if no other job were there; its own runs continue.
  Time least_rest(JobSlot slot) const noexcept;
};

inline Time State::least_rest(JobSlot slot) const noexcept {
  const JobState& j = job(slot);
  const Profile::Table& table = profile->table(j.model);
  const std::size_t n = processors.size();
  Time longest = 0;
  for (UnitIndex u = 0; u < table.units; ++u) {
    const UnitPhase unit = phase(slot, u);
    if (unit == UnitPhase::kDone) continue;
    if (unit == UnitPhase::kRunning) {
      const std::size_t p = place(slot, u);
      if (processors[p].busy)
        longest =
            std::max(longest, processors[p].expected_end - now + (u + 1 == processors[p].run.last ? profile->tail(j.model, u, p) : 0));
      continue;
    }
    bool first = true;  // of what is pending: its tail bounds all that follows
    for (const UnitIndex source : profile->sources(j.model, u)) first &= phase(slot, source) == UnitPhase::kDone;
    if (!first) continue;
    Time least = kNever;
    for (std::size_t p = 0; p < n; ++p) {
      if (!processors[p].usable || profile->time(j.model, u, p) >= kNever) continue;
      least = std::min(least, expected_run(slot, u, u + 1, p) + profile->tail(j.model, u, p));
    }
    longest = std::max(longest, least);
    if (table.chain) break;
  }
  return longest;
}

}  // namespace sluice::scheduler
