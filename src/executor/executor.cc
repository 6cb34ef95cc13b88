#include "sluice/executor/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "sluice/core/lane.h"
#include "sluice/kernels/turns.h"
#include "src/core/out_of_memory.h"
#include "src/executor/bind.h"
#include "src/executor/clock.h"
#include "src/executor/loader.h"
#include "src/executor/movable_ports.h"
#include "src/executor/pass.h"
#include "src/executor/step_runner.h"
#include "src/plan/built_needs.h"

namespace sluice::executor {
namespace {

using plan::kHasPassing;

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source, Arena& arena, ThreadPool& pool,
               const ExecutorOptions& options, Holding held, BoundPlan bound)
      : graph_(graph),
        plan_(plan),
        pool_(pool),
        bound_(std::move(bound)),
        held_(std::move(held)),
        skipped_(plan.loads.size(), false),
        compute_slowdown_(options.compute_slowdown),
        max_turns_(options.max_turns),
        before_step_(options.before_step),
        between_parts_(options.between_parts),
        after_step_(options.after_step),
        outputs_(options.outputs),
        scratch_(options.scratch),
        reader_(graph, source, options.read, options.make_decoders, cancelled_),
        turns_(graph, source, options.read, options.make_decoders, cancelled_),
        runner_(pool, reader_, turns_, cancelled_),
        loader_({graph, plan, skipped_, bound_.guards, source, arena.data(), steps_, loads_}, options.read, options.make_decoders) {
    for (Pass pass : kPasses) count_loads(pass);
    if (options.ports_move) ports_ = MovablePorts(graph, plan, bound_);
    for (BoundStep& step : bound_.steps) {
      step.call.fault = &fault_;
      if (!kReadsInSteps && !model::kRunsSubgraphs) continue;
      if (step.window == 0) continue;
      if (model::kRunsSubgraphs && step.runs_bodies) {
        reads_in_turns_ = reads_in_turns_ || bound_.bodies[step.window - 1]->reads();
        continue;
      }
      step.call.reader = &reader_;
      reads_in_steps_ = true;
    }
    if (options.time_steps) {
      step_times_.resize(bound_.steps.size());
      loader_.keep_times();
    }
  }

  Status start(std::span<const int> load_cpus, const model::FileKey* key) noexcept {
    if (kReadsInSteps && reads_in_steps_) SLUICE_RETURN_IF_ERROR(reader_.start(load_cpus, key));
    if (model::kRunsSubgraphs && reads_in_turns_) SLUICE_RETURN_IF_ERROR(turns_.start(load_cpus, key));
    return plan_.loads.empty() ? Status() : loader_.start(load_cpus, key);
  }

  RowView input(std::size_t port) noexcept override { return bound_.inputs[port]; }
  RowView output(std::size_t port) noexcept override { return bound_.outputs[port]; }
  bool place_input(std::size_t port, std::byte* data) noexcept override { return ports_.place_input(bound_, port, data); }
  bool place_output(std::size_t port, std::byte* data) noexcept override { return ports_.place_output(bound_, port, data); }
  Shape output_shape(std::size_t port) const noexcept override {
    const Shape* extents = bound_.output_extents[port];
    return extents != nullptr ? *extents : graph_.outputs[port].onnx_shape;
  }
  const RunStats& stats() const noexcept override { return stats_; }
  std::span<const StepTime> step_times() const noexcept override { return step_times_; }
  std::span<const LoadTime> load_times() const noexcept override { return loader_.times(); }

  Status run() noexcept override {
    stats_ = {};
    const std::int64_t wall = wall_now_ns();
    const std::int64_t cpu = cpu_now_ns();
    if (pass_ == Pass::kTakenOver && !keeps_weights_) count_loads(pass_);
    const bool loading = loads_in_pass() > 0;
    Status status = kReadsInSteps && reads_in_steps_ ? reader_.ready() : Status();
    if (model::kRunsSubgraphs && status && reads_in_turns_) status = turns_.ready();
    status = status ? begin(loading) : end(status);
    if (status) {
      run_steps();
      if (loading) status = finish_loads();
      const Status in_steps = std::exchange(reader_status_, Status());
      if (status) status = in_steps;
      stats_.bytes_looked_up = reader_.take_bytes_read();
      stats_.bytes_read += stats_.bytes_looked_up + turns_.take_bytes_read();
      stats_.load_ns += reader_.take_busy_ns() + turns_.take_busy_ns();
      status = end(status);
      if constexpr (kHasPassing)
        if (const Status passed = std::exchange(passing_status_, Status()); !passed) status = passed;
    }
    if (status) {
      pass_ = Pass::kPeriod;
    } else if (loading || pass_ != Pass::kPeriod) {
      pass_ = clean_pass();
    }
    const Status values = take_fault();
    stats_.wall_ns = wall_now_ns() - wall;
    stats_.cpu_ns = cpu_now_ns() - cpu;
    return status ? values : status;
  }

