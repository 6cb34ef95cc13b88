// Runs a plan: one arena, one compute pool, one loader, two counters.
//
//     caller: run() ──> dispatch: for step in steps: wait loads_done >= need; call kernel; steps_done++
//                       loader thread: for load in loads: wait steps_done >= gate; read; verify checksums; loads_done++
//
// Counters never reset: run k continues at k * steps. An error of the loader is kept, ends the wait of the step that needed it, and is
// what run() returns; the session starts its next run from a clean prologue.
//
// Invariants: (E1) everything is allocated by `create`; run() allocates nothing and is noexcept. (E2) no byte of a weight is used before
// its stretch was decoded, which begins with its checksum. (E3) after run() returns, loads are under way only where the plan wraps them:
// they write regions of weights that the next run reads first, no input and no output. After an error and when the executor ends, none is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/threads.h"
#include "sluice/core/units.h"
#include "sluice/executor/decoder.h"
#include "sluice/executor/holding.h"
#include "sluice/executor/scratch_file.h"
#include "sluice/kernels/registry.h"
#include "sluice/kernels/turns.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

using model::ReadMethod;
inline constexpr int kMaxReadsInFlight = 16;
/// Whether `factor` is one of ExecutorOptions::compute_slowdown.
constexpr bool is_compute_slowdown(double factor) noexcept { return factor >= 1 && factor <= 1000; }

/// What one run cost.
struct RunStats {
  std::int64_t wall_ns = 0;
  std::int64_t cpu_ns = 0;    // all threads of the process, loader included
  std::int64_t stall_ns = 0;  // compute waiting on loads
  std::int64_t load_ns = 0;   // reading and checking: the loader, since it ended the loads of the run before, and steps that read
  Bytes bytes_read;           // of this run's loads, also where they were wrapped into the run before
  Bytes bytes_looked_up;      // of these: what lookups read of their tables by themselves, which follows their indices
  Bytes scratch_read;         // of spilled activations
  Bytes scratch_written;
};

/// What one step of the last run cost. Moments are nanoseconds of the clock that counts from the start of the system.
struct StepTime {
  std::int64_t stall_ns = 0;  // waiting for its loads, just before begin_ns
  std::int64_t compute_ns = 0;
  std::int64_t begin_ns = 0;  // when it had its loads
};

/// When one load of the last run was read; both 0 where it did not run. A load that wraps began before its run.
struct LoadTime {
  std::int64_t begin_ns = 0;   // its first read was started
  std::int64_t end_ns = 0;     // its last stretch was checked
  std::int64_t decode_ns = 0;  // of that: checking, decrypting, expanding
};

/// How weights are read. Measured on one disk (docs/benchmarks.md): from 2 MiB in flight the rate is flat, at 512 KiB x 4 the CPU time too.
struct ReadOptions {
  ReadMethod method = ReadMethod::kAuto;
  Bytes size{512 * 1024};             // bytes of one read, a multiple of 4096; fewer at the end of a load
  int in_flight = 4;                  // 1 to kMaxReadsInFlight
  std::int64_t timeout_ms = 30'000;   // a run in which no read ends for longer fails with kIo (ETIMEDOUT); 0: never
  double bytes_per_second_limit = 0;  // 0: none; else reads are slowed to this rate (a slower device, emulated)
};

/// Errors: kInvalidArgument for a size, a number of reads or a limit that none of these may have.
Status check_reads(const ReadOptions& read) noexcept;

/// A step as a hook sees it. What it points at lives as long as the executor.
struct StepEvent {
  std::size_t index = 0;             // of Plan::steps
  std::size_t count = 0;             // as many as the plan has
  const plan::Step* step = nullptr;  // its node, rows and channels; null where no plan stands behind it (a timed processor)
  const model::Node* node = nullptr;
  bool ran = false;                // after: false where nobody wanted it (a branch that was not taken, work that an earlier run has done)
  const StepTime* time = nullptr;  // after: what it cost; null without ExecutorOptions::time_steps
};

/// Called before or after each step of a run, in the thread that runs: a step boundary is where a run can wait without losing anything.
/// Until it returns the run rests and its part of the arena stays as it is. It may run sessions of other arenas, and cancel this one; it
/// does not throw, and what it allocates no budget counts.
struct StepHook {
  void (*call)(void* context, const StepEvent& event) noexcept = nullptr;
  void* context = nullptr;

  void operator()(const StepEvent& event) const noexcept {
    if (call != nullptr) call(context, event);
  }
};

/// Called between parts of a step, in the thread that runs, as long as `*wanted` is set: steps may be long, and a run wanted to wait now.
/// All that holds for a StepHook holds here, but that other threads of the run may end parts that they have begun.
struct PartHook {
  const std::atomic<bool>* wanted = nullptr;
  void (*call)(void* context) noexcept = nullptr;
  void* context = nullptr;
};

/// Rows x channels of an output that a step has made; they lie in `view` where a kernel would find them, until the sink returns.
struct MadeBlock {
  std::size_t port = 0;
  RowView view;
  RowRange rows;
  ChannelRange channels;
};

/// Takes blocks of the outputs that pass (plan::PassingTensor), in the thread that runs. An error ends the run, and is what it returns.
struct BlockSink {
  Status (*take)(void* context, const MadeBlock& block) noexcept = nullptr;
  void* context = nullptr;
};

