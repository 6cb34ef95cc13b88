#include "src/engine/planning.h"

#include <algorithm>
#include <tuple>

#include "sluice/plan/verify.h"
#include "sluice/profiler/latency.h"
#include "sluice/profiler/profile_file.h"
#include "src/core/build_list.h"
#include "src/core/out_of_memory.h"
#include "src/engine/budget.h"

namespace sluice::engine {
namespace {

#ifndef SLUICE_NO_PLANNER

planner::PlanRequest request_for(const Model& model, const SessionOptions& options, Bytes capacity) noexcept {
  return {.capacity = capacity,
          .threads = options.threads,
          .policy = options.tuning.policy,
          .repeat = options.repeat,
          .read_ahead = options.tuning.read_ahead,
          .keep_inputs = options.keep_inputs || options.ports_elsewhere,
          .model_hash = model.file().hash(),
          .tables = table_costs(model.graph()),
          .search_ms = options.tuning.search_ms,
          .partition = options.tuning.partition,
          .hand_over_outputs = options.outputs.take != nullptr,
          .may_spill = !options.scratch_directory.empty(),
          .max_overhead = options.tuning.max_overhead};
}

#endif

/// All that plans depend on.
bool same_profile(const profiler::DeviceProfile& a, const profiler::DeviceProfile& b) noexcept {
  const auto rates = [](const profiler::DeviceProfile& p) {
    return std::tie(p.threads, p.flops_per_second, p.depthwise_flops_per_second, p.memory_bytes_per_second, p.step_overhead_seconds,
                    p.read_bytes_per_second, p.load_start_seconds, p.wake_seconds, p.verify_bytes_per_second, p.decoded_per_second,
                    p.decrypt_bytes_per_second, p.read_rate_beside_compute, p.step_time_beside_reads, p.read_limit, p.share_seconds,
                    p.copies_views, p.interruptions.share, p.interruptions.met, p.reads_at_once, p.others_bytes_per_second);
  };
  const auto same_kernel = [](const profiler::KernelRates& x, const profiler::KernelRates& y) {
    return x.kernel == y.kernel && x.seconds_per == y.seconds_per && x.scales == y.scales;
  };
  const auto same_sample = [](const profiler::KernelSample& x, const profiler::KernelSample& y) {
    return x.kernel == y.kernel && x.work.cost == y.work.cost && x.work.shape == y.work.shape && x.seconds == y.seconds;
  };
  const auto same_read = [](const profiler::ReadRate& x, const profiler::ReadRate& y) {
    return x.depth == y.depth && x.piece_bytes == y.piece_bytes && x.bytes_per_second == y.bytes_per_second;
  };
  return rates(a) == rates(b) && std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(), same_kernel) &&
         a.placed == b.placed && std::equal(a.samples.begin(), a.samples.end(), b.samples.begin(), b.samples.end(), same_sample) &&
         std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), same_read);
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

/// Adds to `overhead` what the plan's tables take beyond what was set aside for them.
Bytes overhead_with_tables(const Model& model, const plan::Plan& plan, Bytes overhead) {
  const Bytes tables = table_bytes(model.graph(), plan);
  return overhead + tables - std::min(tables, table_bound(model.graph()));
}

/// The caller's own plan, if it fits.
Result<PlannedBudget> adopt(const Model& model, const SessionOptions& options, Bytes overhead) {
  SLUICE_RETURN_IF_ERROR(verify_plan(model, *options.plan));
  if (options.keep_inputs) SLUICE_RETURN_IF_ERROR(check_keeps_inputs(model, *options.plan));
  const Bytes all = overhead_with_tables(model, *options.plan, overhead);
  const Bytes needed = budget_of(model, options.plan->arena_bytes, all, options);
  if (needed > options.budget) return too_small(model, needed, options.budget);
  return PlannedBudget{*options.plan, all, needed};
}

#ifdef SLUICE_NO_PLANNER

tl::unexpected<Error> no_planner(const Model& model) noexcept {
  return fail(ErrorCode::kUnsupported, model.file().path(),
              "this build has no planner: it runs plans of its model that `sluice plan --save` wrote (SessionOptions::plan)");
}
Result<PlannedBudget> plan_in(const Model& model, const SessionOptions&, Bytes) { return no_planner(model); }

#else