  void read_ahead(bool wanted) noexcept override { read_ahead_ = wanted; }

  Status settle() noexcept override {
    if (!failed_) return {};
    const Status read = drain_steps(this, kForever);
    const Status loaded = plan_.loads.empty() ? Status() : loader_.drain(this);
    return read ? loaded : read;
  }

  Status leave(const Executor* next) noexcept override { return leave_within(next, kForever); }
  bool quiet(std::int64_t patience_ns) noexcept override { return leave_within(nullptr, patience_ns).has_value(); }
  Holding& held() noexcept override { return held_; }
  void keep_weights() noexcept override {
    SLUICE_DCHECK(pass_ == Pass::kTakenOver, "the loader rests");
    for (std::size_t k = 0; k < plan_.loads.size(); ++k) held_.loads[k] = plan_.loads[k].resident;
    held_.derived = true;
    keeps_weights_ = true;
    count_loads(Pass::kTakenOver);
  }

  void cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    loader_.cancel();
    loads_.interrupt();
  }

  bool cancelled() const noexcept override { return cancelled_.load(); }

  void forget_cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!cancelled_) return;
    static_cast<void>(take_cancellation());
    if (loads_in_pass() > 0 || pass_ != Pass::kPeriod) pass_ = clean_pass();  // the loader has given up what it had begun
  }

 private:
  /// What steps have left under way.
  Status drain_steps(const Executor* next, std::int64_t patience_ns) noexcept {
    const Status read = kReadsInSteps && reads_in_steps_ ? reader_.drain(next, patience_ns) : Status();
    const Status of_turns = model::kRunsSubgraphs && reads_in_turns_ ? turns_.drain(next, patience_ns) : Status();
    return read ? of_turns : read;
  }

  Status leave_within(const Executor* next, std::int64_t patience_ns) noexcept {
    const Status read = drain_steps(next, patience_ns);
    const Status loaded = plan_.loads.empty() ? Status() : loader_.drain(next, patience_ns);
    // Whether or not all has ended, what was begun is given up.
    if (pass_ != Pass::kTakenOver && !keeps_weights_) {
      for (std::size_t k = 0; k < plan_.loads.size(); ++k) held_.loads[k] = plan_.loads[k].resident && pass_ == Pass::kPeriod;
      held_.derived = pass_ == Pass::kPeriod;
    }
    pass_ = Pass::kTakenOver;
    return read ? loaded : read;
  }

  const model::Node& node_of(const BoundStep& step) const noexcept {
    return graph_.node(plan_.steps[static_cast<std::size_t>(&step - bound_.steps.data())].node);
  }

  /// The first step whose kernel met values that it cannot compute with.
  Status take_fault() noexcept {
    const model::Node* const node = std::exchange(faulty_node_, nullptr);
    const kernels::StepFault fault = std::exchange(first_fault_, {});
    if (node == nullptr) return {};
    return fail(ErrorCode::kInvalidArgument, node->name, fault.reason);
  }

  void note_fault(const BoundStep& step) noexcept {
    const kernels::StepFault fault = std::exchange(fault_, {});
    if (faulty_node_ != nullptr) return;
    faulty_node_ = &node_of(step);
    first_fault_ = fault;
  }

  /// How many loads of a pass there are, and how many of them each step waits for. The loader rests.
  void count_loads(Pass pass) noexcept {
    const auto index = static_cast<std::size_t>(pass);
    for (std::size_t k = 0; k < plan_.loads.size(); ++k) {
      const plan::Load& load = plan_.loads[k];
      skipped_[k] = (load.resident && held_.loads[k]) || (load.prologue_only && held_.derived);
    }
    std::uint32_t seen = 0;     // of the plan's loads
    std::uint32_t running = 0;  // of those seen, in this pass
    const auto count_to = [&](std::uint32_t end) {
      if (end < seen) seen = running = 0;  // only in a plan from elsewhere: the planner's steps need ever more loads
      for (; seen < end; ++seen) running += runs_in(pass, plan_.loads[seen], skipped_[seen]);
      return running;
    };
    for (std::size_t i = 0; i < bound_.steps.size(); ++i) bound_.steps[i].loads_needed[index] = count_to(plan_.steps[i].loads_needed);
    loads_in_[index] = count_to(static_cast<std::uint32_t>(plan_.loads.size()));
  }

  /// Of a run after an error.
  Pass clean_pass() const noexcept { return keeps_weights_ ? Pass::kTakenOver : Pass::kFirst; }

  bool prepares() const noexcept { return pass_ == Pass::kFirst || (pass_ == Pass::kTakenOver && !held_.derived); }

  std::uint64_t loads_in_pass() const noexcept { return loads_in_[static_cast<std::size_t>(pass_)]; }

  /// The lock orders a cancellation: it meets lanes that are armed for this run, or it comes before and the run does not start.
  Status begin(bool loading) noexcept {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return take_cancellation();
    if (failed_) {
      loader_.rearm();
      loads_.rearm();
      failed_ = false;
    }
    if (pass_ != Pass::kPeriod) loads_base_ = loads_.count();
    if (loading) loader_.begin(pass_, steps_.count(), read_ahead_);
    return {};
  }

  Status finish_loads() noexcept {
    const Status status = loader_.finish();
    loads_base_ += loads_in_pass();
    stats_.load_ns = loader_.stats().busy_ns;
    stats_.bytes_read = loader_.stats().bytes_read;
    return status;
  }

  Status end(const Status& status) noexcept {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return take_cancellation();
    failed_ = !status;
    return status;
  }

  Status take_cancellation() noexcept {
    cancelled_ = false;
    failed_ = true;
    return fail(ErrorCode::kCancelled, "run", "the caller asked to stop");
  }

  /// Ends early when the loader gave up; its error is the run's. A skipped step waits for its loads too, because later loads may be read
  /// into their memory.
  void run_steps() noexcept {
    auto guarded = bound_.guards.runs().begin();
    const auto wanted = [&](std::size_t i) {
      while (guarded != bound_.guards.runs().end() && guarded->end <= i) ++guarded;
      return guarded == bound_.guards.runs().end() || i < guarded->begin || bound_.guards.met(guarded->guard);
    };
    std::size_t next_block = 0;
    struct Stopping {  // the pool is of several executors
      ~Stopping() {
        pool.stop_when(nullptr);
        pool.pause_when({});
      }
      ThreadPool& pool;
    } stopping{pool_};
    pool_.stop_when(&cancelled_);
    if (between_parts_.wanted != nullptr) pool_.pause_when({between_parts_.wanted, &PlanExecutor::between_parts, this});
    for (std::size_t i = 0; i < bound_.steps.size(); ++i) {
      const BoundStep& step = bound_.steps[i];
      const std::size_t first_block = next_block;
      while (next_block < plan_.blocks.size() && plan_.blocks[next_block].step == i) ++next_block;
      if (before_step_.call != nullptr) before_step_(event_of(i));
      if (cancelled_.load(std::memory_order_relaxed)) return;
      const std::int64_t stalled_before = stats_.stall_ns;
      const std::uint64_t needed = loads_base_ + step.loads_needed[static_cast<std::size_t>(pass_)];
      if (loads_.count() < needed && !stall(needed)) return;
      const std::int64_t start = step_times_.empty() ? 0 : wall_now_ns();
      const std::int64_t away_before = away_ns_;
      const bool runs = (!step.prologue_only || prepares()) && wanted(i);
      if (kHasPassing && runs && !fetch(first_block, next_block)) return;
      if (runs) run_step(step);
      if (fault_.reason != nullptr) note_fault(step);
      if (cancelled_.load(std::memory_order_relaxed)) return;  // which may have cut the step short
      if (kHasPassing && runs && !pass_on(first_block, next_block)) return;
      if (!step_times_.empty())
        step_times_[i] = {stats_.stall_ns - stalled_before, wall_now_ns() - start - (away_ns_ - away_before), start};
      steps_.advance();
      if (after_step_.call != nullptr) tell_after(i, runs);
    }
  }

  /// Brings what a step reads of the scratch file: blocks [first, end). False where the run is over.
  bool fetch(std::size_t first, std::size_t end) noexcept {
    for (std::size_t b = first; b < end; ++b) {
      if (plan_.blocks[b].passage != plan::Passage::kFetched) continue;
      const BoundBlock& block = bound_.blocks[b];
      if (const Status read = scratch_->read(block.file_offset, {block.data, block.bytes}); !read) return give_up(read);
      stats_.scratch_read += Bytes(block.bytes);
    }
    return true;
  }

  /// And what it has made on to the scratch file or to the caller.
  bool pass_on(std::size_t first, std::size_t end) noexcept {
    for (std::size_t b = first; b < end; ++b) {
      const BoundBlock& block = bound_.blocks[b];
      const plan::PassingBlock& planned = plan_.blocks[b];
      if (planned.passage == plan::Passage::kStored) {
        if (const Status written = scratch_->write(block.file_offset, {block.data, block.bytes}); !written) return give_up(written);
        stats_.scratch_written += Bytes(block.bytes);
      } else if (planned.passage == plan::Passage::kHandedOver) {
        const Status taken = outputs_.take(outputs_.context, {block.port, block.view, planned.rows, planned.channels});
        if (!taken) return give_up(taken);
      }
    }
    return true;
  }

  /// The run ends here, as by a cancellation, but with this error.
  bool give_up(const Status& reason) noexcept {
    passing_status_ = reason;
    cancel();
    return false;
  }

  StepEvent event_of(std::size_t index) const noexcept {
    const plan::Step& step = plan_.steps[index];
    return {.index = index, .count = plan_.steps.size(), .step = &step, .node = &graph_.node(step.node)};
  }

  void tell_after(std::size_t index, bool ran) const noexcept {
    StepEvent event = event_of(index);
    event.ran = ran;
    if (!step_times_.empty()) event.time = &step_times_[index];
    after_step_(event);
  }

  void run_step(const BoundStep& step) noexcept {
    if (compute_slowdown_ == 1) return run_at_full_speed(step);
    const auto not_computing_ns = [&] { return reader_.busy_ns() + turns_.busy_ns() + away_ns_; };
    const std::int64_t start = wall_now_ns(), before = not_computing_ns();
    run_at_full_speed(step);
    const std::int64_t over = wall_now_ns(), away = away_ns_;
    const auto computed = static_cast<double>(over - start - (not_computing_ns() - before));
    // Spins instead of sleeping, as a slower CPU would compute.
    const std::int64_t end = over + static_cast<std::int64_t>(computed * (compute_slowdown_ - 1));
    while (wall_now_ns() < end + (away_ns_ - away) && !cancelled_.load(std::memory_order_relaxed)) pool_.pause_if_wanted();
  }

  static void between_parts(void* self) noexcept {
    PlanExecutor& executor = *static_cast<PlanExecutor*>(self);
    const std::int64_t start = wall_now_ns();
    executor.between_parts_.call(executor.between_parts_.context);
    executor.away_ns_ += wall_now_ns() - start;
  }

  /// What a step could not read is a fault of its values too: the run goes on to its end, as loads wait for it.
  void run_at_full_speed(const BoundStep& step) noexcept {
    const kernels::TurnsScope turns(cancelled_, max_turns_);
    const Status status = runner_.run(bound_, step, node_of(step));
    if (reader_status_) reader_status_ = status;
  }

  bool stall(std::uint64_t loads_needed) noexcept {
    pool_.rest();
    const std::int64_t start = wall_now_ns();
    const bool arrived = loads_.wait_for(loads_needed);
    stats_.stall_ns += wall_now_ns() - start;
    return arrived;
  }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  ThreadPool& pool_;
  BoundPlan bound_;
  MovablePorts ports_;
  Lane steps_;
  Lane loads_;
  Holding held_;
  std::vector<bool> skipped_;  // by load: in a run that finds `held_`
  std::array<std::uint64_t, kPasses.size()> loads_in_{};
  double compute_slowdown_;
  std::int64_t max_turns_;
  StepHook before_step_;
  PartHook between_parts_;
  StepHook after_step_;
  BlockSink outputs_;
  ScratchFile* scratch_;
  Status passing_status_;         // of this run
  std::uint64_t loads_base_ = 0;  // loads that had ended when the run's own began
  Pass pass_ = Pass::kTakenOver;  // of the run under way, or of the next
  bool read_ahead_ = true;
  bool keeps_weights_ = false;  // they are in the arena for good
  bool failed_ = false;         // the last run did: the lanes may be interrupted
  std::mutex mutex_;            // orders cancel() and the beginning and end of a run
  std::atomic<bool> cancelled_{false};
  kernels::StepFault fault_;        // what the step under way reports
  kernels::StepFault first_fault_;  // of this run, and whose
  const model::Node* faulty_node_ = nullptr;
  RunStats stats_;
  std::vector<StepTime> step_times_;
  std::int64_t away_ns_ = 0;  // in between_parts, of all runs
  bool reads_in_steps_ = false, reads_in_turns_ = false;
  StepReader reader_;  // of the steps that read weights by themselves
  TurnLoader turns_;   // of the steps that run subgraphs whose plans have loads
  StepRunner runner_;
  Status reader_status_;  // of this run, of both
  Loader loader_;
};