struct ExecutorOptions {
  ReadOptions read;
  std::span<const int> load_cpus;  // processors that read, where the system allows it; empty: all. Used by create() only
  /// What lies in the arena already, left there by an executor before. Empty: nothing. Copied.
  Holding held;
  bool time_steps = false;      // keep what each step and load of a run costs: two more looks at the clock each, 24 and 32 bytes
  double compute_slowdown = 1;  // up to 1000: a step is over when it has taken so many times its time (a slower CPU, emulated)
  std::int64_t max_turns = kernels::kDefaultMaxTurns;  // of the loops of one step
  StepHook before_step;
  PartHook between_parts;
  StepHook after_step;                                      // not after one that a cancellation or a failed load cut short
  kernels::FindKernel find_kernel = &kernels::find_kernel;  // what the plan's kernel numbers mean
  MakeDecoders make_decoders = &executor::make_decoders;    // what the stretches' stored forms mean
  const model::FileKey* key = nullptr;                      // of an encrypted model. Used by create() only
  BlockSink outputs;                                        // of a plan that hands outputs over
  ScratchFile* scratch = nullptr;                           // of a plan that spills: as large as it says, and outlives the executor
  bool ports_move = false;                                  // place_input and place_output have something to say: some bytes a port
};

/// One plan made ready to run. Not thread-safe: one run at a time. Keeps references to graph, source, arena and pool. Several may stand on
/// one arena and one pool; whoever runs them in turn calls `leave` of one before the next one's input is written or it runs.
class Executor {
 public:
  /// `plan` has passed plan::verify for this graph; the arena has at least plan.arena_bytes reserved, and committed before run(); `pool`
  /// has plan.threads threads. Errors: kInvalidPlan (a kernel this build lacks, or one that does not support its node), kUnsupported
  /// (ReadMethod::kRing where there is none), kOutOfMemory.
  static Result<std::unique_ptr<Executor>> create(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                  Arena& arena, ThreadPool& pool, const ExecutorOptions& options);
  virtual ~Executor() = default;

  /// The arena's view of input / output port i (physical order). Inputs are written before run(); outputs are read after it and hold
  /// until the next run or input; one that passes has no data. After a run that failed, inputs are written after `settle`: reads that it
  /// left may go to the same bytes.
  virtual RowView input(std::size_t port) noexcept = 0;
  virtual RowView output(std::size_t port) noexcept = 0;
  /// Lets a port lie at `data` from here on, in place of the arena, until it is placed again; null: in the arena. 64-byte aligned, the
  /// bytes of the tensor, dense, and kernels::kReadTail more that may be read. Between runs. False where it does not move: the plan has
  /// other things in its buffer, a step writes to an input's, or nobody asked for it (ExecutorOptions::ports_move).
  virtual bool place_input(std::size_t port, std::byte* data) noexcept = 0;
  virtual bool place_output(std::size_t port, std::byte* data) noexcept = 0;
  /// Extents of output port i in the last run, ONNX order; those of a bounded output may be shorter than the port's (graph.h, G6), and
  /// its values then are dense in them from the beginning of `output(i)`.
  virtual Shape output_shape(std::size_t port) const noexcept = 0;

  /// Errors: kIo, kFileChanged, kChecksumMismatch, kCancelled. The next run starts from a clean prologue.
  virtual Status run() noexcept = 0;
  /// Whether the loader goes on with the loads of the run after this one, which take the disk's time in vain where another executor uses
  /// the arena in between. Between runs; default: yes.
  virtual void read_ahead(bool wanted) noexcept = 0;
  /// Ends the run that is under way, or the next one, with kCancelled, within 100 ms of the end of its step. From any thread. A read that
  /// the system does not end is left to it; `settle`, the next run and the destructor wait for it.
  virtual void cancel() noexcept = 0;
  /// Whether a cancellation waits for the next run, or for the end of the one under way.
  virtual bool cancelled() const noexcept = 0;
  /// Takes back a cancellation that no run has taken. Not beside a run.
  virtual void forget_cancel() noexcept = 0;
  virtual const RunStats& stats() const noexcept = 0;  // of the last run
  /// By step of the plan, of the last run; empty without ExecutorOptions::time_steps.
  virtual std::span<const StepTime> step_times() const noexcept = 0;
  /// By load of the plan, likewise.
  virtual std::span<const LoadTime> load_times() const noexcept = 0;

  /// Ends the loads that are wrapped into the next run, so that others may use the arena: nothing is written to it until the next run,
  /// which reads what `held` says is not there. Errors: kIo (ETIMEDOUT) where a read does not end, kCancelled when `next` was cancelled
  /// meanwhile; then the arena is still this executor's.
  virtual Status leave(const Executor* next) noexcept = 0;
  /// After a run that failed: waits for the reads that it left. Nothing to do after any other. Errors: kIo (ETIMEDOUT) where one does not
  /// end, kCancelled when the next run was cancelled meanwhile.
  virtual Status settle() noexcept = 0;
  /// Does what `leave` does, before the executor is destroyed; false if reads have not ended after `patience_ns`. Then the destructor would
  /// wait for them, and neither this nor what it was made of may go before.
  virtual bool quiet(std::int64_t patience_ns) noexcept = 0;
  /// What the arena holds for this plan, between `leave` (or the beginning) and the next run. Whoever uses the arena meanwhile keeps it
  /// true. After a run that is all resident and derived weights, after an error nothing.
  virtual Holding& held() noexcept = 0;
  /// After `leave`, or before the first run: all resident and derived weights are in the arena and stay, others see to it. No run reads
  /// them again, after an error neither.
  virtual void keep_weights() noexcept = 0;
};

}  // namespace sluice::executor
