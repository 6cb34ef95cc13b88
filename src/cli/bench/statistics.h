// Figures of several runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace sluice::cli::bench_detail {

/// The smallest of the sorted values, of which there is at least one, that at least `share` of them do not exceed.
inline double quantile(std::span<const double> sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::clamp(place, 1.0, static_cast<double>(sorted.size()))) - 1];
}

}  // namespace sluice::cli::bench_detail
