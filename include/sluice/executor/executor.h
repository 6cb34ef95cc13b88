// Runs a plan: one arena, one compute pool, one loader, two counters.
//
//     caller: run() ──> dispatch: for step in steps: wait loads_done >= need; call kernel; steps_done++
//                       loader thread: for load in loads: wait steps_done >= gate; read; verify checksums; loads_done++
//
// Counters never reset: run k continues at k * steps. An error of the loader is kept, ends the wait of the step that needed it, and is
// what run() returns; the session starts its next run from a clean prologue.
//
// Invariants: (E1) everything is allocated by `create`; run() allocates nothing and is noexcept. (E2) no byte of a weight is used before
// its stretch's checksum was compared. (E3) after run() returns, no load is under way (until wrap-around loads are planned).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/tensor.h"
#include "sluice/core/threads.h"
#include "sluice/core/units.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

/// What one run cost.
struct RunStats {
  std::int64_t wall_ns = 0;
  std::int64_t cpu_ns = 0;    // all threads of the process, loader included
  std::int64_t stall_ns = 0;  // compute waiting on loads
  std::int64_t load_ns = 0;   // loader busy reading and checking
  Bytes bytes_read;
};

struct ExecutorOptions {
  double read_bytes_per_second_limit = 0;  // 0: none; else reads are slowed to this rate (a slower device, emulated)
  const kernels::KernelDescriptor* (*find_kernel)(KernelId) noexcept = &kernels::find_kernel;  // what the plan's kernel numbers mean
};

/// One plan made ready to run. Not thread-safe: one run at a time. Keeps references to graph, source, arena and pool.
class Executor {
 public:
  /// `plan` has passed plan::verify for this graph; the arena has at least plan.arena_bytes reserved, and committed before run(); `pool`
  /// has plan.threads threads. Errors: kInvalidPlan (a kernel this build lacks, or one that does not support its node), kOutOfMemory.
  static Result<std::unique_ptr<Executor>> create(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source,
                                                  Arena& arena, ThreadPool& pool, const ExecutorOptions& options);
  virtual ~Executor() = default;

  /// The arena's view of input / output port i (physical order). Inputs are written before run(); outputs are read after it and hold
  /// until the next run or input.
  virtual RowView input(std::size_t port) noexcept = 0;
  virtual RowView output(std::size_t port) noexcept = 0;

  virtual Status run() noexcept = 0;
  virtual const RunStats& stats() const noexcept = 0;  // of the last run
};

}  // namespace sluice::executor
