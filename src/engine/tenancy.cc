#include "src/engine/tenancy.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sluice/core/affinity.h"
#include "src/core/out_of_memory.h"
#include "src/core/wipe.h"
#include "src/engine/budget.h"
#include "src/engine/planning.h"
#include "src/engine/process_memory.h"
#include "src/model/built_features.h"

namespace sluice::engine {
namespace {

// Each new plan has other tables, which leave other plans other room; plans settle in two rounds or three.
constexpr int kRounds = 4;
// A loader and a step reader may each take it, within the 100 ms in which closing ends.
constexpr std::int64_t kClosingPatienceNs = 40'000'000;

Bytes memory_of_machine() noexcept {
  return Bytes(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

void move_to(PlacedPlan& plan, PlanPlace place) noexcept {
  move_plan(plan.planned.plan, plan.parts, plan.place, place);
  plan.place = place;
}

/// A plan of a caller's may have anything in it.
Status check_shareable(const Model& model, const plan::Plan& plan) noexcept {
  const auto stateful = [](const plan::Buffer& buffer) { return buffer.kind == plan::BufferKind::kState; };
  if (std::none_of(plan.buffers.begin(), plan.buffers.end(), stateful)) return {};
  return fail(ErrorCode::kUnsupported, model.file().path(), "a plan with state from run to run cannot share its arena");
}

}  // namespace

Tenancy::Tenancy(const TenancyOptions& options) : options_(options), budget_bytes_(options.budget.count()) {
  if (options_.compute_cpus.empty()) options_.compute_cpus = processors_to_compute_on(options_.threads);
}

Tenancy::~Tenancy() {
  // The workers that the pool would wait for are threads of the parent. What a child cannot end goes with it.
  if (foreign()) static_cast<void>(pool_.release());
}

Status Tenancy::join(Tenant& newcomer) {
  tenants_.push_back(&newcomer);
  const Status joined = or_out_of_memory("session", [&] { return rearrange(options_.budget, false); });
  if (!joined) {
    tenants_.pop_back();
    return joined;
  }
  if (owner_ != nullptr) owner_->end_turn();
  owner_ = &newcomer;
  newcomer.options.plan = nullptr;
  return {};
}

Status Tenancy::set_budget(Bytes budget) {
  if (!tenants_.empty()) return rearrange(budget, true);
  options_.budget = budget;
  budget_bytes_ = budget.count();
  return {};
}

Status Tenancy::rearrange(Bytes budget, bool plan_all) {
  SLUICE_RETURN_IF_ERROR(settle(nullptr));
  SLUICE_ASSIGN_OR_RETURN(Arrangement next, arrange(budget, plan_all));
  return move_in(std::move(next));
}

Result<Tenancy::Arrangement> Tenancy::arrange(Bytes budget, bool plan_all) {
  if (bounds_process(budget) && plans_tightly(*tenants_.back()->model, budget, read_process_memory().resident))
    release_code_pages_in_pieces();
  Arrangement next;
  next.budget = budget;
  next.overhead = overhead_;
  next.fresh.resize(tenants_.size());
  std::vector<SessionShare> shares;
  bool grows = false;
  for (const Tenant* tenant : tenants_) {
    next.plans.push_back(tenant->plan);
    if (tenant->plan != nullptr) next.tables += tenant->plan->planned.overhead;
    shares.push_back({tenant->model.get(), &tenant->options, tenant->plan != nullptr, pool_ != nullptr});
    grows = grows || tenant->plan == nullptr;
  }
  // A process is measured when a session comes: a change of budget does not depend on what else it holds at the moment.
  if (grows || options_.scope == BudgetScope::kLibrary)
    next.overhead = overhead_of(shares, options_.scope, options_.threads, arena_.resident(), options_.reserve);
  std::vector<bool> outdated(tenants_.size(), plan_all);
  for (int round = 0;; ++round) {
    SLUICE_ASSIGN_OR_RETURN(const bool changed, plan_what_does_not_fit(next, outdated));
    if (!changed) break;
    if (round == kRounds) {
      return fail(make_error(ErrorCode::kBudgetTooSmall, "shared arena", "the sessions' tables leave no room for their plans",
                             (budget + next.tables).count(), budget.count()));
    }
  }
  place(next);
  return next;
}

/// One round: a plan for each tenant that has none, or one that is `outdated` or too large. Whether there was any.
Result<bool> Tenancy::plan_what_does_not_fit(Arrangement& next, std::vector<bool>& outdated) {
  bool changed = false;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (next.plans[i] && !outdated[i] && has_room(next, *next.plans[i])) continue;
    const Tenant& tenant = *tenants_[i];
    next.plans[i] = next.fresh[i] = nullptr;
    outdated[i] = false;
    changed = true;
    for (std::size_t j = 0; kSharesArenas && j < tenants_.size() && !next.plans[i]; ++j) {
      const bool usable = next.plans[j] && !outdated[j] && !next.plans[j]->adopted && has_room(next, *next.plans[j]);
      if (!usable || !same_file(*tenant.model, *tenants_[j]->model) || !same_plans(tenant.options, tenants_[j]->options)) continue;
      next.plans[i] = next.plans[j];
      next.fresh[i] = next.fresh[j];
    }
    if (!next.plans[i]) {
      SLUICE_ASSIGN_OR_RETURN(next.fresh[i], plan_one(next, i));
      next.plans[i] = next.fresh[i];
    }
    next.tables = Bytes();
    for (const auto& plan : next.plans)
      if (plan) next.tables += plan->planned.overhead;
  }
  return changed;
}

/// Counts whole pages, as `place` and the planner do. A plan that fits by less than a page does not fit.
bool Tenancy::has_room(const Arrangement& next, const PlacedPlan& plan) const noexcept {
  return windowed() || Bytes(plan.parts.bytes()) <= capacity_of(next.budget, next.overhead + next.tables);
}

/// The plan that the tenant brings, at the address that is known for it. Its tables are counted elsewhere.
Result<PlacedPlan> Tenancy::adopt_in_window(const Tenant& tenant) const {
  const ArenaWindow& window = options_.window;
  const auto known =
      std::find_if(window.kept.begin(), window.kept.end(), [&](const KeptPlace& kept) { return kept.plan == tenant.options.plan; });
  if (known == window.kept.end())
    return fail(ErrorCode::kInvalidArgument, tenant.model->file().path(), "a session in a window brings a plan that has its place there");
  SessionOptions options = tenant.options;
  options.budget = kUnlimitedBytes;
  options.scope = BudgetScope::kLibrary;
  PlacedPlan placed;
  SLUICE_ASSIGN_OR_RETURN(placed.planned, plan_within(*tenant.model, options, Bytes()));
  placed.parts = known->parts;
  placed.place = {0, placed.parts.kept};
  if (placed.parts.passing > window.passing.size())
    return fail(make_error(ErrorCode::kBudgetTooSmall, tenant.model->file().path(), "the window is smaller than what passes",
                           placed.parts.passing, window.passing.size()));
  const std::uint64_t passing = align_down(window.passing.end - placed.parts.passing, kArenaPage);
  move_to(placed, {placed.parts.kept == 0 ? passing : known->at, passing});
  return placed;
}

/// The plan stays at the planner's own addresses. Its overhead is what its tables take beyond what the common overhead counts.
Result<std::shared_ptr<PlacedPlan>> Tenancy::plan_one(const Arrangement& next, std::size_t index) {
  const Tenant& tenant = *tenants_[index];
  if (windowed()) {
    SLUICE_ASSIGN_OR_RETURN(PlacedPlan adopted, adopt_in_window(tenant));
    SLUICE_RETURN_IF_ERROR(check_shareable(*tenant.model, adopted.plan()));
    adopted.footprint.emplace(adopted.plan());
    adopted.origin = ++plans_made_;
    adopted.adopted = true;
    return std::make_shared<PlacedPlan>(std::move(adopted));
  }
  Bytes overhead = next.overhead;
  for (std::size_t j = 0; j < next.plans.size(); ++j)
    if (j != index && next.plans[j]) overhead += next.plans[j]->planned.overhead;
  SessionOptions options = tenant.options;
  options.scope = options_.scope;
  options.reserve = options_.reserve;
  options.threads = options_.threads;
  options.budget = next.budget;
  // A session's own budget is what it would take alone.
  const SessionOptions alone{.threads = options_.threads, .profile = options.profile, .tuning = options.tuning};
  const Bytes alone_overhead = shared() && tenant.options.budget < kUnlimitedBytes ? overhead_of(*tenant.model, alone) : Bytes();
  const bool limited = alone_overhead > Bytes() && capacity_of(tenant.options.budget, alone_overhead) < capacity_of(next.budget, overhead);
  if (limited) options.budget = overhead + capacity_of(tenant.options.budget, alone_overhead);
  Result<PlannedBudget> planned = plan_within(*tenant.model, options, overhead);
  if (!planned) {
    Error error = planned.error();
    if (limited && error.code == ErrorCode::kBudgetTooSmall) {
      error.needed = error.needed - overhead.count() + alone_overhead.count();
      error.available = tenant.options.budget.count();
    }
    return fail(error);
  }
  if (shared()) SLUICE_RETURN_IF_ERROR(check_shareable(*tenant.model, planned->plan));
  planned->overhead -= overhead;
  auto placed = std::make_shared<PlacedPlan>();
  placed->planned = std::move(*planned);
  placed->parts = parts_of(placed->plan());
  placed->place = {0, placed->parts.kept};
  placed->origin = ++plans_made_;
  placed->adopted = options.plan != nullptr;
  return placed;
}

/// Gives each plan its addresses: one that moves and is in use is copied first.
void Tenancy::place(Arrangement& next) {
  if (windowed()) {
    next.end = Bytes(options_.window.passing.size());
    return;
  }
  if constexpr (!kSharesArenas) {  // the plan has the arena to itself, and its own addresses
    next.end = next.plans.front()->plan().arena_bytes;
    return;
  }
  std::vector<PlanToPlace> to_place;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    std::size_t model = 0;
    while (!same_file(*tenants_[model]->model, *tenants_[i]->model)) ++model;
    to_place.push_back({next.plans[i]->parts, model});
  }
  const std::vector<PlanPlace> places = lay_out(to_place, capacity_of(next.budget, next.overhead + next.tables).count());
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (next.plans[i]->place != places[i] && !next.fresh[i]) {
      const std::shared_ptr<const PlacedPlan> before = next.plans[i];
      next.fresh[i] = std::make_shared<PlacedPlan>(*before);
      for (std::size_t j = i; j < tenants_.size(); ++j)
        if (next.plans[j] == before) next.plans[j] = next.fresh[j] = next.fresh[i];
    }
    if (next.fresh[i]) {
      move_to(*next.fresh[i], places[i]);
      if (shared()) next.fresh[i]->footprint.emplace(next.fresh[i]->plan());
    }
    next.end = std::max(next.end, next.plans[i]->plan().arena_bytes);
  }
}

