// The safe fallback: activations packed below, two slots for weights above, which loads fill in turn.
//
//     top     |  slot 1: load 1, 3, 5 ...  |
//             |  slot 0: load 0, 2, 4 ...  |      slot = the largest region
//     base    |  activations, workspaces   |
//
// It fits whenever capacity >= kept + packed activations + 2 slots, and no step needs a load and the one after the next (each step needs
// one, or two neighbours). Proof: load k may begin when load k - 2 has been used for the last time, gate(k) = end of uses(k - 2). Loads are
// ordered by first use and share no step with the one after the next, so uses(k - 2) end before uses(k) begin: gate(k) <= first use. Gates
// rise with k by the running maximum, which keeps that bound because first uses rise too. Slots and activations have no byte in common; two
// loads of one slot have no step in common.
// While one slot is used the other fills: reading and computing overlap, whatever the shapes of the activations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sluice/planner/choose/candidate.h"

namespace sluice::planner {

/// Nothing where the condition does not hold. The draft's layout must be packed. O(loads).
inline std::optional<LoadPlacement> place_in_two_slots(const Draft& draft, std::uint64_t capacity) {
  const Schedule& schedule = draft.schedule;
  std::uint64_t slot = 0;
  for (const LoadSpec& load : schedule.loads)
    if (!load.resident) slot = std::max(slot, load.region_bytes());
  const std::uint64_t bottom = align_up(draft.base + draft.layout.height, kBlockBytes);
  if (bottom + 2 * slot + kernels::kReadTail.count() > draft.arena(capacity)) return std::nullopt;
  LoadPlacement placement{Gates(schedule.loads.size(), 0), std::vector<std::uint64_t>(schedule.loads.size(), 0), 0};
  std::int64_t free_from[2] = {0, 0};
  std::int64_t former = 0;
  std::size_t turn = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    placement.gates[k] = former;
    if (load.resident) continue;
    placement.gates[k] = std::max(former, free_from[turn]);
    if (placement.gates[k] > load.uses.begin) return std::nullopt;
    if (load.streamed()) former = placement.gates[k];
    placement.offsets[k] = bottom + turn * slot;
    placement.height = std::max(placement.height, placement.offsets[k] + load.region_bytes());
    free_from[turn] = load.uses.end;
    turn = 1 - turn;
  }
  return placement;
}

}  // namespace sluice::planner
