// The published policies that compute expected latencies: shortest expected latency, HEFT with and without reservations, least slack first.
// Each follows Band (MobiSys'22) in what it prefers; where Band's program does not do what the paper says (the early drop reads a field
// that is not set yet), the paper counts. Times come from the profile at every decision: nothing is kept that could be stale.
#pragma once

#include <algorithm>

#include "sluice/scheduler/policies/memory.h"

namespace sluice::scheduler {

/// Of the free jobs, the one whose shortest latency is the longest goes first, to the processor on which it ends soonest, idle or not.
inline void shortest_expected_latency(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  Waits waits = waits_of(state);
  std::fill(memory.yielded.begin(), memory.yielded.end(), 0);
  for (;;) {
    Route longest;
    longest.latency = -1;
    JobSlot chosen;
    for (const JobSlot slot : state.live) {
      if (!is_free(state, slot) || memory.yielded[slot.index()]) continue;
      const Route route = shortest_route(state, slot, waits, memory.cells);
      if (route.latency >= kNever || route.latency <= longest.latency) continue;
      longest = route;
      chosen = slot;
    }
    if (!chosen.valid()) return;
    memory.yielded[chosen.index()] = 1;
    waits[longest.now.processor] += longest.now.work;
    out.add(Decision::start(chosen, longest.now.first, longest.now.last, longest.now.processor));
  }
}

namespace detail {
/// The free job with the longest shortest latency whose best processor is idle; jobs that would wait yield and lengthen that wait.
inline void heft_with(const State& state, PolicyMemory& memory, Decisions& out, bool reserve) noexcept {
  Waits waits = waits_of(state);
  std::array<bool, Device::kMostProcessors> taken{};
  std::fill(memory.yielded.begin(), memory.yielded.end(), 0);
  for (;;) {
    Route longest;
    longest.latency = -1;
    JobSlot chosen;
    for (const JobSlot slot : state.live) {
      if (!is_free(state, slot) || memory.yielded[slot.index()]) continue;
      Waits others = waits;
      if (reserve)
        for (const JobSlot other : state.live) {
          const PolicyMemory::Reservation& reserved = memory.reservations[other.index()];
          if (other != slot && reserved.ticket == state.job(other).ticket && others[reserved.processor] < kNever)
            others[reserved.processor] += reserved.work;
        }
      const Route route = shortest_route(state, slot, others, memory.cells);
      if (route.latency >= kNever || route.latency <= longest.latency) continue;
      longest = route;
      chosen = slot;
    }
    if (!chosen.valid()) return;
    const std::size_t p = longest.now.processor;
    memory.yielded[chosen.index()] = 1;
    waits[p] += longest.now.work;
    if (!state.idle(p) || taken[p]) continue;
    taken[p] = true;
    memory.reservations[chosen.index()] = {longest.next.last > 0 ? state.job(chosen).ticket : 0, longest.next.processor, longest.next.work};
    out.add(Decision::start(chosen, longest.now.first, longest.now.last, p));
  }
}
}  // namespace detail

inline void heft(const State& state, PolicyMemory& memory, Decisions& out) noexcept { detail::heft_with(state, memory, out, false); }

/// The same, and each job that runs reserves the processor of its next run.
inline void heft_reserved(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  detail::heft_with(state, memory, out, true);
}

/// Least slack (deadline - now - shortest rest) first; a job that can no longer meet its deadline is dropped; one whose processor is busy
/// waits.
inline void least_slack(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  Waits waits = waits_of(state);
  std::array<bool, Device::kMostProcessors> taken{};
  memory.candidates.clear();
  for (const JobSlot slot : state.live)
    if (is_free(state, slot)) {
      const Time deadline = state.job(slot).deadline;
      const Route alone = shortest_route(state, slot, waits, memory.cells);
      memory.candidates.push_back({slot, deadline >= kNever ? kNever : deadline - state.now - alone.latency});
    }
  std::sort(memory.candidates.begin(), memory.candidates.end(),
            [](const auto& a, const auto& b) { return a.key != b.key ? a.key < b.key : a.job < b.job; });
  for (const PolicyMemory::Candidate& candidate : memory.candidates) {
    const Route route = shortest_route(state, candidate.job, waits, memory.cells);
    if (route.latency >= kNever) continue;
    if (state.now + route.latency > state.job(candidate.job).deadline) {
      out.add(Decision::drop(candidate.job));
      continue;
    }
    const std::size_t p = route.now.processor;
    if (!state.idle(p) || taken[p]) continue;
    taken[p] = true;
    waits[p] += route.now.work;
    out.add(Decision::start(candidate.job, route.now.first, route.now.last, p));
  }
}

}  // namespace sluice::scheduler