/// Those that the plans to come want. A thread that has nothing to do costs memory, and each run the time to ask what it has computed.
Status Tenancy::start_threads(const Arrangement& next) {
  if (kSharesArenas && !caller_) {
    SLUICE_ASSIGN_OR_RETURN(caller_, make_thread_pool(1));
  }
  // A trimmed build has one plan, and fewer bytes of code.
  const auto shares = [](const std::shared_ptr<const PlacedPlan>& placed) { return !kSharesArenas || plan::shares_steps(placed->plan()); };
  if (pool_ || std::none_of(next.plans.begin(), next.plans.end(), shares)) return {};
  const ScopedAffinity processors(options_.compute_cpus);
  SLUICE_RETURN_IF_ERROR(processors.status());
  SLUICE_ASSIGN_OR_RETURN(pool_, make_thread_pool(options_.threads));
  return {};
}

Status Tenancy::move_in(Arrangement next) {
  SLUICE_RETURN_IF_ERROR(start_threads(next));
  const bool moving = !windowed() && next.end > arena_.reserved();
  Arena other;  // the one to come, then the one before
  if (moving) {
    SLUICE_ASSIGN_OR_RETURN(other, Arena::reserve(bytes_to_reserve(next)));
    std::swap(arena_, other);
  }
  if (model::is_built(model::Feature::kEncryption) &&
      std::any_of(tenants_.begin(), tenants_.end(), [](const Tenant* tenant) { return tenant->model->file().key() != nullptr; }))
    arena().keep_secret();
  // Inside: the arena is changed back whatever fails.
  Result<std::vector<BoundSession>> bound = or_out_of_memory("session", [&] { return bind_all(next, !moving); });
  Status ready = bound ? Status() : fail(bound.error());
  const bool grows = std::any_of(tenants_.begin(), tenants_.end(), [](const Tenant* tenant) { return tenant->plan == nullptr; });
  if (ready && grows && options_.scope == BudgetScope::kProcess)
    ready = check_floor(*tenants_.back()->model, next.budget, next.end, moving ? other.resident() : arena_.resident(), options_.reserve);
  // Addresses only: memory comes with their use.
  if (ready && !windowed() && next.end > arena_.committed()) ready = arena_.commit(next.end);
  if (!ready) {
    if (moving) std::swap(arena_, other);
    return ready;
  }
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (!(*bound)[i].executor) continue;
    tenants_[i]->end_turn();
    tenants_[i]->take(std::move((*bound)[i]), next.plans[i]);
  }
  overhead_ = next.overhead;
  options_.budget = next.budget;
  budget_bytes_ = next.budget.count();
  overhead_bytes_ = (next.overhead + next.tables).count();
  arena_bytes_ = next.end.count();
  has_planned_ = true;
  other = Arena();
  if (!windowed()) SLUICE_RETURN_IF_ERROR(arena_.commit(next.end));
  next = {};
  if (options_.scope == BudgetScope::kProcess && !grows) release_free_heap();
  return {};
}

