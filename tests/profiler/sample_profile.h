// A device profile with a kernel, made by hand.
#pragma once

#include "sluice/profiler/fit.h"

namespace sluice::profiler {

inline DeviceProfile sample_profile() {
  DeviceProfile profile;
  profile.device = "A CPU";
  profile.isa = "avx2";
  profile.threads = 2;
  profile.share_seconds = 3e-6;
  profile.reads = {{1, 65536, 1e9}, {4, 65536, 2e9}};
  profile.step_time_beside_reads = 1.25;
  profile.reads_at_once = 4;
  profile.others_bytes_per_second = 5e9;
  profile.anchor_seconds = 2.5e-4;
  for (std::uint64_t i = 1; i < 6; ++i)
    profile.samples.push_back({{KernelId{1}, i % 2 == 0 ? KernelUse::kRunDerived : KernelUse::kRun},
                               {{i * 1000000, i * 100, 50, i}, {.rows = 7, .columns = 7, .channels = 32, .depth = 16, .taps = 9}, 2},
                               1e-6 * static_cast<double>(i * i)});
  for (KernelSample& sample : profile.samples) {
    sample.kernel.variant = sample.work.variant;
    sample.work.run_bytes = sample.work.cost.flops;
    sample.work.shared_bytes = sample.kernel.use == KernelUse::kRun ? 3 * sample.work.run_bytes : sample.work.run_bytes;
  }
  fit(profile);
  return profile;
}

}  // namespace sluice::profiler
