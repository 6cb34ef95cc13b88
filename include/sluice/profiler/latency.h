// The latency model: work (kernels::CostFeatures) and rates (DeviceProfile) give seconds.
//
// A step takes the longer of its arithmetic and its memory traffic, plus the cost of dispatching it; a load takes a fixed latency and its
// bytes at the sequential rate. Rejected: arithmetic plus traffic (convolutions overlap the two and came out 20-30 % too slow).
// Invariants: results are finite and positive for a profile of positive rates; more work never takes less time.
#pragma once

#include <algorithm>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// Seconds of one step of `node`.
inline double step_seconds(const DeviceProfile& profile, const model::Node& node, const kernels::CostFeatures& work) noexcept {
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const double rate = conv != nullptr && conv->depthwise() ? profile.depthwise_flops_per_second : profile.flops_per_second;
  const double arithmetic = static_cast<double>(work.flops) / rate;
  const double traffic = static_cast<double>(work.input_bytes + work.output_bytes + work.weight_bytes) / profile.memory_bytes_per_second;
  return std::max(arithmetic, traffic) + profile.step_overhead_seconds;
}

/// Seconds of one load of `bytes`.
inline double load_seconds(const DeviceProfile& profile, Bytes bytes) noexcept {
  return profile.read_latency_seconds + static_cast<double>(bytes.count()) / profile.read_bytes_per_second;
}

}  // namespace sluice::profiler
