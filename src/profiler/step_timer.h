// Runs one step of a node again and again, on memory of its own, and says how long it takes.
//
//     ring       | weights of run 0 | of run 1 | of run 2 | ...      larger than the caches: each run's weights come from memory
//     arena      | inputs | output | workspace |                     the same in each run: warm as far as caches reach
//
// A machine that others share is slower by half for minutes. So an anchor, always the same step, is timed before and after every 50 ms of
// runs, and times are told in its units beside seconds: what slows both cancels out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "sluice/profiler/device_profile.h"
#include "src/profiler/read_timer.h"

namespace sluice::profiler {

struct TimedStep {
  kernels::StepExtent extent;  // of what was run: channels are cut where the whole weight is larger than the ring
  double seconds = 0;
  double anchors = 0;  // seconds by those of the anchor beside it; seconds where there is none
};

class StepTimer {
 public:
  /// Errors: kOutOfMemory.
  static Result<StepTimer> create(int threads);
  StepTimer(StepTimer&&) noexcept;
  StepTimer& operator=(StepTimer&&) noexcept;
  ~StepTimer();

  /// What to run: the first rows of a node and its first `share` of channels (all of them, where the kernel does not slice).
  struct Request {
    const model::Graph& graph;
    const model::Node& node;
    const kernels::KernelDescriptor& kernel;
    KernelUse use = KernelUse::kRun;
    double share = 1;
    double share_of_rows = 1;
  };
  /// Makes a step the anchor. What the request refers to outlives the timer. Errors: kOutOfMemory.
  Status set_anchor(const Request& request);
  /// Seconds of an anchor now, the least of a few runs; 1 where there is none.
  double time_anchor();
  /// The mean of the times but for the longest tenth. Nothing when the weights are larger than the ring however they are
  /// cut. Errors: kOutOfMemory.
  Result<std::optional<TimedStep>> time(const Request& request);

  /// What steps of one thread of work take in turn, each on memory of its own, by what they take one by one, again and again: other steps
  /// have used the caches in between, as in a run. At least 1. Errors: kOutOfMemory.
  Result<double> slower_in_turn(const std::vector<Request>& requests);

  /// The same step while a file is read beside it. Errors: those of both.
  Result<Together> time_beside_reads(const Request& request, const Reading& reading);
  /// What it costs to share a call among the threads: the median time of one whose tasks do nothing but write where another thread wrote
  /// in the call before. 0 of one thread.
  double time_sharing() noexcept;

  /// The part of the node that `request` means.
  kernels::StepExtent extent_of(const Request& request) const;

 private:
  struct Call;
  struct Anchor;

  StepTimer() noexcept;
  Status place(Call& call, Arena& arena);
  void place_weights(Call& call);
  double run_once(Call& call);

  std::unique_ptr<ThreadPool> pool_;
  Arena ring_;
  std::uint64_t ring_at_ = 0;
  Arena arena_;
  std::unique_ptr<Anchor> anchor_;
};

}  // namespace sluice::profiler
