#include "src/engine/planning.h"

#include <algorithm>

#include "sluice/plan/verify.h"
#include "src/engine/budget.h"

namespace sluice::engine {
namespace {

using namespace literals;

planner::PlanRequest request_for(const Model& model, const SessionOptions& options, Bytes capacity) noexcept {
  return {.capacity = capacity,
          .threads = options.threads,
          .policy = options.policy,
          .repeat = options.repeat,
          .keep_inputs = options.keep_inputs,
          .model_hash = model.file().hash(),
          .search_ms = options.search_ms};
}

profiler::DeviceProfile profile_for(const SessionOptions& options) {
  profiler::DeviceProfile profile = options.profile != nullptr ? *options.profile : profiler::DeviceProfile();
  // A measured profile is of its own number of threads: where it is not ours, its kernels' times would be wrong.
  if (profile.threads != options.threads) {
    profile.kernels.clear();
    profile.threads = options.threads;
  }
  profile.read_piece_bytes = options.read.size.count();
  profile.reads_in_flight = static_cast<std::uint32_t>(options.read.in_flight);
  if (options.read.bytes_per_second_limit > 0) profile.read_limit = options.read.bytes_per_second_limit;
  return profile;
}

Status verify_plan(const Model& model, const plan::Plan& plan) {
  return plan::verify(plan, model.graph(), {.file_size = model.file().file_size(), .model_hash = model.file().hash()});
}

tl::unexpected<Error> too_small(const Model& model, Bytes needed, Bytes given) noexcept {
  return fail(make_error(ErrorCode::kBudgetTooSmall, model.file().path(), "the smallest budget that works is larger", needed.count(),
                         given.count()));
}

Status check_keeps_inputs(const Model& model, const plan::Plan& plan) noexcept {
  for (const model::Port& port : model.graph().inputs) {
    const BufferId buffer = plan.tensors[port.tensor.index()].buffer;
    if (buffer.valid() && !plan.buffer(buffer).whole_period) {
      return fail(ErrorCode::kInvalidPlan, port.name,
                  "the plan does not keep this input from run to run; open the session without keep_inputs");
    }
  }
  return {};
}

/// The caller's own plan, if it fits.
Result<PlannedBudget> adopt(const Model& model, const SessionOptions& options, Bytes overhead) {
  SLUICE_RETURN_IF_ERROR(verify_plan(model, *options.plan));
  if (options.keep_inputs) SLUICE_RETURN_IF_ERROR(check_keeps_inputs(model, *options.plan));
  const Bytes needed = budget_of(options.plan->arena_bytes, overhead, options.scope);
  if (needed > options.budget) return too_small(model, needed, options.budget);
  return PlannedBudget{*options.plan, overhead, needed};
}

/// What the tables of a plan take beyond what the overhead has set aside for them.
Bytes excess_of(const Model& model, const plan::Plan& plan) noexcept {
  const Bytes tables = table_bytes(model.graph(), plan);
  return tables - std::min(tables, table_bound(model.graph()));
}

Result<plan::Plan> plan_in(const Model& model, const SessionOptions& options, Bytes capacity,
                           std::size_t most_items = planner::PlanRequest().most_items) {
  planner::PlanRequest request = request_for(model, options, capacity);
  request.most_items = most_items;
  SLUICE_ASSIGN_OR_RETURN(plan::Plan plan, planner::make_plan(model.graph(), profile_for(options), request));
  SLUICE_RETURN_IF_ERROR(verify_plan(model, plan));
  // Its tables count in the budget: no spare room in them.
  plan.buffers.shrink_to_fit();
  plan.steps.shrink_to_fit();
  plan.operands.shrink_to_fit();
  plan.loads.shrink_to_fit();
  return plan;
}

/// As many steps and loads as what was set aside for tables can name, when `plan` has too many.
std::size_t fewer_items(const Model& model, const plan::Plan& plan) noexcept {
  const double share =
      static_cast<double>(table_bound(model.graph()).count()) / static_cast<double>(table_bytes(model.graph(), plan).count());
  return static_cast<std::size_t>(static_cast<double>(plan.steps.size() + plan.loads.size()) * share);
}

/// What a plan takes: its arena, and its tables beyond what was set aside.
Bytes size_with_tables(const Model& model, const plan::Plan& plan) noexcept { return plan.arena_bytes + excess_of(model, plan); }

/// The plan that the smallest budget is for. That of the least capacity cuts weights so finely that its tables can take more than the finer
/// cut saves (GPT-2: 13.0 MiB of arena and 2.4 of tables, where 13.6 and none do), so a little more room for fewer steps and loads is
/// tried.
Result<PlannedBudget> least_plan(const Model& model, const SessionOptions& options, Bytes overhead, Bytes capacity) {
  Result<plan::Plan> plan = plan_in(model, options, capacity);
  if (!plan) return fail(plan.error());
  const Bytes excess = excess_of(model, *plan);
  if (excess > Bytes()) {
    constexpr Bytes kWorthRoom = 64_KiB;
    const Bytes room = excess > kWorthRoom ? Bytes(excess.count() / 4) : Bytes();
    Result<plan::Plan> lean = plan_in(model, options, align_up(capacity + room, 4096), fewer_items(model, *plan));
    if (lean && size_with_tables(model, *lean) < size_with_tables(model, *plan)) plan.swap(lean);
  }
  const Bytes all = overhead + excess_of(model, *plan);
  const Bytes budget = budget_of(plan->arena_bytes, all, options.scope);
  return PlannedBudget{std::move(*plan), all, budget};
}

/// A plan with more steps and loads than was set aside for is made again, with what it lacks set aside as well; where that leaves too
/// little, with fewer of them.
Result<PlannedBudget> plan_with_its_tables(const Model& model, const SessionOptions& options, Bytes overhead) {
  Result<plan::Plan> plan = plan_in(model, options, capacity_of(options.budget, overhead));
  for (int attempt = 0; plan && attempt < 2; ++attempt) {
    const Bytes all = overhead + excess_of(model, *plan);
    const Bytes needed = budget_of(plan->arena_bytes, all, options.scope);
    if (needed <= options.budget) return PlannedBudget{std::move(*plan), all, {}};
    const std::size_t fewer = fewer_items(model, *plan);
    // Swapped: an assignment would copy into the vectors of the plan before, and keep their spare room.
    plan_in(model, options, capacity_of(options.budget, all)).swap(plan);
    if (!plan && plan.error().code == ErrorCode::kBudgetTooSmall)
      plan_in(model, options, capacity_of(options.budget, overhead), fewer).swap(plan);
  }
  if (!plan && plan.error().code != ErrorCode::kBudgetTooSmall) return fail(plan.error());
  const Bytes capacity = plan ? plan->minimum_capacity : Bytes(plan.error().needed);
  SLUICE_ASSIGN_OR_RETURN(PlannedBudget least, least_plan(model, options, overhead, capacity));
  if (least.minimum_budget > options.budget) return too_small(model, least.minimum_budget, options.budget);
  return least;
}

}  // namespace

Status check_options(const SessionOptions& options) noexcept {
  if (options.threads < 1 || options.threads > 1024) {
    return fail(ErrorCode::kInvalidArgument, "threads", "the number of threads must lie between 1 and 1024");
  }
  if (!(options.read.bytes_per_second_limit >= 0)) {
    return fail(ErrorCode::kInvalidArgument, "read limit", "a rate is zero (no limit) or more");
  }
  return {};
}

Result<PlannedBudget> plan_within(const Model& model, const SessionOptions& options, Bytes overhead) {
  if (options.plan != nullptr) return adopt(model, options, overhead);
  return plan_with_its_tables(model, options, overhead);
}

}  // namespace sluice::engine

namespace sluice {

Result<PlannedBudget> plan_session(const Model& model, const SessionOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  const Bytes overhead = engine::overhead_of(model, options);
  SLUICE_ASSIGN_OR_RETURN(PlannedBudget planned, engine::plan_within(model, options, overhead));
  if (planned.minimum_budget != Bytes()) return planned;
  SLUICE_ASSIGN_OR_RETURN(const PlannedBudget least, engine::least_plan(model, options, overhead, planned.plan.minimum_capacity));
  planned.minimum_budget = least.minimum_budget;
  return planned;
}

Result<Bytes> minimum_budget(const Model& model, const SessionOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  SLUICE_ASSIGN_OR_RETURN(const Bytes capacity, planner::minimum_capacity(model.graph(), engine::profile_for(options),
                                                                          engine::request_for(model, options, Bytes())));
  SLUICE_ASSIGN_OR_RETURN(const PlannedBudget least, engine::least_plan(model, options, engine::overhead_of(model, options), capacity));
  return least.minimum_budget;
}

}  // namespace sluice