/// The planner's choice: what its tables take beyond what was set aside for them is part of its overhead.
Result<PlannedBudget> plan_in(const Model& model, const SessionOptions& options, Bytes overhead) {
  const planner::PlanRequest request = request_for(model, options, capacity_of(options.budget, overhead));
  Result<plan::Plan> plan = planner::make_plan(model.graph(), profile_for(options), request);
  if (!plan && plan.error().code == ErrorCode::kBudgetTooSmall)
    return too_small(model, budget_of(model, Bytes(plan.error().needed), overhead, options), options.budget);
  if (!plan) return fail(plan.error());
  // Its tables count in the budget, so their vectors have no spare capacity.
  plan->buffers.shrink_to_fit();
  plan->steps.shrink_to_fit();
  plan->operands.shrink_to_fit();
  plan->loads.shrink_to_fit();
  plan->passing.shrink_to_fit();
  plan->blocks.shrink_to_fit();
  const Bytes all = overhead_with_tables(model, *plan, overhead);
  const Bytes minimum = budget_of(model, plan->minimum_capacity, overhead, options);
  // A plan may fit where the process that opens and plans does not.
  if (options.scope == BudgetScope::kProcess && options.budget < budget_of(model, Bytes(), Bytes(), options))
    return too_small(model, minimum, options.budget);
  return PlannedBudget{std::move(*plan), all, minimum};
}

#endif

}  // namespace

Status check_options(const SessionOptions& options) noexcept {
  if (!runs_here())
    return fail(ErrorCode::kUnsupported, active_isa_name(),
                "this build has kernels for one instruction set alone, which this CPU does not have");
  if (options.threads < 1 || options.threads > 1024) {
    return fail(ErrorCode::kInvalidArgument, "threads", "the number of threads must lie between 1 and 1024");
  }
  if (!(options.emulation.read_bytes_per_second >= 0)) {
    return fail(ErrorCode::kInvalidArgument, "read limit", "a rate is zero (no limit) or more");
  }
  if (options.reserve >= kUnlimitedBytes) {
    return fail(ErrorCode::kInvalidArgument, "reserve", "no budget leaves room for as much");
  }
  if (const Status reads = executor::check_reads(reads_of(options)); !reads) return reads;
  if (!(options.tuning.max_overhead >= 0 && options.tuning.max_overhead <= 10)) {
    return fail(ErrorCode::kInvalidArgument, "max overhead", "is a share of the time without bands, from 0 to 10");
  }
  if (!executor::is_compute_slowdown(options.emulation.compute_slowdown)) {
    return fail(ErrorCode::kInvalidArgument, "compute slowdown", "is a factor from 1 to 1000");
  }
  return {};
}

profiler::DeviceProfile profile_for(const SessionOptions& options) {
  profiler::DeviceProfile profile = options.profile != nullptr ? profiler::without_samples(*options.profile) : profiler::DeviceProfile();
  // A measured profile is for one number of threads: with another number its kernels' times would be wrong.
  if (profile.threads != options.threads) {
    profiler::forget_kernels(profile);
    profile.threads = options.threads;
  }
  const executor::ReadOptions reads = reads_of(options);
  profile.read_piece_bytes = reads.size.count();
  profile.reads_in_flight = static_cast<std::uint32_t>(reads.in_flight);
  if (reads.bytes_per_second_limit > 0) profile.read_limit = reads.bytes_per_second_limit;
  profile.compute_slowdown = options.emulation.compute_slowdown;
  return profile;
}

static_assert(profiler::kMostReadsInFlight == executor::kMaxReadsInFlight, "a session takes what a profile found best");

executor::ReadOptions reads_of(const SessionOptions& options) {
  executor::ReadOptions reads{.method = options.tuning.read_method,
                              .size = options.tuning.read_size,
                              .in_flight = options.tuning.reads_in_flight,
                              .timeout_ms = options.tuning.read_timeout_ms,
                              .bytes_per_second_limit = options.emulation.read_bytes_per_second};
  const profiler::DeviceProfile assumed;
  profiler::ReadRate best{assumed.reads_in_flight, assumed.read_piece_bytes, 0};
  if (kUsesProfiles && options.profile != nullptr) best = profiler::best_reads(*options.profile);
  if (reads.size == Bytes()) reads.size = Bytes(best.piece_bytes);
  if (reads.in_flight == 0) reads.in_flight = static_cast<int>(best.depth);
  return reads;
}

bool same_file(const Model& a, const Model& b) noexcept {
  // The hash covers the header, and with it the checksums of all weights.
  return &a == &b ||
         (a.file().hash() == b.file().hash() && a.file().file_size() == b.file().file_size() && a.file().path() == b.file().path());
}

