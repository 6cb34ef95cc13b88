// Our policy: a plan for all jobs that are known (search/plan_search.h), made anew when something happens that it did not foresee, followed
// otherwise. So a decision is one of two kinds:
//
//   incremental  a unit ended when the plan said: each idle processor takes its next slot, O(1) for each; nothing else is looked at. Jobs
//                that come while all processors are busy get places after or between those of the plan, which is made anew when the next
//                processor is there: nothing could begin before
//   in turn      no job has a deadline: a plan is one pass over the jobs in the order in which they came, without a search. If that is
//                cheap, each arrival, and each processor that has nothing left to begin, makes it anew, so what is said of ends is news
//   full         any other arrival, a cancelled job, a processor lost or back, times that changed, a unit that ended off its time, a job
//                without a place in the plan that is past hope by now: a new plan
//
// What it does beyond the published ones: it looks ahead (a processor may stay idle for a unit that is about to be ready), it gives a job
// up for two others, it says at once when a deadline cannot hold (`kExpect` with `kNever`) and drops the job only when it is past hope, and
// it takes a processor at its next step boundary for a job of higher priority that would wait for it.
#pragma once

#include "sluice/scheduler/policies/memory.h"

namespace sluice::scheduler {

namespace detail {

/// Is the plan's foresight still good? A unit may end a little off its time: the plan is an order, not a timetable.
inline bool on_time(const State& state, const PolicyMemory& memory) noexcept {
  for (std::size_t p = 0; p < state.processors.size(); ++p) {
    const std::size_t next = memory.next[p];
    if (next >= memory.search.slots(p).size() || state.processors[p].busy) continue;
    const PlannedSlot& slot = memory.search.slots(p)[next];
    const Time late = state.now - slot.begin, tolerated = (slot.end - slot.begin) / (memory.search.searched() ? 16 : 4);
    if (late > tolerated) return false;
  }
  return true;
}

inline bool fits_before(const State& state, const PlannedSlot& candidate, const PlannedSlot& head) noexcept {
  return state.now + (candidate.end - candidate.begin) <= head.begin;
}

/// Each idle processor takes its next slot, or one further on that is ready and does not delay the next.
inline void follow(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  constexpr std::size_t kLook = 4;  // slots: a plan that is this far off is made anew anyway
  for (std::size_t p = 0; p < state.processors.size(); ++p) {
    if (!state.idle(p)) continue;
    const std::span<const PlannedSlot> slots = memory.search.slots(p);
    std::size_t& next = memory.next[p];
    const auto pending = [&](const PlannedSlot& slot) {
      return state.job(slot.job).ticket == slot.ticket && state.phase(slot.job, slot.unit) == UnitPhase::kPending;
    };
    while (next < slots.size() && !pending(slots[next])) ++next;
    for (std::size_t s = next; s < std::min(slots.size(), next + kLook); ++s) {
      if (!pending(slots[s]) || !state.ready(slots[s].job, slots[s].unit, slots[s].unit + 1)) continue;
      if (s > next && !fits_before(state, slots[s], slots[next])) continue;
      out.add(Decision::start(slots[s].job, slots[s].unit, slots[s].unit + 1, p));
      next += s == next;
      break;
    }
  }
}

inline bool gives_way(const State& state, std::size_t p, int priority) noexcept {
  const ProcessorState& processor = state.processors[p];
  return processor.busy && processor.step > 0 && processor.waiting.empty() && state.job(processor.run.job).priority < priority;
}

/// How long until a processor is there for a job of `priority`: what is less important gives way at a step boundary.
inline Time wait_for(const State& state, std::size_t p, int priority) noexcept {
  return gives_way(state, p, priority) ? std::min(state.wait(p), state.processors[p].step) : state.wait(p);
}

/// Jobs that are more important than what runs take a processor at its next step boundary where they end sooner that way. Returns the
/// processors that give way, a bit for each; the plan takes them for free from there on.
inline std::uint32_t make_way(const State& state, Decisions& out) noexcept {
  std::uint32_t giving_way = 0;
  for (const JobSlot slot : state.live) {
    const JobState& job = state.job(slot);
    if (job.dropped || job.running > 0 || job.priority <= 0) continue;
    UnitIndex next = 0;
    while (!state.ready(slot, next, next + 1)) ++next;  // of a job without a running unit the first pending one is ready
    Time best = kNever, waiting = kNever;
    std::size_t chosen = 0;
    for (std::size_t p = 0; p < state.processors.size(); ++p) {
      if (!state.processors[p].usable || state.profile->time(job.model, next, p) >= kNever || giving_way >> p & 1) continue;
      const Time rest = state.expected_run(slot, next, next + 1, p) + state.profile->tail(job.model, next, p);
      // A run that is past its expected end may still last: nobody waits for it where it can give way.
      const bool overdue = state.wait(p) == 0 && gives_way(state, p, job.priority);
      const Time wait = overdue ? state.processors[p].step + 1 : state.wait(p);
      waiting = std::min(waiting, wait + rest);
      if (wait_for(state, p, job.priority) + rest >= best) continue;
      best = wait_for(state, p, job.priority) + rest;
      chosen = p;
    }
    if (best >= waiting) continue;
    giving_way |= std::uint32_t{1} << chosen;
    if (!state.processors[chosen].giving_way) out.add(Decision::preempt(chosen));
  }
  return giving_way;
}

/// Says of planned jobs when they are expected to end, where that is news.
inline void tell_ends(const State& state, PolicyMemory& memory, std::span<const PlanSearch::Item> items, Decisions& out) noexcept {
  for (const PlanSearch::Item& item : items) {
    if (item.end != state.job(item.job).expected_end) out.add(Decision::expect(item.job, item.end));
    if (item.end >= kNever) memory.next_look = std::min(memory.next_look, item.deadline - (item.least_end - state.now) + 1);
  }
}

/// Tells what has become of each job: dropped, or when it is expected to end. A job whose last units run is let end.
inline void tell(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  memory.next_look = kNever;
  for (const JobSlot slot : state.live) {
    const JobState& job = state.job(slot);
    if (job.dropped || job.done + job.running == state.units_of(slot)) continue;
    // If no processor is left that supports the job, one may come back before its deadline.
    const Time rest = state.least_rest(slot);
    if (state.now + (rest >= kNever ? 0 : rest) > job.deadline) out.add(Decision::drop(slot));
  }
  tell_ends(state, memory, memory.search.items(), out);
}

}  // namespace detail

namespace detail {

inline bool any_idle(const State& state) noexcept {
  for (std::size_t p = 0; p < state.processors.size(); ++p)
    if (state.idle(p)) return true;
  return false;
}

/// A plan without a search that costs no more than following one: 20 us.
inline bool is_cheap(const PolicyMemory& memory) noexcept {
  constexpr std::uint64_t kCells = 2000;
  return !memory.search.searched() && memory.last_cells <= kCells;
}

/// Is a processor through with the plan, while jobs wait that it does not have, or that others of its plan are late for?
inline bool wants_more(const State& state, const PolicyMemory& memory) noexcept {
  if (!memory.search.left_out() && !is_cheap(memory)) return false;
  for (std::size_t p = 0; p < state.processors.size(); ++p)
    if (state.idle(p) && memory.next[p] >= memory.search.slots(p).size()) return true;
  return false;
}

/// Whether, since the plan was made, nothing has happened but the arrival of jobs that cannot or need not begin now.
inline bool may_wait(const State& state, const PolicyMemory& memory) noexcept {
  if (memory.seen_changes > state.changes || state.changes - memory.seen_changes != state.arrivals - memory.seen_arrivals) return false;
  if (memory.seen_version != state.profile->version() || state.now >= memory.next_look) return false;
  if (any_idle(state)) return false;
  return std::none_of(state.live.begin(), state.live.end(), [&](JobSlot slot) {
    const JobState& job = state.job(slot);
    return job.priority > 0 && !job.dropped && job.running == 0;
  });
}

}  // namespace detail

inline void sluice(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  const std::size_t known = memory.search.items().size();
  const bool adds = memory.seen_changes != state.changes && !detail::is_cheap(memory) && detail::may_wait(state, memory);
  if (adds && memory.search.add(state, memory.next)) {
    memory.seen_changes = state.changes;
    memory.seen_arrivals = state.arrivals;
    memory.provisional = memory.search.searched();
    return detail::tell_ends(state, memory, memory.search.items().subspan(known), out);
  }
  const bool standing = !(memory.provisional && detail::any_idle(state)) && !detail::wants_more(state, memory) &&
                        memory.seen_changes == state.changes && memory.seen_version == state.profile->version() &&
                        state.now < memory.next_look && detail::on_time(state, memory);
  if (!standing) {
    const std::uint32_t giving_way = detail::make_way(state, out);
    memory.last_cells = memory.search.plan(state, giving_way);
    memory.cells += memory.last_cells;
    ++memory.plans;
    memory.seen_changes = state.changes;
    memory.seen_arrivals = state.arrivals;
    memory.seen_version = state.profile->version();
    memory.provisional = false;
    std::fill(memory.next.begin(), memory.next.end(), 0);
    detail::tell(state, memory, out);
  }
  detail::follow(state, memory, out);
}

}  // namespace sluice::scheduler
