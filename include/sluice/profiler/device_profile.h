// What a device can do, measured or assumed: the numbers that turn work into time. Data only; measuring is another header's task.
#pragma once

#include <cstdint>

namespace sluice::profiler {

/// Rates of one device at one number of threads. The defaults are those of a mid-range x86-64 core with an NVMe disk.
struct DeviceProfile {
  double flops_per_second = 100e9;  // dense and convolution kernels, all threads together
  double depthwise_flops_per_second = 20e9;
  double memory_bytes_per_second = 12e9;  // elementwise kernels, and batch-1 dense over its weights
  double step_overhead_seconds = 3e-6;    // dispatch of one step
  double read_bytes_per_second = 1.5e9;   // sequential direct reads of 1 MiB
  double read_latency_seconds = 80e-6;    // fixed cost of one read
};

}  // namespace sluice::profiler
