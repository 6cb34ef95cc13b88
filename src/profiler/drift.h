// How much a machine's speed changes within a measurement.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace sluice::profiler {

/// Standard deviation of ln(seconds) of all steps together from one time that they were measured to the next: `seconds` are a step's, one for
/// each time. Times that fewer than a quarter of the steps were measured at say little and are left out; none: of fewer than two such times.
inline std::optional<double> drift_of(std::span<const std::vector<double>> seconds) {
  std::vector<double> off, counts;  // by time: the sum of what steps then differ by from their usual, and how many did
  for (const std::vector<double>& step : seconds) {
    if (step.size() < 2) continue;
    double usual = 0;
    for (const double each : step) usual += std::log(each) / static_cast<double>(step.size());
    if (off.size() < step.size()) off.resize(step.size()), counts.resize(step.size());
    for (std::size_t time = 0; time < step.size(); ++time) off[time] += std::log(step[time]) - usual, ++counts[time];
  }
  double squares = 0, times = 0;
  for (std::size_t time = 0; time < off.size() && 4 * counts[time] >= counts[0]; ++time) {
    const double mean = off[time] / counts[time];
    squares += mean * mean;
    ++times;
  }
  if (times < 2) return std::nullopt;
  return std::sqrt(squares / (times - 1));  // times are nearer to their own mean than to what is usual
}

}  // namespace sluice::profiler
