// The schedule that tests of the streaming passes begin with: steps of one second, load k feeds step k and takes `seconds[k]`.
#pragma once

#include <vector>

#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

struct Pipeline {
  Schedule schedule;
  Costs costs;
  explicit Pipeline(const std::vector<double>& seconds, std::uint64_t blocks = 1) {
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      schedule.steps.push_back({k, {0, 16}, 0, 0, static_cast<std::uint32_t>(k + 1)});
      schedule.loads.push_back({0, 1, model::FileRange{Bytes(k * blocks * kBlockBytes), Bytes(blocks * kBlockBytes)}, {at, at + 1}, false});
      costs.step.push_back(1.0);
      costs.load.push_back(seconds[k]);
      costs.compute += 1.0;
    }
  }

  /// How many pieces are in flight, and how many of them the disk serves at once.
  void together(std::uint32_t in_flight, std::uint32_t at_once) {
    costs.reads_in_flight = in_flight;
    costs.reads_at_once = at_once;
  }
};

}  // namespace sluice::planner