/// Sessions whose plan changes, or all where the arena is another one, ready to run. The others' places are empty.
Result<std::vector<BoundSession>> Tenancy::bind_all(const Arrangement& next, bool keeps_bytes) {
  std::vector<BoundSession> bound(tenants_.size());
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = *tenants_[i];
    if (keeps_bytes && next.plans[i] == tenant.plan) continue;
    if (tenant.plan == nullptr) SLUICE_RETURN_IF_ERROR(tenant.open(options_.threads, options_.compute_cpus));
    const executor::Holding held = keeps_bytes ? holding_of(i, *next.plans[i]) : executor::Holding::none(next.plans[i]->plan());
    ThreadPool& pool = !kSharesArenas || plan::shares_steps(next.plans[i]->plan()) ? *pool_ : *caller_;
    SLUICE_ASSIGN_OR_RETURN(bound[i], tenant.bind(*next.plans[i], held, arena(), pool));
  }
  return bound;
}

/// The weights that the arena holds already for a plan to come, left there by any session of the same model.
executor::Holding Tenancy::holding_of(std::size_t index, const PlacedPlan& plan) const {
  executor::Holding held = executor::Holding::none(plan.plan());
  if constexpr (!kSharesArenas) return held;
  for (const Tenant* tenant : tenants_) {
    if (tenant->plan == nullptr || !same_file(*tenant->model, *tenants_[index]->model)) continue;
    const executor::Holding& there = tenant->executor()->held();
    executor::Holding found = executor::Holding::none(plan.plan());
    const PlacedPlan& before = *tenant->plan;
    if (before.origin == plan.origin && before.place.kept == plan.place.kept) {
      found = there;
    } else {
      const executor::Footprint footprint(before.plan());
      executor::outlive(plan.plan(), found, {before.plan(), footprint, there}, true, tenant->graph().stretches);
    }
    for (std::size_t k = 0; k < found.loads.size(); ++k) held.loads[k] = held.loads[k] || found.loads[k];
    held.derived = held.derived || found.derived;
  }
  return held;
}

