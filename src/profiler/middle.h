// The middle value of several.
#pragma once

#include <algorithm>
#include <vector>

namespace sluice::profiler {

inline double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sluice::profiler
