// The loader: one thread that runs a plan's loads in order, several reads in flight, each load as soon as its gate is open.
//
//     ReadEngine  [load 3: decoded][load 3: arrived][load 3: reading][load 4: reading][load 4: reading] | gate of load 5
//                  front: decode in order, then loads.advance()                      push: next load ^    sleep when nothing is under way
//
// How reading goes, at what rate, and what is checked is the engine's (read_engine.h); which load comes when is decided here. In a plan
// for repeated runs the loads with negative gates, of the next run, follow this run's last load (ahead).
//
// A load that only steps want whose guard is known not to be met (bound_guards.h) is published when its turn comes: it reads nothing, so it
// waits for no gate.
//
// The thread sleeps while a gate is closed, while it waits for reads and between runs. Its first error ends its run: the error is kept,
// threads that wait for a load are woken, and the current reads are waited for.
//
// Invariants: no load is counted before all its stretches were decoded (E2); between `finish` and the next `begin` the thread touches
// only the regions of loads with negative gates, and nothing after an error (E3).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/lane.h"
#include "sluice/core/native_thread.h"
#include "sluice/core/units.h"
#include "sluice/executor/executor.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"
#include "src/executor/bound_guards.h"
#include "src/executor/pass.h"
#include "src/executor/read_engine.h"

namespace sluice::executor {

/// What one run of the loader cost.
struct LoadStats {
  std::int64_t busy_ns = 0;  // reading and checking; a rate limit's pauses too
  Bytes bytes_read;
};

/// What a loader works on; all of it outlives the loader. `steps` is advanced by the compute side, `loads` by the loader.
struct LoaderContext {
  const model::Graph& graph;
  const plan::Plan& plan;
  const std::vector<bool>& held;  // by load; changes only while nothing is begun
  const BoundGuards& guards;
  model::WeightSource& source;
  std::byte* arena;
  Lane& steps;
  Lane& loads;
};

class Loader {
 public:
  Loader(const LoaderContext& context, const ReadOptions& options, MakeDecoders make = &make_decoders) noexcept;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// Errors: kOutOfMemory; kUnsupported where ReadMethod::kRing is refused.
  Status start(std::span<const int> cpus, const model::FileKey* key = nullptr) noexcept;

  /// Begins a run: the loads of `pass`; nothing is under way unless it is kPeriod. `steps_base` is the count of steps at which it starts.
  /// `ahead`: the loads of the next run follow, as far as their gates lie in this one.
  void begin(Pass pass, std::uint64_t steps_base, bool ahead = true) noexcept;
  /// Waits until the loads of the run that `begin` started have ended, and returns their error.
  Status finish() noexcept;

  /// Makes the run that is under way, or the next one, end with kCancelled, until `rearm`. From any thread.
  void cancel() noexcept;
  /// Between runs: what was begun for the next run is given up, and what a failed run left to the system waited for, until nothing writes
  /// to the arena. The next `begin` must not be of kPeriod. Errors: kIo (ETIMEDOUT); kCancelled when `next` was, whose run waits for this,
  /// or after `patience_ns`.
  Status drain(const Executor* next, std::int64_t patience_ns = kForever) noexcept;
  /// After a run that failed or was cancelled, before the next `begin`: waits until the thread rests.
  void rearm() noexcept;

  const LoadStats& stats() const noexcept { return stats_; }

  /// Before `start`: from now on the loader notes when each load was read. Allocates.
  void keep_times() {
    times_.resize(plan_.loads.size());
    times_ahead_.resize(plan_.loads.size());
    engine_.time_decoding();
  }
  /// By load, of the run that `finish` ended; empty without keep_times. Holds until the next `begin`.
  std::span<const LoadTime> times() const noexcept { return times_; }

 private:
  static void thread_main(void* self) noexcept;
  void drain_reads() noexcept;
  Status run_loads() noexcept;
  void publish(const Status& result) noexcept;
  Status pump(bool ahead, std::uint64_t run) noexcept;

  void take_over() noexcept;
  void enter(std::uint32_t load) noexcept;
  bool gate_open() const noexcept { return steps_.count() >= gate_steps(); }
  std::uint64_t gate_steps() const noexcept;
  bool spared() const noexcept;
  bool wait_for_gate() noexcept;
  void fill() noexcept;
  ReadRequest next_request() const noexcept;
  void note_start() noexcept;
  void note_end(std::uint64_t request) noexcept;
  bool stopped() const noexcept { return stopping_.load(std::memory_order_relaxed) || cancelled_.load(std::memory_order_relaxed); }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  const std::vector<bool>& held_;
  const BoundGuards& guards_;
  model::WeightSource& source_;
  std::byte* const arena_;
  const ReadOptions options_;
  const MakeDecoders make_decoders_;
  Lane& steps_;
  Lane& loads_;

  // Handed over by the lanes.
  Lane begun_;   // runs asked for
  Lane ended_;   // runs whose loads are done
  Lane rested_;  // runs after which nothing is left to do before the next begins
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cancelled_{false};
  Pass asked_ = Pass::kFirst;
  bool asked_ahead_ = true;
  bool draining_ = false;  // what was asked for is `drain`
  const Executor* next_ = nullptr;
  std::int64_t drain_patience_ns_ = 0;
  std::uint64_t steps_base_ = 0;
  Status result_;
  LoadStats stats_;

  // The thread's own.
  ReadEngine engine_;
  std::uint32_t next_load_ = 0;  // the next to start
  Pass pass_ = Pass::kFirst;     // of the run under way
  bool reads_ahead_ = true;      // the next run's loads follow
  bool ahead_ = false;           // the next load is of the run after the one under way
  bool parked_ = false;          // nothing more to start before the next `begin`
  std::uint64_t own_loads_ = 0;  // with ahead_: the engine's count of requests when the last load of the run under way was pushed
  std::uint64_t base_ = 0;       // of the run under way
  std::int64_t busy_since_ns_ = 0;
  LoadStats counting_;
  // Of the run under way and of the one after it; by request under way, where its times belong.
  std::vector<LoadTime> times_;
  std::vector<LoadTime> times_ahead_;
  std::array<LoadTime*, model::kReadSlots> timed_{};
  NativeThread thread_;  // last: it ends before what it uses
};

}  // namespace sluice::executor
