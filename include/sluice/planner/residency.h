// Pass: which streamed loads stay in memory between runs, when there is memory to spare but not for all of them.
//
// Each kept byte saves its reading in every period. Which bytes they are matters less than how they lie in time: the first loads of a
// period have nothing to hide behind (front), and kept loads spread over the run leave the reader time to get ahead (even). Both orders
// are tried, with several shares of the spare memory; the simulator decides.
// Invariant: loads that bring the same bytes are kept together, and count once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sluice/planner/slice.h"

namespace sluice::planner {

enum class ResidencyOrder : std::uint8_t { kFront, kEven };

/// By load: keep it? The regions kept sum to at most `spare` bytes.
inline std::vector<bool> choose_resident(const Schedule& schedule, std::uint64_t spare, ResidencyOrder order) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> first_of;
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    if (first_of.try_emplace({load.first_stretch, load.stretch_count}, k).second && !load.resident) total += load.region_bytes();
  }
  std::vector<bool> keep(schedule.loads.size(), false);
  std::uint64_t kept = 0;
  std::uint64_t passed = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    const std::size_t first = first_of.at({load.first_stretch, load.stretch_count});
    if (load.resident || first != k) {
      keep[k] = keep[first];
      continue;
    }
    const std::uint64_t bytes = load.region_bytes();
    passed += bytes;
    const bool due =
        order == ResidencyOrder::kFront ||
        static_cast<double>(kept + bytes) <= static_cast<double>(spare) / static_cast<double>(total) * static_cast<double>(passed);
    if (!due || kept + bytes > spare) continue;
    keep[k] = true;
    kept += bytes;
  }
  return keep;
}

}  // namespace sluice::planner