bool same_plans(const SessionOptions& a, const SessionOptions& b) noexcept {
  const auto chosen = [](const SessionOptions& o) {
    const Tuning& t = o.tuning;
    const Emulation& e = o.emulation;
    return std::tie(o.budget, o.repeat, o.keep_inputs, o.ports_elsewhere, t.policy, t.read_ahead, t.search_ms, t.partition, t.max_overhead,
                    t.read_size, t.reads_in_flight, e.read_bytes_per_second, e.compute_slowdown);
  };
  // Each session hands outputs to its own hook, and spills to its own file.
  if ((a.outputs.take == nullptr) != (b.outputs.take == nullptr) || a.scratch_directory.empty() != b.scratch_directory.empty())
    return false;
  if (a.plan != nullptr || b.plan != nullptr || chosen(a) != chosen(b)) return false;
  if (a.profile == nullptr || b.profile == nullptr) return a.profile == b.profile;
  return same_profile(*a.profile, *b.profile);
}

Result<PlannedBudget> plan_within(const Model& model, const SessionOptions& options, Bytes overhead) {
  if (!options.scratch_directory.empty() && model.file().key() != nullptr)
    return fail(ErrorCode::kUnsupported, model.file().path(),
                "an encrypted model does not spill: its activations would lie there in plain");
  if (options.plan != nullptr) return adopt(model, options, overhead);
  return plan_in(model, options, overhead);
}

}  // namespace sluice::engine

namespace sluice {

namespace {

/// `use(model)` with the graph of the options' extents.
template <class Use>
auto with_dims_of(const Model& model, const SessionOptions& options, Use&& use) -> decltype(use(model)) {
  if (options.dims.empty()) return use(model);
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> other, model.with_dims(options.dims));
  return use(*other);
}

}  // namespace

#ifdef SLUICE_NO_PLANNER
static Result<Bytes> least_budget(const Model& model, const SessionOptions&, planner::Partition) { return engine::no_planner(model); }
#else
/// `partition`: the one that is looked for.
static Result<Bytes> least_budget(const Model& model, const SessionOptions& options, planner::Partition partition) {
  planner::PlanRequest request = engine::request_for(model, options, Bytes());
  request.partition = partition;
  SLUICE_ASSIGN_OR_RETURN(const Bytes capacity, planner::minimum_capacity(model.graph(), engine::profile_for(options), request));
  return engine::budget_of(model, capacity, engine::overhead_of(model, options), options);
}
#endif

Result<PlannedBudget> plan_session(const Model& given, const SessionOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  return or_out_of_memory(given.file().path(), [&] {
    return with_dims_of(given, options, [&](const Model& model) -> Result<PlannedBudget> {
      SLUICE_ASSIGN_OR_RETURN(PlannedBudget planned, engine::plan_within(model, options, engine::overhead_of(model, options)));
      if (options.plan != nullptr) return planned;
      // The partition of least memory is looked for as thoroughly for a plan as for the smallest budget, which the plan then states. What
      // needs less than that partition is the plan without bands, or rarely one with others, which only `minimum_budget` looks for.
      const planner::Partition partition = options.tuning.partition;
      const bool looked = partition == planner::Partition::kLeast && options.scratch_directory.empty();
      SLUICE_ASSIGN_OR_RETURN(const Bytes least, least_budget(model, options, looked ? planner::Partition::kOff : partition));
      planned.minimum_budget = looked ? std::min(planned.minimum_budget, least) : least;
      return planned;
    });
  });
}

Result<Bytes> minimum_budget(const Model& given, const SessionOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
  return or_out_of_memory(given.file().path(), [&] {
    return with_dims_of(given, options, [&](const Model& model) { return least_budget(model, options, options.tuning.partition); });
  });
}

Result<planner::PartitionReport> report_partition(const Model& given, const SessionOptions& options, const plan::Plan& plan) {
  SLUICE_RETURN_IF_ERROR(engine::check_options(options));
#ifdef SLUICE_NO_PLANNER
  static_cast<void>(plan);
  return engine::no_planner(given);
#else
  return or_out_of_memory(given.file().path(), [&] {
    return with_dims_of(given, options, [&](const Model& model) {
      return planner::report_partition(model.graph(), engine::profile_for(options), engine::request_for(model, options, Bytes()), plan);
    });
  });
#endif
}

}  // namespace sluice
