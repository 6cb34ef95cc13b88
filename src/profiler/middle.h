// One value that stands for several.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice::profiler {

inline double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The mean without an eighth at each end: where a machine changes between two speeds for seconds, nets meet both.
inline double usual_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto out = static_cast<std::ptrdiff_t>(values.size() / 8), in = static_cast<std::ptrdiff_t>(values.size()) - 2 * out;
  return std::accumulate(values.begin() + out, values.begin() + out + in, 0.0) / static_cast<double>(in);
}

}  // namespace sluice::profiler