/// Addresses to reserve: as many as the budget or the machine has if others may join; for one session, those of its largest plan.
Bytes Tenancy::bytes_to_reserve(const Arrangement& next) const {
  const Bytes largest = std::max(options_.largest_budget, next.budget);
  if constexpr (!kSharesArenas) return next.end;
  if (shared()) return std::max(next.end, std::min(largest, memory_of_machine()));
  if (options_.largest_budget <= next.budget || tenants_.front()->plan != nullptr) return next.end;
  SessionOptions options = tenants_.front()->options;
  options.budget = largest;
  const Result<PlannedBudget> plan = plan_within(*tenants_.front()->model, options, next.overhead);
  return plan ? std::max(next.end, plan->plan.arena_bytes) : next.end;
}

/// The owner leaves, and what holds for the others is brought up to date. Done twice, it is done.
Status Tenancy::settle(const executor::Executor* next) noexcept {
  if (owner_ == nullptr) return {};
  SLUICE_RETURN_IF_ERROR(owner_->executor()->leave(next));
  if (stuck_) let_go(*stuck_);
  if (owner_ == nullptr) return {};
  if (!shared()) return {};
  const PlacedPlan& left = *owner_->plan;
  const executor::Tenure tenure{left.plan(), *left.footprint, owner_->executor()->held()};
  for (Tenant* tenant : tenants_) {
    if (tenant == owner_ || tenant->plan == nullptr) continue;
    executor::outlive(tenant->plan->plan(), tenant->executor()->held(), tenure, same_file(*tenant->model, *owner_->model),
                      tenant->graph().stretches);
  }
  return {};
}

