// The way of one job over the processors that ends soonest, given how long each is occupied: the programme that the published policies
// share. Band looks at every range of units on every processor, O(p n^2) ranges; costs of neighbouring units add up, so one label for each
// (unit, processor) finds the same way in O(n p^2):
//
//     label[u][q] = min over p of  max(label[u-1][p], wait[q]) + dispatch + copy(p -> q) + time[u][q]       p != q
//                                  label[u-1][p]                                     + time[u][q]           p == q
//
// A job runs one run of units at a time here, in the model's order, as published. A run is a merged unit: what the job stays on one
// processor for. Only the first run and the next are kept, which is all that a decision needs.
#pragma once

#include <array>

#include "sluice/scheduler/state.h"

namespace sluice::scheduler {

struct Route {
  struct Leg {
    std::size_t processor = 0;
    UnitIndex first = 0, last = 0;
    Time work = 0;  // time on the processor, waiting not counted
  };
  Time latency = kNever;  // kNever: there is no way
  Leg now, next;          // `next` is empty where the job ends with `now`
};

using Waits = std::array<Time, Device::kMostProcessors>;

inline Waits waits_of(const State& state) noexcept {
  Waits waits{};
  for (std::size_t p = 0; p < state.processors.size(); ++p) waits[p] = state.wait(p);
  return waits;
}

/// The first unit that has not run, for a job none of whose units runs now.
inline UnitIndex next_unit(const State& state, JobSlot slot) noexcept { return state.job(slot).done; }

/// `cells` counts the pairs of labels that were looked at.
inline Route shortest_route(const State& state, JobSlot slot, const Waits& waits, std::uint64_t& cells) noexcept {
  const std::size_t n = state.processors.size();
  const ModelId model = state.job(slot).model;
  const Profile& profile = *state.profile;
  const UnitIndex begin = next_unit(state, slot), end = static_cast<UnitIndex>(state.units_of(slot));
  std::array<Route, Device::kMostProcessors> labels{}, before{};
  for (std::size_t p = 0; p < n; ++p) {
    if (waits[p] >= kNever || profile.time(model, begin, p) >= kNever) continue;
    const Time work = state.expected_run(slot, begin, begin + 1, p);
    labels[p] = {waits[p] + work, {p, begin, begin + 1, work}, {}};
  }
  for (UnitIndex u = begin + 1; u < end; ++u) {
    before = labels;
    for (std::size_t q = 0; q < n; ++q) {
      labels[q].latency = kNever;
      const Time time = profile.time(model, u, q);
      if (waits[q] >= kNever || time >= kNever) continue;
      for (std::size_t p = 0; p < n; ++p, ++cells) {
        if (before[p].latency >= kNever) continue;
        const Time work = time + (p == q ? 0 : profile.dispatch(q) + profile.copy(model, u - 1, p, q));
        const Time ends = (p == q ? before[p].latency : std::max(before[p].latency, waits[q])) + work;
        if (ends > labels[q].latency || (ends == labels[q].latency && p != q)) continue;
        labels[q] = before[p];
        labels[q].latency = ends;
        Route::Leg& now = labels[q].now;
        Route::Leg& next = labels[q].next;
        if (now.last == u && now.processor == q) {
          now.last = u + 1;
          now.work += work;
        } else if (next.last == 0) {
          next = {q, u, u + 1, work};
        } else if (next.last == u && next.processor == q) {
          next.last = u + 1;
          next.work += work;
        }
      }
    }
  }
  Route best;
  for (std::size_t p = 0; p < n; ++p)
    if (labels[p].latency < best.latency) best = labels[p];
  return best;
}

}  // namespace sluice::scheduler
