// The budget arithmetic: how much of a budget is left for the arena.
//
//     budget  |<-- overhead -->|<------------- capacity of the arena ------------->|
//
//     library scope   overhead = graph and tables + stacks: what Sluice holds beside the arena
//     process scope   overhead = what a program usually holds with these models, profiles and inputs + code that will run and what else will
//                                be touched + what the program says that it will take (reserve) + 256 KiB for the error of the kernel's
//                                counter; where the process holds more beside code now, that in place of the first, in steps of 256 KiB
//
// So `plan`, `predict` and `run` have the same overhead whatever each of them holds, and make the same plan.
//
// In process scope the pages of code that were needed up to here are given back before the process is measured, and again before the
// arena is touched: of its code only what runs counts beside the arena.
//
// This overhead does not depend on the budget, so that the smallest budget that works is one number: overhead + least capacity. Room for
// tables is set aside in it; a plan whose tables are longer than that (never the least one) counts the rest as overhead of its own.
#pragma once

#include <span>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/engine/engine.h"

namespace sluice::engine {

/// Heap bytes of an open model, allocator included: a conservative estimate.
Bytes graph_bytes(const model::Graph& graph) noexcept;
/// Heap bytes of a plan and of the executor's tables for it.
Bytes table_bytes(const model::Graph& graph, const plan::Plan& plan);

/// The same for a plan that is yet to be made: what each of its parts costs, and what is set aside for all of them.
planner::TableCosts table_costs(const model::Graph& graph) noexcept;

/// Bytes that are set aside for the tables of any plan for this graph.
Bytes table_bound(const model::Graph& graph) noexcept;

/// What a session holds, or causes to be resident, beside its arena. Gives the heap's free pages and code back first in process scope.
Bytes overhead_of(const Model& model, const SessionOptions& options);

/// A session of several that use an arena in turn. What has been built is in the process already.
struct SessionShare {
  const Model* model = nullptr;
  const SessionOptions* options = nullptr;
  bool built = false;
  bool threads_run = false;  // of its plan's threads: those beside the caller's have been started
};
/// The overhead of all sessions together: it counts each model and the compute threads once. `arena` is what the arena holds now, `reserve`
/// what the program will take afterwards.
Bytes overhead_of(std::span<const SessionShare> sessions, BudgetScope scope, int threads, Bytes arena, Bytes reserve);

/// That of a process that holds nothing but what the options and the model ask for, in process scope.
Bytes usual_overhead(const Model& model, const SessionOptions& options);

/// Both copies of the options' profile, the program's and the session's own; zero without one.
Bytes profile_copies(const SessionOptions& options) noexcept;
/// Of all that reads for a session of this graph.
Bytes decoders_bytes(const model::Graph& graph) noexcept;
/// What is held of the code that decrypts, and its tables, while a model runs; zero where it is not encrypted.
Bytes cipher_bytes(const Model& model) noexcept;
/// Of the graph and its free extents.
Bytes model_bytes(const Model& model) noexcept;
/// The program's own copy of the inputs.
Bytes input_bytes(const model::Graph& graph) noexcept;
/// Beside the code of its runs: what a process holds for each thread of a session.
Bytes thread_bytes(int threads) noexcept;

/// What is left of the budget for the arena: whole pages; zero when nothing is.
Bytes capacity_of(Bytes budget, Bytes overhead) noexcept;

/// overhead + capacity, the inverse of `capacity_of`; in process scope at least what a process holds while it opens and plans,
/// and its reserve.
Bytes budget_of(const Model& model, Bytes capacity, Bytes overhead, const SessionOptions& options);

/// What is left of a budget for code that nobody needs any more, below which pages of code are given back: more than all that planning or a
/// run was seen to map.
inline constexpr Bytes kPlenty(std::uint64_t{8} << 20);
/// Is it less when a process plans that holds `resident`?
bool plans_tightly(const Model& model, Bytes budget, Bytes resident) noexcept;
/// Is it less when a run begins?
bool runs_tightly(Bytes budget, Bytes overhead, Bytes arena) noexcept;

/// The least peak of a process that has opened a model and planned, whatever the model.
Bytes least_process(bool encrypted) noexcept;
/// What planning holds beyond it.
Bytes planning_bytes(const Model& model, const SessionOptions& options);

/// After a session is built, in process scope: does the process still fit beside an arena of `arena` bytes, of which it holds `held` now,
/// and what the program will take? Errors: kBudgetTooSmall.
Status check_floor(const Model& model, Bytes budget, Bytes arena, Bytes held, Bytes reserve) noexcept;

}  // namespace sluice::engine
