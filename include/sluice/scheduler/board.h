// The board keeps the state: what was asked, decided and done. It is the same for real processors and for simulated ones, which is what
// makes the simulator's word worth something:
//
//     submit, cancel --+                        +--> decide(state) --> decisions --+      the loop of both schedulers
//     finished, lost --+--> Board, its State ---+                                  |
//                                  ^------------ apply ----------------------------+--> `started`: processors whose workers begin now
//
// The real scheduler holds one mutex around it; a worker calls `finished` and gets its next run back. The simulator (simulator/simulator.h)
// advances a clock in its place. Nothing here waits, measures time or allocates after construction.
//
// Nothing is lost: a job leaves the board only as met, late, dropped or cancelled, `Statistics` counts each, and what it counts goodput
// over is everything that was submitted, refused submissions too. If a processor is lost, its run and the runs that waited for it become
// pending again.
#pragma once

#include <vector>

#include "sluice/core/check.h"
#include "sluice/scheduler/state.h"

namespace sluice::scheduler {

struct Request {
  ModelId model{};
  Time deadline = kNever;  // a moment, not a duration
  int priority = 0;
};

struct Statistics {
  std::uint64_t submitted = 0;  // each call of submit, refused ones too
  std::uint64_t refused = 0;    // no place in the table
  std::uint64_t met = 0;        // ended by the deadline, or had no deadline
  std::uint64_t late = 0;
  std::uint64_t dropped = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;  // ended with an error of its own: a model file that went bad

  std::uint64_t left() const noexcept { return refused + met + late + dropped + cancelled + failed; }
  /// Over what was submitted: dropping a job never raises it. Only what the user took back himself does not count.
  double goodput() const noexcept {
    return submitted == cancelled ? 1 : static_cast<double>(met) / static_cast<double>(submitted - cancelled);
  }
};

class Board {
 public:
  Board(const Device& device, Profile& profile, Limits limits) : profile_(&profile) {
    state_.profile = &profile;
    for (std::size_t m = 0; m < profile.models(); ++m) state_.most_units = std::max(state_.most_units, profile.table(ModelId(m)).units);
    state_.jobs.resize(limits.jobs);
    state_.live.reserve(limits.jobs);
    state_.phases.resize(limits.jobs * state_.most_units);
    state_.places.resize(limits.jobs * state_.most_units);
    state_.processors.resize(device.count());
    for (std::size_t p = 0; p < device.count(); ++p) {
      state_.processors[p].step = device.processors[p].step;
      state_.processors[p].waiting.reserve(limits.jobs);
    }
    started_.reserve(device.count());
    ended_.reserve(limits.jobs);
  }

  const State& state() const noexcept { return state_; }
  const Statistics& statistics() const noexcept { return statistics_; }
  void set_now(Time now) noexcept { state_.now = std::max(state_.now, now); }

  /// The job's place, or `invalid()` when the table is full, or the caller has no `room` for the job elsewhere.
  JobSlot submit(const Request& request, bool room = true) noexcept {
    ++statistics_.submitted;
    if (!room) {
      ++statistics_.refused;
      return JobSlot::invalid();
    }
    for (std::size_t s = 0; s < state_.jobs.size(); ++s) {
      JobState& job = state_.jobs[s];
      if (job.live) continue;
      job = {};
      job.ticket = statistics_.submitted;
      job.model = request.model;
      job.arrival = state_.now;
      job.deadline = request.deadline;
      job.priority = request.priority;
      job.live = true;
      std::fill_n(state_.phases.begin() + static_cast<std::ptrdiff_t>(s * state_.most_units), state_.most_units, UnitPhase::kPending);
      state_.live.push_back(JobSlot(s));
      ++state_.changes;
      ++state_.arrivals;
      return JobSlot(s);
    }
    ++statistics_.refused;
    return JobSlot::invalid();
  }

