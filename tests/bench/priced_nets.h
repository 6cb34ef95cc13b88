// Recorded nets as parts whose prices may come from any regressor. Everything beside these prices is as `sluice predict` has it: the plan,
// its kernels, dispatch and interruptions.
#pragma once

#include <vector>

#include "sluice/profiler/device_profile.h"
#include "tests/prediction/recorded.h"

namespace sluice::bench {

/// What a run consists of.
struct Parts {
  /// As if they were samples of what the profile prices them by: the kernel, or one like it. Their seconds are the profile's, of a part alone,
  /// without dispatch and interruptions.
  std::vector<profiler::KernelSample> parts;
  double other_seconds = 0;  // of parts of kernels that nothing was measured of
  double other_ms = 0;       // what is not of the parts: bands read from farther away, and find weights nearer
};

struct PricedNet {
  test::RecordedNet recorded;
  Parts steps;   // of the plan, which runs some layers in bands; as predicted, they take what `predict` says
  Parts layers;  // each layer as one whole step, whatever the plan does
};

/// All weights resident, one thread, repeated runs. An error ends the program.
std::vector<PricedNet> priced_nets(const std::string& measured, const profiler::DeviceProfile& profile);

/// What a run takes whose parts take so many seconds each.
double milliseconds_of(const Parts& parts, const std::vector<double>& seconds, const profiler::DeviceProfile& profile);

}  // namespace sluice::bench
