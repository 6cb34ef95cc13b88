// Lays out the plans of several sessions in one arena.
//
// A plan keeps some bytes from run to run (resident and derived weights, the lower part of its addresses) and needs others only while it
// runs (activations, streamed weights). What is kept lies side by side, in the order in which models came; what is passing lies at the top,
// all on the same bytes, since sessions run in turn:
//
//     0          | kept: model A | kept: model B | kept: C |  passing of A, B, C  | end <= capacity
//                                                    |<-- of A ------------->|      ends together
//
// Where that does not fit, what is kept overlaps, each model's where the fewest bytes of others are: a turn then evicts what it overlaps.
// A lone plan lies as the planner placed it, so that another budget finds its residents at the same addresses.
//
// Invariants: (L1) each plan's parts are disjoint and end within the capacity; (L2) plans of one model keep at one address; (L3) where all
// that is kept and the largest passing part fit together, no plan overlaps what another model keeps; (L4) addresses move by whole pages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/plan/plan.h"

namespace sluice::engine {

inline constexpr std::uint64_t kArenaPage = 4096;  // places and windows of arenas begin on one

/// The two parts of a plan as the planner placed it: [0, kept) and [kept, kept + passing).
struct PlanParts {
  std::uint64_t kept = 0;
  std::uint64_t passing = 0;
  std::uint64_t bytes() const noexcept { return kept + passing; }
};
/// A plan whose kept part does not lie below all else is one part, kept.
PlanParts parts_of(const plan::Plan& plan) noexcept;

/// The addresses at which the parts begin.
struct PlanPlace {
  std::uint64_t kept = 0;
  std::uint64_t passing = 0;
  friend bool operator==(const PlanPlace&, const PlanPlace&) noexcept = default;
};

struct PlanToPlace {
  PlanParts parts;        // no more than the capacity
  std::size_t model = 0;  // equal for plans of one model
};
/// By plan, in their order.
std::vector<PlanPlace> lay_out(std::span<const PlanToPlace> plans, std::uint64_t capacity);

/// Moves a plan whose parts lie at `from`.
void move_plan(plan::Plan& plan, const PlanParts& parts, PlanPlace from, PlanPlace to) noexcept;

}  // namespace sluice::engine
