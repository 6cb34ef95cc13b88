// The loader: one thread that runs a plan's loads in order, each as soon as its gate is open.
//
//     wait steps >= gate  ->  read a piece  ->  verify the stretches that are whole  ->  ... last piece  ->  loads.advance()
//
// It reads in pieces, so that checksums follow while the bytes are near and a rate limit is smooth. It sleeps while a gate is closed and
// between runs. Its first error ends its run: the error is kept, and whoever waits for a load is woken.
//
// Invariants: no load is counted before all its stretches were compared (E2); between `finish` and the next `begin` the thread sleeps
// and touches nothing of the arena (E3).
#pragma once

#include <cstdint>

#include "sluice/core/error.h"
#include "sluice/core/lane.h"
#include "sluice/core/native_thread.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

/// What one run of the loader cost.
struct LoadStats {
  std::int64_t busy_ns = 0;  // reading and checking; a rate limit's pauses too
  Bytes bytes_read;
};

class Loader {
 public:
  /// All references outlive the loader. `steps` is advanced by the compute side, `loads` by this one.
  Loader(const model::Graph& graph, const plan::Plan& plan, model::WeightSource& source, std::byte* arena, double bytes_per_second_limit,
         Lane& steps, Lane& loads) noexcept
      : graph_(graph), plan_(plan), source_(source), arena_(arena), limit_(bytes_per_second_limit), steps_(steps), loads_(loads) {}
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  /// Errors: kOutOfMemory.
  Status start() noexcept;

  /// Begins a run: all loads (`prologue`) or the streamed ones. `steps_base` is the count of steps at which this run starts.
  void begin(bool prologue, std::uint64_t steps_base) noexcept;
  /// Waits until the run that `begin` started has ended, and returns its error.
  Status finish() noexcept;

  const LoadStats& stats() const noexcept { return stats_; }

 private:
  static void thread_main(void* self) noexcept;
  Status run_loads() noexcept;
  Status run_load(const plan::Load& load) noexcept;
  Status verify(const plan::Load& load, Bytes arrived, std::uint32_t& next_stretch) noexcept;
  void pace(std::int64_t load_start_ns) noexcept;

  const model::Graph& graph_;
  const plan::Plan& plan_;
  model::WeightSource& source_;
  std::byte* const arena_;
  const double limit_;
  Lane& steps_;
  Lane& loads_;

  Lane begun_;  // runs asked for
  Lane ended_;  // runs done
  bool stopping_ = false;
  bool prologue_ = false;
  std::uint64_t steps_base_ = 0;
  Status result_;
  LoadStats stats_;
  NativeThread thread_;  // last: it ends before what it uses
};

}  // namespace sluice::executor
