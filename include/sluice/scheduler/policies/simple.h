// The policies that use no times: a fixed processor for each model, and round robin.
#pragma once

#include "sluice/scheduler/policies/memory.h"

namespace sluice::scheduler {

/// How far the job can go on a processor from its next unit on; `next_unit` itself when it cannot begin there.
inline UnitIndex supported_until(const State& state, JobSlot slot, std::size_t p) noexcept {
  UnitIndex u = next_unit(state, slot);
  while (u < state.units_of(slot) && state.profile->time(state.job(slot).model, u, p) < kNever) ++u;
  return u;
}

/// Each model has its processor; units that it does not support go to the fastest that does, and the job comes back after them.
inline void fixed_worker(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  for (const JobSlot slot : state.live) {
    if (!is_free(state, slot)) continue;
    const ModelId model = state.job(slot).model;
    const UnitIndex first = next_unit(state, slot);
    const std::size_t own = memory.fixed[model.index()].index();
    UnitIndex last = state.processors[own].usable ? supported_until(state, slot, own) : first;
    if (last > first) {
      out.add(Decision::start(slot, first, last, own));
      continue;
    }
    std::size_t best = own;
    Time least = kNever;
    for (std::size_t p = 0; p < state.processors.size(); ++p)
      if (state.processors[p].usable && state.profile->time(model, first, p) < least) {
        least = state.profile->time(model, first, p);
        best = p;
      }
    if (least >= kNever) continue;
    for (last = first + 1; last < supported_until(state, slot, best);) {
      if (state.processors[own].usable && state.profile->time(model, last, own) < kNever) break;
      ++last;
    }
    out.add(Decision::start(slot, first, last, best));
  }
}

/// Each idle processor takes the oldest job whose next unit it supports, as far as it can.
inline void round_robin(const State& state, PolicyMemory& memory, Decisions& out) noexcept {
  std::fill(memory.yielded.begin(), memory.yielded.end(), 0);
  for (std::size_t p = 0; p < state.processors.size(); ++p) {
    if (!state.idle(p)) continue;
    for (const JobSlot slot : state.live) {
      if (!is_free(state, slot) || memory.yielded[slot.index()]) continue;
      const UnitIndex first = next_unit(state, slot), last = supported_until(state, slot, p);
      if (last == first) continue;
      memory.yielded[slot.index()] = 1;
      out.add(Decision::start(slot, first, last, p));
      break;
    }
  }
}

}  // namespace sluice::scheduler