Status Tenancy::take_turn(Tenant& tenant) noexcept {
  if (owner_ == &tenant) return {};
  SLUICE_RETURN_IF_ERROR(settle(tenant.executor()));
  if (owner_ != nullptr) owner_->end_turn();
  owner_ = &tenant;
  return {};
}

void Tenancy::remove(std::unique_ptr<Tenant> tenant) noexcept {
  const auto found = std::find(tenants_.begin(), tenants_.end(), tenant.get());
  if (found == tenants_.end()) return;
  tenants_.erase(found);
  if (owner_ == tenant.get() && !tenant->executor()->quiet(kClosingPatienceNs)) {
    // Its memory that no other session uses is given back nevertheless; the reads still bring little.
    if (tenants_.empty()) discard_all();  // which overwrites what was encrypted
    stuck_ = std::move(tenant);
    return;
  }
  if (owner_ == tenant.get()) {
    static_cast<void>(settle(nullptr));  // nothing is left to wait for
    owner_ = nullptr;
  }
  tenant->bound = {};
  if (model::is_built(model::Feature::kEncryption) && tenant->model->file().key() != nullptr) wipe_for_others();
  forget(*tenant);
}

void Tenancy::discard_all() noexcept {
  if (windowed())
    arena().discard(options_.window.passing);
  else
    arena_.discard({0, arena_.committed().count()});
}

/// Decrypted bytes may be wherever loads and steps of the session that is gone have written, also between weights that others keep.
void Tenancy::wipe_for_others() noexcept {
  wipe_stack();
  if (tenants_.empty()) return;  // all of the arena goes back, which overwrites it
  if (!settle(nullptr)) return;  // another's reads do not end: `forget` overwrites what nobody uses, the arena's end the rest
  if (owner_ != nullptr) owner_->end_turn();
  if (windowed())
    arena().wipe(options_.window.passing);
  else
    arena_.wipe();
  hold_nothing();
}

