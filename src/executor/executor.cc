#include "sluice/executor/executor.h"

#include <new>
#include <utility>

#include "sluice/core/lane.h"
#include "src/executor/bind.h"
#include "src/executor/clock.h"
#include "src/executor/loader.h"

namespace sluice::executor {
namespace {

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source, Arena& arena, ThreadPool& pool,
               const ExecutorOptions& options, BoundPlan bound) noexcept
      : plan_(plan),
        pool_(pool),
        bound_(std::move(bound)),
        loader_(graph, plan, source, arena.data(), options.read_bytes_per_second_limit, steps_, loads_) {
    for (const plan::Load& load : plan.loads) streams_ = streams_ || load.streamed();
    for (BoundStep& step : bound_.steps) step.call.fault = &step.fault;
  }

  Status start() noexcept { return plan_.loads.empty() ? Status() : loader_.start(); }

  RowView input(std::size_t port) noexcept override { return bound_.inputs[port]; }
  RowView output(std::size_t port) noexcept override { return bound_.outputs[port]; }
  const RunStats& stats() const noexcept override { return stats_; }

  Status run() noexcept override {
    stats_ = {};
    const std::int64_t wall = wall_now_ns();
    const std::int64_t cpu = cpu_now_ns();
    const bool prologue = !primed_;
    const bool loading = prologue ? !plan_.loads.empty() : streams_;
    const std::uint64_t loads_base = loads_.count();
    if (loading) {
      loads_.rearm();
      loader_.begin(prologue, steps_.count());
    }
    run_steps(prologue, loads_base);
    const Status status = loading ? loader_.finish() : Status();
    if (loading) {
      stats_.load_ns = loader_.stats().busy_ns;
      stats_.bytes_read = loader_.stats().bytes_read;
    }
    primed_ = status.has_value();
    const Status values = status.has_value() ? take_faults() : status;
    stats_.wall_ns = wall_now_ns() - wall;
    stats_.cpu_ns = cpu_now_ns() - cpu;
    return values;
  }

 private:
  /// The first step whose kernel met values that it cannot compute with.
  Status take_faults() noexcept {
    Status first;
    for (BoundStep& step : bound_.steps) {
      if (step.fault.reason != nullptr && first) first = fail(ErrorCode::kInvalidArgument, step.call.node->name, step.fault.reason);
      step.fault = {};
    }
    return first;
  }

  /// Ends early when the loader gave up; its error is the run's.
  void run_steps(bool prologue, std::uint64_t loads_base) noexcept {
    for (const BoundStep& step : bound_.steps) {
      const std::uint64_t needed = loads_base + (prologue ? step.loads_in_prologue : step.loads_in_period);
      if (loads_.count() < needed && !stall(needed)) return;
      if (prologue || !step.prologue_only) step.run(step.call);
      steps_.advance();
    }
  }

  bool stall(std::uint64_t loads_needed) noexcept {
    pool_.rest();
    const std::int64_t start = wall_now_ns();
    const bool arrived = loads_.wait_for(loads_needed);
    stats_.stall_ns += wall_now_ns() - start;
    return arrived;
  }

  const plan::Plan& plan_;
  ThreadPool& pool_;
  BoundPlan bound_;
  Lane steps_;
  Lane loads_;
  bool streams_ = false;
  bool primed_ = false;  // resident weights have arrived
  RunStats stats_;
  Loader loader_;
};

/// That arena, pool and source are those that the plan was made for.
Status check_surroundings(const plan::Plan& plan, const model::WeightSource& source, const Arena& arena, const ThreadPool& pool) {
  if (arena.reserved() < plan.arena_bytes) {
    return fail(make_error(ErrorCode::kInvalidPlan, "arena", "the plan's addresses lie beyond the arena", plan.arena_bytes.count(),
                           arena.reserved().count()));
  }
  if (static_cast<std::uint32_t>(pool.thread_count()) > plan.threads) {
    return fail(make_error(ErrorCode::kInvalidPlan, "thread pool", "the plan's workspaces are for fewer threads",
                           static_cast<std::uint64_t>(pool.thread_count()), plan.threads));
  }
  for (const plan::Load& load : plan.loads) {
    const std::uint64_t block = source.block();
    const std::uint64_t target = plan.buffer(load.target).offset.count();
    // A read ends on a block of the disk: regions that are rounded to smaller ones would be overrun.
    if (plan.block % block != 0 || target % block != 0 || load.file.offset.count() % block != 0) {
      return fail(make_error(ErrorCode::kInvalidPlan, "load", "a load is not aligned to the blocks of the disk", block, target % block));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                   Arena& arena, ThreadPool& pool, const ExecutorOptions& options) {
  SLUICE_RETURN_IF_ERROR(check_surroundings(plan, source, arena, pool));
  SLUICE_ASSIGN_OR_RETURN(BoundPlan bound, bind({graph, plan, arena.data(), pool, options.find_kernel}));
  std::unique_ptr<PlanExecutor> executor(new (std::nothrow) PlanExecutor(graph, plan, source, arena, pool, options, std::move(bound)));
  if (!executor) return fail(ErrorCode::kOutOfMemory, graph.name, "no memory for the executor");
  SLUICE_RETURN_IF_ERROR(executor->start());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace sluice::executor
