// What stands behind a SharedArena, and behind a session that has an arena to itself: one budget, one arena, one pool, and the sessions
// that use them in turn.
//
//     join, set_budget   arrange: a plan for each tenant, all within the budget  ->  lay_out: their addresses  ->  move_in: bind, commit
//     take_turn          the one before leaves; what it kept is carried over to those that keep the same
//
// Plans change only where they must: a new tenant's tables take room, and whose plan no longer fits beside them is planned again; whose
// addresses change is bound again. All that can fail comes before anything is changed.
//
// A tenant that is removed while a read of the system's does not end stays behind with all that the read may write to. It still has the
// arena: a session that takes a turn or joins waits for it, as for any tenant before.
//
// Every call but `memory` wants an Occupation.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/threads.h"
#include "sluice/engine/engine.h"
#include "src/core/build_list.h"
#include "src/engine/arena_window.h"
#include "src/engine/tenant.h"

namespace sluice::engine {

struct TenancyOptions {
  Bytes budget = kUnlimitedBytes;
  Bytes largest_budget;
  BudgetScope scope = BudgetScope::kLibrary;
  Bytes reserve;
  int threads = 1;
  std::vector<int> compute_cpus;
  bool shared = false;   // more than one tenant may join
  ArenaWindow window{};  // where the arena is not its own
};

class Tenancy {
 public:
  explicit Tenancy(const TenancyOptions& options);
  ~Tenancy();
  Tenancy(const Tenancy&) = delete;
  Tenancy& operator=(const Tenancy&) = delete;

  /// Errors: those of Session::create; then `newcomer` is no tenant and may be destroyed.
  Status join(Tenant& newcomer);
  /// What no other tenant needs goes back to the system. Takes at most 100 ms.
  void remove(std::unique_ptr<Tenant> tenant) noexcept;
  /// Whether a removed tenant's reads are still under way, after one more look at them.
  bool stuck() noexcept;
  Status set_budget(Bytes budget);
  /// Makes `tenant` the one whose inputs and outputs are valid. Allocates nothing. Errors: those of Executor::leave.
  Status take_turn(Tenant& tenant) noexcept;

  /// In a window: all kept weights are in the arena outside of it, read by the session that ran first, and stay. Errors: those of
  /// Executor::leave.
  Status weights_are_there() noexcept;

  /// Before a run, the first since plans changed: where a process budget has little room to spare, code of opening and planning goes back,
  /// so that it does not lie beside that of the run, which comes in pieces.
  void release_code() noexcept;

  MemoryReport memory() const noexcept;
  bool shared() const noexcept { return kSharesArenas && options_.shared; }
  /// Is a call under way in some thread?
  bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }
  /// Is this a forked child of the process that made it? Threads are not forked, so nothing that waits for one ends here.
  bool foreign() const noexcept { return ::getpid() != process_; }
  const TenancyOptions& options() const noexcept { return options_; }
  /// Null as long as no plan shares a step.
  ThreadPool* pool() const noexcept { return pool_.get(); }

 private:
  friend class Occupation;
  friend class StuckReads;

  /// By tenant: the plan to come, which is the one it has where nothing changes.
  struct Arrangement {
    Bytes budget;
    Bytes overhead;
    Bytes tables;                                          // beyond what the overhead counts
    std::vector<std::shared_ptr<PlacedPlan>> fresh;        // null where it keeps its plan
    std::vector<std::shared_ptr<const PlacedPlan>> plans;  // what it keeps, or `fresh` as soon as that has its place
    Bytes end;
  };

  Status rearrange(Bytes budget, bool plan_all);
  Result<Arrangement> arrange(Bytes budget, bool plan_all);
  Result<bool> plan_what_does_not_fit(Arrangement& next, std::vector<bool>& outdated);
  Result<std::shared_ptr<PlacedPlan>> plan_one(const Arrangement& next, std::size_t index);
  bool has_room(const Arrangement& next, const PlacedPlan& plan) const noexcept;
  Result<PlacedPlan> adopt_in_window(const Tenant& tenant) const;
  void place(Arrangement& next);
  Status start_threads(const Arrangement& next);
  Status move_in(Arrangement next);
  Result<std::vector<BoundSession>> bind_all(const Arrangement& next, bool keeps_bytes);
  executor::Holding holding_of(std::size_t index, const PlacedPlan& plan) const;
  Bytes bytes_to_reserve(const Arrangement& next) const;
  Status settle(const executor::Executor* next) noexcept;
  void forget(const Tenant& gone) noexcept;
  void let_go(Tenant& gone) noexcept;
  /// Does this budget bound what the process holds?
  bool bounds_process(Bytes budget) const noexcept;
  void hold_nothing() noexcept;
  void discard_all() noexcept;
  bool windowed() const noexcept { return kSharesArenas && options_.window.arena != nullptr; }
  Arena& arena() noexcept { return windowed() ? *options_.window.arena : arena_; }
  void wipe_for_others() noexcept;

  const pid_t process_ = ::getpid();
  TenancyOptions options_;
  Bytes overhead_;
  std::uint64_t plans_made_ = 0;
  std::unique_ptr<ThreadPool> caller_;  // the calling thread alone: of plans that share no step
  std::unique_ptr<ThreadPool> pool_;    // of the others; null as long as there are none
  Arena arena_;                         // not in a window
  std::vector<Tenant*> tenants_;
  Tenant* owner_ = nullptr;              // whose turn it is: what passes through the arena is its own
  std::unique_ptr<Tenant> stuck_;        // no tenant any more, but the owner
  std::shared_ptr<Tenancy> next_stuck_;  // in the list of StuckReads
  bool has_planned_ = false;             // since the last run
  // Used by `memory`, which any thread may call.
  std::atomic<std::uint64_t> budget_bytes_;
  std::atomic<std::uint64_t> overhead_bytes_{0};
  std::atomic<std::uint64_t> arena_bytes_{0};
  std::atomic<bool> busy_{false};
};

/// Marks a tenancy as in use by one thread; a second one is told so instead of racing, and so is a forked child.
class Occupation {
 public:
  enum class Wait : bool { kNo, kYes };
  explicit Occupation(Tenancy& tenancy, Wait wait = Wait::kNo) noexcept;
  Occupation(const Occupation&) = delete;
  Occupation& operator=(const Occupation&) = delete;
  ~Occupation();
  Status status() const noexcept;

 private:
  Tenancy& tenancy_;
  const bool foreign_;
  bool held_;
};

}  // namespace sluice::engine
