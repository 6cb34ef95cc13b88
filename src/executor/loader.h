// The loader: one thread that runs a plan's loads in order, several reads in flight, each load as soon as its gate is open.
//
//     pieces  [load 3: verified][load 3: arrived][load 3: reading][load 4: reading][load 4: reading] | gate of load 5
//              front ^ verify in order, then loads.advance()                           start ^        sleep when nothing is under way
//
// A load is read in pieces: checksums follow while the bytes are near and later pieces are under way. Pieces end in any order and are
// verified in order. In a plan for repeated runs the loads with negative gates, of the next run, follow this run's last load (ahead).
//
// The thread sleeps while a gate is closed, while it waits for reads and between runs. Its first error ends its run: the error is kept,
// whoever waits for a load is woken, and the reads under way are waited for.
//
// Invariants: no load is counted before all its stretches were compared (E2); between `finish` and the next `begin` the thread touches
// only the regions of loads with negative gates, and nothing after an error (E3).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
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
#include "src/executor/pass.h"
#include "src/model/read_queue.h"

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
  model::WeightSource& source;
  std::byte* arena;
  Lane& steps;
  Lane& loads;
};

class Loader {
 public:
  Loader(const LoaderContext& context, const ReadOptions& options) noexcept;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// Errors: kOutOfMemory; kUnsupported where ReadMethod::kRing is refused.
  Status start(std::span<const int> cpus) noexcept;

  /// Begins a run: the loads of `pass`; nothing is under way unless it is kPeriod. `steps_base` is the count of steps at which it starts.
  void begin(Pass pass, std::uint64_t steps_base) noexcept;
  /// Waits until the loads of the run that `begin` started have ended, and returns their error.
  Status finish() noexcept;

  /// Makes the run that is under way, or the next one, end with kCancelled, until `rearm`. From any thread.
  void cancel() noexcept;
  /// Between runs: what was begun for the next run is given up, and what a failed run left to the system waited for, until nothing writes
  /// to the arena. The next `begin` must not be of kPeriod. Errors: kIo (ETIMEDOUT); kCancelled when `next` was, whose run waits for this.
  Status drain(const Executor* next) noexcept;
  /// After a run that failed or was cancelled, before the next `begin`: waits until the thread rests.
  void rearm() noexcept;

  const LoadStats& stats() const noexcept { return stats_; }

 private:
  /// A read: part of one load.
  struct Piece {
    std::uint32_t load = 0;
    model::FileRange range;
    std::int64_t started_ns = 0;
    std::int64_t due_ns = 0;  // when a device of the limited rate would have brought it
    bool ahead = false;       // of the run after the one under way
    bool arrived = false;
  };

  static void thread_main(void* self) noexcept;
  void drain_reads() noexcept;
  Status run_loads() noexcept;
  void publish(Status result) noexcept;
  Status pump(bool ahead, std::uint64_t run) noexcept;

  void take_over() noexcept;
  void enter(std::uint32_t load) noexcept;
  bool gate_open() const noexcept;
  std::uint64_t awaited_steps() const noexcept;
  bool wait_for_gate() noexcept;

  void fill() noexcept;
  void start_piece() noexcept;
  Status await_piece(bool ahead, std::uint64_t run) noexcept;
  Status take_piece() noexcept;
  Status verify(const plan::Load& load, Bytes arrived) noexcept;
  void pause_until(std::int64_t due_ns) const noexcept;
  bool settle(std::int64_t patience_ns) noexcept;
  template <class CalledOff>
  Status clear_leftovers(const CalledOff& called_off) noexcept;
  bool stopped() const noexcept { return stopping_.load(std::memory_order_relaxed) || cancelled_.load(std::memory_order_relaxed); }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  const std::vector<bool>& held_;
  model::WeightSource& source_;
  std::byte* const arena_;
  const ReadOptions options_;
  Lane& steps_;
  Lane& loads_;

  // Handed over by the lanes.
  Lane begun_;   // runs asked for
  Lane ended_;   // runs whose loads are done
  Lane rested_;  // runs after which nothing is left to do before the next begins
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cancelled_{false};
  Pass asked_ = Pass::kFirst;
  bool draining_ = false;  // what was asked for is `drain`
  const Executor* next_ = nullptr;
  std::uint64_t steps_base_ = 0;
  Status result_;
  LoadStats stats_;

  // The thread's own. The next piece to start is bytes [next_at_, ...) of load next_load_; pieces [front_, end_) are under way.
  std::unique_ptr<model::ReadQueue> reads_;
  std::array<Piece, model::kReadSlots> pieces_;
  std::uint32_t front_ = 0;
  std::uint32_t end_ = 0;
  int in_flight_ = 0;
  std::uint32_t next_load_ = 0;
  Bytes next_at_;
  Pass pass_ = Pass::kFirst;  // of the run under way
  bool ahead_ = false;        // the next piece is of the run after the one under way
  bool parked_ = false;       // nothing more to start before the next `begin`
  std::uint64_t base_ = 0;    // of the run under way
  std::uint32_t next_stretch_ = 0;
  std::int64_t device_free_ns_ = 0;
  std::int64_t busy_since_ns_ = 0;
  LoadStats counting_;
  Status ahead_result_;
  NativeThread thread_;  // last: it ends before what it uses
};

}  // namespace sluice::executor