  void cancel(JobSlot slot) noexcept { leave(slot, statistics_.cancelled); }
  /// No processor can help: the job itself has failed.
  void fail(JobSlot slot) noexcept { leave(slot, statistics_.failed); }

  void drop(JobSlot slot) noexcept {
    if (state_.jobs[slot.index()].dropped) return;
    ++statistics_.dropped;
    discard(slot);
  }

  /// What a policy said. `started()` then lists the processors that begin a run.
  void apply(std::span<const Decision> decisions) noexcept {
    started_.clear();
    for (const Decision& decision : decisions) {
      switch (decision.kind) {
        case Decision::Kind::kStart:
          enqueue(decision);
          break;
        case Decision::Kind::kDrop:
          drop(decision.job);
          break;
        case Decision::Kind::kPreempt: {
          ProcessorState& processor = state_.processors[decision.processor.index()];
          if (processor.busy && processor.step > 0) processor.giving_way = true;
          break;
        }
        case Decision::Kind::kExpect:
          state_.jobs[decision.job.index()].expected_end = decision.when;
          break;
      }
    }
    for (std::size_t p = 0; p < state_.processors.size(); ++p) begin_next(p);
  }

  /// Processors that began a run in the last `apply`, and jobs that left since `forget_ended`.
  std::span<const ProcessorId> started() const noexcept { return started_; }
  std::span<const JobState> ended() const noexcept { return ended_; }
  void forget_ended() noexcept { ended_.clear(); }

  /// One unit of the processor's run took so long (without dispatch and copies).
  void observed(ProcessorId processor, UnitIndex unit, Time took) noexcept {
    profile_->observe(state_.jobs[state_.processors[processor.index()].run.job.index()].model, unit, processor.index(), took);
  }

  /// The processor's run took so much beside its units, and paid a dispatch.
  void observed_dispatch(ProcessorId processor, Time took) noexcept { profile_->observe_dispatch(processor.index(), took); }

  /// The processor's run ended, now. Of one that was given up this comes too late: its run is somebody else's.
  void finished(ProcessorId id) noexcept {
    ProcessorState& processor = state_.processors[id.index()];
    if (!processor.busy) return;
    const Run run = processor.run;
    release(processor);
    JobState& job = state_.jobs[run.job.index()];
    if (job.interrupted >= run.first && job.interrupted < run.last) job.interrupted = JobState::kNone;
    mark(run, UnitPhase::kDone, id.index());
    job.running -= run.last - run.first;
    job.done += run.last - run.first;
    processor.last_ticket = job.ticket;
    processor.last_unit = run.last - 1;
    settle(run.job);
  }

  /// The processor stopped at a step boundary inside `unit` of its run, `rest` of it before it: earlier units are done, later ones pending.
  /// As `finished`, where it comes too late.
  void interrupted(ProcessorId id, UnitIndex unit, Time rest) noexcept {
    ProcessorState& processor = state_.processors[id.index()];
    if (!processor.busy) return;
    const Run run = processor.run;
    release(processor);
    JobState& job = state_.jobs[run.job.index()];
    mark({run.job, run.first, unit, 0}, UnitPhase::kDone, id.index());
    mark({run.job, unit, run.last, 0}, UnitPhase::kPending, id.index());
    job.running -= run.last - run.first;
    job.done += unit - run.first;
    job.interrupted = unit;
    job.interrupted_on = id;
    job.rest = std::max<Time>(rest, 1);
    ++state_.changes;
    settle(run.job);
  }

  /// The processor died, or hangs and is given up: its runs are pending again, results that it may still give are not wanted.
  void lost(ProcessorId id) noexcept {
    ProcessorState& processor = state_.processors[id.index()];
    if (!processor.usable) return;
    processor.usable = false;
    ++state_.changes;
    if (processor.busy) {
      const Run run = processor.run;
      release(processor);
      give_back(run);
    }
    while (!processor.waiting.empty()) {
      const Run run = processor.waiting.back();
      processor.waiting.pop_back();
      give_back(run);
    }
    processor.waiting_work = 0;
    for (JobState& job : state_.jobs)
      if (job.live && job.interrupted != JobState::kNone && job.interrupted_on == id) job.interrupted = JobState::kNone;
  }

