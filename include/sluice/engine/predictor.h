// How long a model will take, before it is run and without its weights.
//
//     model (its header) + budget + device profile --plan--> Plan --price--> milliseconds with an interval, peak, bytes read, by node
//
//     auto model = sluice::Model::open("net.sluice");               // or a model without weights (sluice convert --without-weights)
//     sluice::Predictor predictor(*model, {.scope = ..., .threads = 1, .repeat = true, .profile = &profile});
//     auto prediction = predictor.at(24_MiB);
//
// What is priced is the plan that a session would run, by the code that the planner chooses it with, so that bands, slices and streamed
// weights are as they will be. The error of each kernel is part of a measured profile; the interval adds them up: a fifth of the error of a
// step is common to all steps of its kernel, errors of different kernels are independent, and influences that no profile sees
// (docs/prediction.md) are common to all.
//
// Invariants: low_ms <= latency_ms <= high_ms; compute_ms and wait_ms of all nodes add up to latency_ms, except for the slowdown of
// computing by reading (and, for bands and steps that read by themselves, the parts of the plan's prediction that belong to no step).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "sluice/engine/engine.h"

namespace sluice {

struct NodePrediction {
  NodeId node;
  KernelId kernel = KernelId::kNone;
  std::uint32_t steps = 0;
  double compute_ms = 0;
  double wait_ms = 0;  // for weights
};

struct LatencyPrediction {
  double latency_ms = 0;
  double low_ms = 0;  // nine runs of ten are expected between low and high
  double high_ms = 0;
  Bytes peak;             // of the scope that the options name: expected, and not above their budget (docs/prediction.md)
  Bytes bytes_read;       // by the loads of such a run, whole blocks; without what lookups and bodies of loops read by themselves
  bool measured = false;  // false: by the assumed profile
  std::vector<NodePrediction> nodes;  // that have steps, in the order of their first one; then those that a device copies without any
};

/// Thread-safe after it is made; keeps the model, and what steps of each shape take: the second prediction of a plan takes a tenth of the time
/// of the first. Of the options `repeat` chooses between a cold run and one of many; their profile is copied when this is made.
class Predictor {
 public:
  Predictor(std::shared_ptr<const Model> model, const SessionOptions& options);
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;
  ~Predictor();

  /// Plans for the budget and prices the plan. Errors: those of plan_session.
  Result<LatencyPrediction> at(Bytes budget) const;
  /// Prices an existing plan in the budget of the options; `overhead` is what the scope counts besides its arena. Errors: kInvalidPlan.
  Result<LatencyPrediction> of(const plan::Plan& plan, Bytes overhead) const;

 private:
  struct Known;

  std::shared_ptr<const Model> model_;
  SessionOptions options_;
  mutable std::mutex mutex_;  // of what is known
  std::unique_ptr<Known> known_;
  Status ready_;  // else there was no memory for it
};

}  // namespace sluice
