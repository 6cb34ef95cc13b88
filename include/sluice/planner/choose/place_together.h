// Pass: addresses for everything at once, where going round packed activations costs time: activations, workspaces and trimmed loads are
// one placement problem (planner/place/place.h), which knows all of the future.
//
//     bytes |  [ load 4 ]      [act 7  ]          wrapped loads lie at the bottom, one above the other, each as two fixed rectangles:
//           |  [h0][act 2 ]    [tail 0 ]          its head at the begin of the run and its tail at the end. The last of them is the
//           |  [ head 1 ]        [tail 1]         lowest: what the heads above it give up is one part with what is free over them
//           +--------------------------> steps
//
// Invariant: gates are those asked for; what comes out fits the room or does not come out at all.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/choose/candidate.h"
#include "sluice/planner/place/place.h"

namespace sluice::planner {

struct PlacedTogether {
  FixedLayout layout;
  LoadPlacement placement;
};

/// `room`: bytes above what is kept. What it takes is added to `work`.
inline std::optional<PlacedTogether> place_together(const Draft& draft, const Gates& gates, std::uint64_t room, const PlaceOptions& options,
                                                    std::uint64_t& work) {
  const Schedule& schedule = draft.schedule;
  const std::int64_t steps = schedule.step_count();
  PlacementProblem problem{{}, align_down(room - std::min(room, kernels::kReadTail.count()), kBlockBytes)};
  for (const Rectangle& item : draft.layout.items) {
    const auto at = [&](std::int64_t position) { return schedule.steps_of[static_cast<std::size_t>(position)]; };
    problem.rectangles.push_back({{at(item.time.begin).begin, at(item.time.end - 1).end}, item.size, kBufferAlignment});
  }
  PlacedTogether result{draft.layout, {gates, std::vector<std::uint64_t>(gates.size(), 0), 0}};
  std::vector<std::size_t> rectangle_of(gates.size(), 0);
  std::vector<std::size_t> wrapped;  // rectangles: tails, each behind its head
  std::int64_t former = 0;
  for (std::size_t k = 0; k < gates.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    if (!load.streamed()) result.placement.gates[k] = load.resident ? former : load.uses.begin;
    if (load.resident) continue;
    const std::int64_t gate = load.streamed() ? result.placement.gates[k] : load.uses.begin;
    if (load.streamed()) former = std::max(former, gate);
    rectangle_of[k] = problem.rectangles.size();
    problem.rectangles.push_back({{std::max<std::int64_t>(gate, 0), load.uses.end}, load.region_bytes(), kBlockBytes});
    if (gate >= 0) continue;
    wrapped.push_back(problem.rectangles.size());
    problem.rectangles.push_back({{gate + steps, steps}, load.region_bytes(), kBlockBytes});
  }
  std::uint64_t wrapped_end = 0;
  for (auto tail = wrapped.rbegin(); tail != wrapped.rend(); ++tail) {
    problem.rectangles[*tail - 1].fixed = problem.rectangles[*tail].fixed = wrapped_end;
    wrapped_end += problem.rectangles[*tail].size;
  }
  if (wrapped_end > problem.capacity) return std::nullopt;
  Placed placed = place(problem, options);
  work += placed.work;
  if (placed.placement.height > problem.capacity) return std::nullopt;
  const std::vector<std::uint64_t>& offsets = placed.placement.offsets;
  result.layout.offsets.assign(offsets.begin(), offsets.begin() + static_cast<std::ptrdiff_t>(draft.layout.items.size()));
  result.layout.height = placed.placement.height;
  for (std::size_t k = 0; k < gates.size(); ++k) {
    if (schedule.loads[k].resident) continue;
    result.placement.offsets[k] = draft.base + offsets[rectangle_of[k]];
    result.placement.height = std::max(result.placement.height, result.placement.offsets[k] + schedule.loads[k].region_bytes());
  }
  return result;
}

}  // namespace sluice::planner
