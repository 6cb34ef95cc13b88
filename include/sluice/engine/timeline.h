// The expected time of each step and each load of a plan, by the latency model: for pictures and for comparison with a measured run
// (Session::step_times, load_times).
//
//     Plan + DeviceProfile --expected_times--> milliseconds from the run's begin, by step and by load
//
// The prologue is timed for a plan of one run, the period that repeats for a plan of many. Costs are those that the planner's passes use
// (profiler/latency.h), so that the end of the last step is near Plan::prediction; what weights cost that a step reads by itself, and what
// a band reads from far, is in the prediction alone.
#pragma once

#include <vector>

#include "sluice/engine/engine.h"

namespace sluice {

/// Milliseconds. A load that is wrapped into the run before begins below 0.
struct ExpectedTime {
  double begin_ms = 0;
  double end_ms = 0;
};

struct ExpectedTimes {
  std::vector<ExpectedTime> steps;  // begins when the step has its loads
  std::vector<ExpectedTime> loads;  // both 0 where the load does not run
};

/// `plan` has passed plan::verify for this model. Errors: kInvalidPlan for a kernel that this build does not have; those of SessionOptions.
Result<ExpectedTimes> expected_times(const Model& model, const plan::Plan& plan, const SessionOptions& options);

}  // namespace sluice