Status Tenancy::weights_are_there() noexcept {
  SLUICE_CHECK(windowed(), "weights stay where nobody's turn overwrites them");
  SLUICE_RETURN_IF_ERROR(settle(nullptr));
  for (Tenant* tenant : tenants_) {
    if (tenant->plan->parts.kept == 0) continue;
    tenant->executor()->keep_weights();
    tenant->weights_stay = true;
  }
  return {};
}

bool Tenancy::stuck() noexcept {
  if (stuck_ && stuck_->executor()->quiet(0)) let_go(*stuck_);
  return stuck_ != nullptr;
}

/// The weights that the others kept in the arena are gone.
void Tenancy::hold_nothing() noexcept {
  if constexpr (!kSharesArenas) return;  // there are no others
  for (Tenant* other : tenants_) {
    if (other->plan == nullptr || other->weights_stay) continue;  // it is about to join; no session writes to the weights that it keeps
    executor::Holding& held = other->executor()->held();
    std::fill(held.loads.begin(), held.loads.end(), false);
    held.derived = false;
  }
}

/// The late reads of a removed tenant have ended, and it is unknown what they have overwritten.
void Tenancy::let_go(Tenant& gone) noexcept {
  hold_nothing();
  owner_ = nullptr;
  gone.bound = {};
  forget(gone);
  stuck_.reset();
}

/// Gives back what the session that is gone has left: all above the others' plans, and what it kept where nobody else is.
void Tenancy::forget(const Tenant& gone) noexcept {
  if (windowed()) return;  // the window is given back with the arena
  std::uint64_t end = 0;
  const executor::Footprint::ByteRange kept{gone.plan->place.kept, gone.plan->place.kept + gone.plan->parts.kept};
  bool used = false;
  for (const Tenant* tenant : tenants_) {
    if (tenant->plan == nullptr) continue;
    end = std::max(end, tenant->plan->plan().arena_bytes.count());
    used = used || (kSharesArenas && tenant->plan->footprint->touches(kept));
  }
  if (!used) arena_.discard(kept);
  arena_bytes_ = end;
  static_cast<void>(arena_.commit(Bytes(end)));
}

void Tenancy::release_code() noexcept {
  if (!std::exchange(has_planned_, false) || !bounds_process(options_.budget)) return;
  const Bytes arena(arena_bytes_), resident = read_process_memory().resident;
  // The second is true of a program that has taken much since its session was made.
  if (runs_tightly(options_.budget, Bytes(overhead_bytes_), arena) ||
      resident + arena - std::min(arena, arena_.resident()) + kPlenty > options_.budget)
    release_code_pages_in_pieces();
}

bool Tenancy::bounds_process(Bytes budget) const noexcept { return options_.scope == BudgetScope::kProcess && budget < kUnlimitedBytes; }

MemoryReport Tenancy::memory() const noexcept {
  return {Bytes(budget_bytes_), Bytes(overhead_bytes_), Bytes(arena_bytes_), read_process_memory().peak_resident};
}

Occupation::Occupation(Tenancy& tenancy, Wait wait) noexcept
    : tenancy_(tenancy), foreign_(tenancy.foreign()), held_(!foreign_ && !tenancy.busy_.exchange(true, std::memory_order_acquire)) {
  while (!held_ && !foreign_ && wait == Wait::kYes) {
    tenancy_.busy_.wait(true, std::memory_order_relaxed);
    held_ = !tenancy_.busy_.exchange(true, std::memory_order_acquire);
  }
}

Occupation::~Occupation() {
  if (!held_) return;
  tenancy_.busy_.store(false, std::memory_order_release);
  tenancy_.busy_.notify_one();
}

Status Occupation::status() const noexcept {
  if (held_) return {};
  if (foreign_)
    return fail(ErrorCode::kInvalidArgument, "session", "the session belongs to the process that this one was forked from: make one here");
  return fail(ErrorCode::kInvalidArgument, "session",
              tenancy_.shared() ? "another thread uses the arena that the session shares" : "the session is in use by another thread");
}

}  // namespace sluice::engine
