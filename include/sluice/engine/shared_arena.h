// One budget for many sessions that run in turn: several models, or several sessions of one.
//
//     auto arena = sluice::SharedArena::create({.budget = 64_MiB});
//     auto faces = sluice::Session::create(*face_model, {.arena = *arena});
//     auto names = sluice::Session::create(*name_model, {.arena = *arena});
//     (*faces)->set_input(...); (*faces)->run(); (*faces)->get_output(...);      // a turn of faces
//     (*names)->set_input(...); (*names)->run(); (*names)->get_output(...);      // a turn of names
//
//     budget  |<-- overhead: pool, tables of all -->|<-- kept: faces -->|<-- kept: names -->|<-- passing: whoever runs -->|
//
// One arena and one compute pool serve all; each session has its own plan, tables and (mostly sleeping) loader thread, which count in the
// budget. Each session is planned as if the arena were its own, within SessionOptions::budget if that is less. If the budget has room for
// all resident weights of their plans, these are side by side, and nothing is read again; if not, a session's turn overwrites what it
// needs, and the others read that again in theirs. The caller divides the arena among models by the budgets of the sessions, since only the
// caller knows which model matters.
//
// Invariants:
// - (T1) The bytes of all sessions together, arena and overhead, stay within the one budget.
// - (T2) Sessions run in turn. A session takes its turn with `set_input` or `run`, and by being created: loads that the session before had
//   begun for its next run are ended, and its inputs and outputs no longer hold. Asked for them, or run without them, it says so.
// - (T3) One thread at a time uses the arena and all its sessions; a second one is told so and changes nothing. Only `cancel` may come from
//   any thread. Destroying a session waits for a call that is under way in another thread.
// - (T4) Resident weights outlive the turn of another session exactly where no byte of them lies in a buffer of its plan, or where it
//   keeps the same weights at the same addresses. Sessions of one model share what both keep: it is read once, and never written by a step.
// - (T5) The bits of a session are those of the session alone, whatever ran between.
// - (T6) An error of a session, of `Session::create` or of `set_budget` leaves the other sessions as they were, but for their turn.
#pragma once

#include <memory>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/engine/engine.h"

namespace sluice {

class SharedArena;

namespace engine {
class Tenancy;
struct WindowOptions;
Result<std::shared_ptr<SharedArena>> open_window(const WindowOptions& options);
}  // namespace engine

struct SharedArenaOptions {
  Bytes budget = kUnlimitedBytes;
  Bytes largest_budget{};  // addresses are reserved for set_budget up to here, so that going up keeps what is resident; 0: budget
  BudgetScope scope = BudgetScope::kLibrary;
  Bytes reserve{};                  // as SessionOptions::reserve
  int threads = 1;                  // that compute, for all sessions
  std::vector<int> compute_cpus{};  // as SessionOptions::compute_cpus
};

/// Sessions keep what they need of it: it may be let go before them.
class SharedArena {
 public:
  /// Takes no memory to speak of before the first session. Errors: kInvalidArgument.
  static Result<std::shared_ptr<SharedArena>> create(const SharedArenaOptions& options);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  /// Plans all sessions again for another budget, as Session::set_budget does for one: memory goes back at once, their inputs must be set
  /// again. Errors: kBudgetTooSmall naming the model that does not fit, with the smallest budget in which it and the tables of all do.
  Status set_budget(Bytes budget);

  /// The figures of all sessions together; while another thread uses the arena, the last ones known.
  MemoryReport memory() const noexcept;

  /// Used by Session::create.
  const std::shared_ptr<engine::Tenancy>& tenancy() const noexcept { return tenancy_; }

 private:
  friend Result<std::shared_ptr<SharedArena>> engine::open_window(const engine::WindowOptions& options);
  explicit SharedArena(std::shared_ptr<engine::Tenancy> tenancy) noexcept;
  std::shared_ptr<engine::Tenancy> tenancy_;
};

}  // namespace sluice