  void back(ProcessorId id) noexcept {
    state_.processors[id.index()].usable = true;
    ++state_.changes;
  }

 private:
  static void release(ProcessorState& processor) noexcept { processor.busy = processor.giving_way = false; }

  void mark(const Run& run, UnitPhase phase, std::size_t p) noexcept {
    for (UnitIndex u = run.first; u < run.last; ++u) {
      state_.phases[run.job.index() * state_.most_units + u] = phase;
      state_.places[run.job.index() * state_.most_units + u] = static_cast<std::uint8_t>(p);
    }
  }

  void enqueue(const Decision& decision) noexcept {
    ProcessorState& processor = state_.processors[decision.processor.index()];
    JobState& job = state_.jobs[decision.job.index()];
    SLUICE_CHECK(job.live && !job.dropped && processor.usable, "a policy starts jobs that are there on processors that are there");
    SLUICE_CHECK(state_.ready(decision.job, decision.first, decision.last), "a policy starts units whose inputs are there");
    const Run run{decision.job, decision.first, decision.last,
                  state_.expected_run(decision.job, decision.first, decision.last, decision.processor.index())};
    mark(run, UnitPhase::kRunning, decision.processor.index());
    job.running += run.last - run.first;
    processor.waiting.push_back(run);
    processor.waiting_work += run.expected;
  }

  void begin_next(std::size_t p) noexcept {
    ProcessorState& processor = state_.processors[p];
    if (!processor.usable || processor.busy || processor.waiting.empty()) return;
    processor.run = processor.waiting.front();
    processor.waiting.erase(processor.waiting.begin());
    processor.waiting_work -= processor.run.expected;
    processor.busy = true;
    processor.began = state_.now;
    processor.expected_end = state_.now + processor.run.expected;
    started_.push_back(ProcessorId(p));
  }

  void give_back(const Run& run) noexcept {
    mark(run, UnitPhase::kPending, 0);
    state_.jobs[run.job.index()].running -= run.last - run.first;
    settle(run.job);
  }

  void leave(JobSlot slot, std::uint64_t& count) noexcept {
    const JobState& job = state_.jobs[slot.index()];
    if (!job.live || job.dropped) return;
    ++count;
    ++state_.changes;
    discard(slot);
  }

  /// A job that is not wanted any more: what waits goes, what runs is left to end.
  void discard(JobSlot slot) noexcept {
    JobState& job = state_.jobs[slot.index()];
    job.dropped = true;
    for (ProcessorState& processor : state_.processors)
      for (std::size_t w = processor.waiting.size(); w-- > 0;)
        if (processor.waiting[w].job == slot) {
          job.running -= processor.waiting[w].last - processor.waiting[w].first;
          processor.waiting_work -= processor.waiting[w].expected;
          processor.waiting.erase(processor.waiting.begin() + static_cast<std::ptrdiff_t>(w));
        }
    settle(slot);
  }

  /// Does the job leave the table?
  void settle(JobSlot slot) noexcept {
    JobState& job = state_.jobs[slot.index()];
    if (job.running > 0) return;
    if (!job.dropped) {
      if (job.done < state_.units_of(slot)) return;
      ++(state_.now <= job.deadline ? statistics_.met : statistics_.late);
    }
    job.live = false;
    job.expected_end = state_.now;
    ended_.push_back(job);
    state_.live.erase(std::find(state_.live.begin(), state_.live.end(), slot));
  }

  Profile* profile_;
  State state_;
  Statistics statistics_;
  std::vector<ProcessorId> started_;
  std::vector<JobState> ended_;
};

}  // namespace sluice::scheduler
