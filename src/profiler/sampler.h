// Chooses which steps to measure, and measures them.
//
//     candidates (all steps of the corpus, whole and cut)  --a few of each kernel, far apart-->  fit  --least known first-->  samples
//
// Of a kernel's candidates the one is next whose time the others say least about, by the field of fit.h, times how far the kernel's fit is
// off, times the share of a network's time that goes to such kernels. Measured test networks have no part in it.
//
// Invariants: no step is measured twice; the same corpus, limits and times give the same choices.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "sluice/profiler/measure.h"
#include "src/profiler/step_timer.h"

namespace sluice::profiler {

/// One step to measure.
struct Candidate {
  StepTimer::Request request;
  UsedKernel kernel;
  StepWork work;
};

/// All steps of a graph's nodes on every kernel that would be preferred, or that another class or device may prefer: whole, a quarter of
/// their channels, a band of rows, from derived weights.
std::vector<Candidate> candidates_of(const model::Graph& graph, const StepTimer& timer);

/// The anchor (step_timer.h): a 1x1 convolution of a fifth of a millisecond, whose weights come from memory like all.
StepTimer::Request anchor_request(const model::Graph& sample_graph);

class Sampler {
 public:
  /// `required` are measured whatever they tell: the nodes of models that the caller named.
  Sampler(const MeasureOptions& options, StepTimer& timer, std::vector<Candidate> required, std::vector<Candidate> corpus);

  /// Samples in seconds of the machine at its usual speed. Errors: kOutOfMemory.
  Result<std::vector<KernelSample>> run();

 private:
  using Clock = std::chrono::steady_clock;
  /// What is known of one kernel.
  struct Group {
    std::vector<std::size_t> candidates;  // not measured yet, of corpus_
    double share = 0;                     // of a network's time
  };

  void group_corpus();
  Status measure(const Candidate& candidate);
  Status seed(Group& group);
  Status refine();
  std::vector<std::size_t> least_known();
  bool full() const;

  const MeasureOptions& options_;
  StepTimer& timer_;
  std::vector<Candidate> required_;
  std::vector<Candidate> corpus_;
  std::map<UsedKernel, Group> groups_;
  DeviceProfile profile_;               // samples in anchors
  std::vector<double> anchor_seconds_;  // of one anchor, by measurement
  std::size_t kept_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace sluice::profiler
