// Runs one step of a node again and again, on memory of its own, and says how long it takes.
//
//     ring       | weights of run 0 | of run 1 | of run 2 | ...      larger than the caches: each run's weights come from memory
//     arena      | inputs | output | workspace |                     the same in each run: warm as far as caches reach
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "src/model/aligned_buffer.h"

namespace sluice::profiler {

struct TimedStep {
  kernels::StepExtent extent;  // of what was run: channels are cut where the whole weight is larger than the ring
  double seconds = 0;
};

class StepTimer {
 public:
  /// Errors: kOutOfMemory.
  static Result<StepTimer> create(int threads);

  /// The median time of the node's rows and of its first `share` of channels (of all, where the kernel does not slice). Nothing when its
  /// weights are larger than the ring however it is cut. Errors: kOutOfMemory.
  Result<std::optional<TimedStep>> time(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel,
                                        double share = 1);

 private:
  struct Call;

  kernels::StepExtent extent_of(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel,
                                double share) const;
  Status place(Call& call);
  void place_weights(Call& call);
  double run_once(Call& call);

  std::unique_ptr<ThreadPool> pool_;
  model::AlignedBuffer ring_;
  std::uint64_t ring_at_ = 0;
  model::AlignedBuffer arena_;
  std::uint64_t arena_bytes_ = 0;
};

}  // namespace sluice::profiler