Status check_options(const ExecutorOptions& options) {
  SLUICE_RETURN_IF_ERROR(check_reads(options.read));
  if (options.max_turns < 0) return fail(ErrorCode::kInvalidArgument, "turns", "the most turns of a loop is a number of 0 or more");
  if (!is_compute_slowdown(options.compute_slowdown)) {
    return fail(ErrorCode::kInvalidArgument, "compute slowdown", "is a factor from 1 to 1000");
  }
  return {};
}

/// That what passes has where to go.
Status check_passing(const plan::Plan& plan, const ExecutorOptions& options) {
  for (const plan::PassingTensor& passing : plan.passing) {
    if (passing.spilled && options.scratch == nullptr)
      return fail(ErrorCode::kInvalidArgument, "scratch", "the plan spills activations, but there is no directory for a scratch file");
    if (!passing.spilled && options.outputs.take == nullptr)
      return fail(ErrorCode::kInvalidArgument, "outputs", "the plan hands outputs over as they are made, but nobody takes them");
  }
  return {};
}

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

Result<std::unique_ptr<Executor>> create_executor(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                  Arena& arena, ThreadPool& pool, const ExecutorOptions& options) {
  SLUICE_RETURN_IF_ERROR(check_options(options));
  if constexpr (kHasPassing) SLUICE_RETURN_IF_ERROR(check_passing(plan, options));
  SLUICE_RETURN_IF_ERROR(check_surroundings(plan, source, arena, pool));
  Holding held = options.held;
  held.loads.resize(plan.loads.size(), false);
  SLUICE_ASSIGN_OR_RETURN(BoundPlan bound, bind({graph, plan, arena.data(), pool, options.find_kernel}));
  std::unique_ptr<PlanExecutor> executor(new (std::nothrow)
                                             PlanExecutor(graph, plan, source, arena, pool, options, std::move(held), std::move(bound)));
  if (!executor) return fail(ErrorCode::kOutOfMemory, graph.name, "no memory for the executor");
  SLUICE_RETURN_IF_ERROR(executor->start(options.load_cpus, options.key));
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace

Status check_reads(const ReadOptions& read) noexcept {
  if (read.in_flight < 1 || read.in_flight > kMaxReadsInFlight) {
    return fail(ErrorCode::kInvalidArgument, "reads in flight", "the number of reads in flight must lie between 1 and 16");
  }
  if (read.size < Bytes(4096) || read.size > Bytes(1 << 30) || read.size.count() % 4096 != 0) {
    return fail(ErrorCode::kInvalidArgument, "read size", "the size of a read must be a multiple of 4096 up to 1 GiB");
  }
  if (!(read.bytes_per_second_limit >= 0) || read.timeout_ms < 0) {
    return fail(ErrorCode::kInvalidArgument, "read limits", "a rate or a time is zero (no limit) or more");
  }
  return {};
}

Result<std::unique_ptr<Executor>> Executor::create(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                   Arena& arena, ThreadPool& pool, const ExecutorOptions& options) {
  return or_out_of_memory(graph.name, [&] { return create_executor(graph, plan, source, arena, pool, options); });
}

}  // namespace sluice::executor
