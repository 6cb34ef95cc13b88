// Chooses which steps to measure, and measures them in turns.
//
//     candidates (all steps of the corpus, whole and cut)
//       --each kernel's quota: half of it far apart, then of a few drawn ones the least known by the field of fit.h-->  chosen steps
// --by family and size, some 20 at a time--> turns, each in a run of a size of its own --each some eight times, at other moments--> samples
//
// A kernel's quota goes by the root of its share of a network's time, and each has a few: what is rare starves nobody and is not starved.
// Neighbours of the machine change their minds within seconds: so a turn comes again when all others have come, and the mean counts of those
// times at which the machine was quiet (quiet.h), of eight and more without the ends.
// Test networks are not used for it.
//
// Nets of each type are measured by themselves: with what they have, in rounds of their own, to limits of their own.
//
// Invariants: no step is measured twice in nets of one type; never more than MeasureOptions::most; the same corpus, limits and times give the
// same choices.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sluice/profiler/measure.h"
#include "src/profiler/interruption_meter.h"
#include "src/profiler/quiet.h"
#include "src/profiler/step_timer.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {

/// One step to measure.
struct Candidate {
  StepTimer::Request request;
  UsedKernel kernel;
  StepWork work;
};

/// Are they the same step, of whatever run?
bool same_step(const StepWork& a, const StepWork& b) noexcept;

/// All steps of a graph's nodes on every kernel that would be preferred, or that another class or device may prefer: whole, a quarter of
/// their channels, a band of rows, from derived weights.
std::vector<Candidate> candidates_of(const model::Graph& graph, const StepTimer& timer);

/// The part of the corpus' time that a step counts for: nets are mostly f32 convolutions and dense layers, and the corpus has a layer of
/// each other kind for every few of them. What only the first run does counts least. Depthwise layers and pools count more than by their
/// time: their time depends on combinations of channels, windows and rows, which takes many samples to learn (with 11 and 14
/// samples, nets' depthwise layers were predicted 30 % too low, pools by half).
double usual_share(const Candidate& candidate, NetType nets) noexcept;

/// The anchor (step_timer.h): a 1x1 convolution of a fifth of a millisecond, whose weights come from memory like all.
StepTimer::Request anchor_request(const model::Graph& sample_graph);

/// What the measurements of nets of all types have told.
struct Measured {
  std::vector<KernelSample> samples;          // what was measured; how long it took is in `times`
  std::vector<std::vector<TimedOnce>> times;  // of each sample: one for each time that its turn came
  std::vector<double> anchor_seconds;         // of one anchor, by measurement
  std::vector<double> drifts;                 // of each type of nets that was measured at several times
  InterruptionMeter meter;

  /// Standard deviation of ln(speed) of the machine from one coming of all rounds to the next; 0 where there was but one.
  double drift() const;

  /// What an anchor takes on this machine while it is quiet; nothing where none was timed.
  std::optional<double> anchor() const;
  /// Samples in seconds of the quiet machine, without what interrupted them.
  std::vector<KernelSample> in_seconds(int threads) const;
};

/// Measures nets of one type.
class Sampler {
 public:
  /// `required` are measured whatever they tell: the nodes of models that the caller named. Of kernels that `measured` has samples of, as
  /// many fewer are taken. Both references must outlive it.
  Sampler(const MeasureOptions& options, const MeasuredType& of, StepTimer& timer, std::vector<Candidate> required,
          std::vector<Candidate> corpus, Measured& measured);

  /// Adds to `measured`. Errors: kOutOfMemory.
  Status run();
  /// How many samples each kernel is to have here, by the kernel; a kernel of other types of nets has one quota for all its variants.
  std::map<UsedKernel, std::size_t> quotas() const;

 private:
  /// One kernel.
  struct Kind {
    std::vector<std::size_t> candidates;  // not chosen yet, of corpus_
    double share = 0;                     // of a network's time
    bool rare = false;
    std::size_t before = 0;  // samples of nets of other types
    std::size_t quota = 0;
    std::size_t chosen = 0;
  };
  struct PlannedTurn {
    StepTimer::Turn turn;
    std::vector<std::size_t> samples;  // of its steps
  };

  void group_corpus();
  void drop_repeated();
  void take_known();
  UsedKernel kind_of(const Candidate& candidate) const noexcept;
  void set_quotas();
  std::size_t left(const Kind& kind) const noexcept { return kind.quota - std::min(kind.quota, kind.chosen); }
  std::vector<const Candidate*> farthest(Kind& kind, std::size_t count);
  std::vector<const Candidate*> least_known(const UsedKernel& kernel, Kind& kind, std::size_t count);
  const Candidate* take(Kind& kind, std::size_t place);
  Status measure(std::vector<const Candidate*> chosen);
  Status measure_first(std::span<const Candidate* const> steps);
  Status measure_again();
  Result<StepTimer::TimedTurn> time(const StepTimer::Turn& turn);
  void keep(bool all = false);
  double seconds_left() const;
  bool full() const;
  double drawn() noexcept;
  std::uint64_t drawn_run_bytes() noexcept;

  const MeasureOptions& options_;
  const MeasuredType of_;
  StepTimer& timer_;
  Measured& measured_;
  std::vector<Candidate> required_;
  std::vector<Candidate> corpus_;
  std::vector<double> assumed_;  // of each of them: seconds by assumed rates
  std::map<UsedKernel, Kind> kinds_;
  DeviceProfile profile_;                      // samples in anchors
  std::vector<std::vector<TimedOnce>> times_;  // of each sample: one for each time that its turn came
  std::vector<PlannedTurn> turns_;
  std::size_t comings_ = 0;  // of turns
  double run_share_ = 0.5;   // where among the sizes of runs the next one lies, 0 to 1
  std::uint64_t state_ = 28;
  std::size_t kept_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace sluice::profiler
