// Decides how much of its weights each unit keeps, if all CPU processors use one copy of the kept weights.
//
//     arena   | kept: unit A | kept: unit B | kept: C | transient of processor 0 | of processor 1 | ...
//
// Kept weights are in memory once, whatever the number of processors; each processor has transient memory of its own, as large as the
// largest unit's part (engine/arena_window.h). So each unit has plans for growing amounts of memory, and memory goes, plan by plan, to
// where it saves the most time for its bytes.
//
// Invariant: the bytes of the chosen plans, `bytes_of`, are within the room that was given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sluice/engine/engine.h"
#include "src/engine/arena_layout.h"

namespace sluice::scheduler {

/// A plan that a unit may have.
struct SharePlan {
  std::shared_ptr<const plan::Plan> plan;
  engine::PlanParts parts;  // `kept` 0: all of it lies in the window, and other units' turns overwrite it
  Bytes tables;             // of each session that runs it, beyond what any takes
  double cost_ms = 0;       // of a run: the period, and the time that its reads take from others
};

struct ShareUnit {
  std::shared_ptr<const sluice::Model> graph;
  SessionOptions options;          // of its sessions, in library scope
  double runs = 1;                 // how often it runs, beside the others
  std::vector<std::size_t> parts;  // windows in which a session of it runs, as often as sessions do
  std::vector<SharePlan> plans;    // the first takes the least memory
  std::size_t chosen = 0;
  std::uint64_t at = 0;  // where it keeps its weights

  const SharePlan& plan() const noexcept { return plans[chosen]; }
};

/// The plan of the least memory. Errors: those of minimum_budget.
Status plan_least(ShareUnit& unit);
/// One more, with all its weights, and that chosen. Errors: those of plan_session.
Status plan_all(ShareUnit& unit);
/// Adds plans that keep more weights, as far as `room` bytes of arena allow. Errors: those of plan_session.
Status plan_more(ShareUnit& unit, Bytes room);

/// The memory of the chosen plans: kept weights, the windows of all parts, tables.
Bytes bytes_of(std::span<const ShareUnit> units, std::size_t parts);
/// The window of a part.
Bytes window_of(std::span<const ShareUnit> units, std::size_t part);

/// Chooses among the plans that the units have. `room` holds at least the first plans of all.
void share_out(std::span<ShareUnit> units, std::size_t parts, Bytes room);
/// The remaining room goes to the units that gain by it, with plans for just as much.
Status use_rest(std::span<ShareUnit> units, std::size_t parts, Bytes room);

}  // namespace sluice::scheduler
