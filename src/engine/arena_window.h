// A part of an arena that is shared with others, so that several processors use one copy of the weights.
//
//     arena   | kept: model A | kept: model B | ... | passing of processor 0 | passing of processor 1 | ...
//               read by all, written once             each window belongs to one tenancy, whose sessions run in turn
//
// Each tenancy has a window for what passes (activations, streamed weights). Plans are made before; what they keep lies at places that all
// tenancies agree on. Nobody writes there but the session that runs first: when it has run, `Tenancy::weights_are_there` says so to all
// others, and from then on no run reads those weights again, after an error neither.
//
// Invariants: (W1) kept places and windows are disjoint and lie within the arena; (W2) sessions of one place have the same plan; (W3) one
// session alone runs before `weights_are_there`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/interval.h"
#include "sluice/engine/shared_arena.h"
#include "sluice/plan/plan.h"
#include "src/engine/arena_layout.h"

namespace sluice::engine {

struct KeptPlace {
  const plan::Plan* plan = nullptr;  // SessionOptions::plan of the sessions that join with it
  std::uint64_t at = 0;              // of its kept part
  PlanParts parts{};                 // `kept` 0: all of it lies in the window, and nothing is kept for others
};

struct ArenaWindow {
  std::shared_ptr<Arena> arena;  // committed; null: the tenancy has an arena of its own
  Interval<std::uint64_t> passing;
  std::vector<KeptPlace> kept;
};

struct WindowOptions {
  ArenaWindow window;
  int threads = 1;
  std::vector<int> compute_cpus{};
};

/// A shared arena in such a window; the sessions that join bring a plan of `window.kept`. What its tables take is the caller's to count.
Result<std::shared_ptr<SharedArena>> open_window(const WindowOptions& options);

}  // namespace sluice::engine
