// Work as a fluid: how long the processors need at least for a set of jobs if each unit may be split over all of them at will, without
// copies or dispatch. A linear programme; its dual is a price for each processor's time, and any prices give a lower bound:
//
//     makespan >= sum over units of  min over p of  price[p] * time[u][p]          prices >= 0, their sum 1
//
// Prices are found by raising those of processors that too much work goes to. What is returned is the best bound on the way, so it is a
// bound however far the iteration came.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sluice/scheduler/device.h"

namespace sluice::scheduler {

struct Fluid {
  double makespan = 0;         // a lower bound, nanoseconds
  std::vector<double> prices;  // that prove it
};

/// `jobs` names a model for each job.
inline Fluid solve_fluid(const Device& device, std::span<const Model> models, std::span<const std::size_t> jobs) {
  const std::size_t n = device.count();
  std::vector<double> count(models.size(), 0), prices(n, 1.0 / static_cast<double>(n));
  for (const std::size_t m : jobs) count[m] += 1;
  Fluid best{0, prices};
  for (int round = 0; round < 200; ++round) {
    std::vector<double> load(n, 0);
    double bound = 0;
    for (std::size_t m = 0; m < models.size(); ++m) {
      if (count[m] == 0) continue;
      for (const Unit& unit : models[m].units) {
        std::size_t cheapest = n;
        for (std::size_t p = 0; p < n; ++p)
          if (unit.times[p] < kNever && (cheapest == n || prices[p] * static_cast<double>(unit.times[p]) <
                                                              prices[cheapest] * static_cast<double>(unit.times[cheapest])))
            cheapest = p;
        const double time = count[m] * static_cast<double>(unit.times[cheapest]);
        load[cheapest] += time;
        bound += prices[cheapest] * time;
      }
    }
    if (bound > best.makespan) best = {bound, prices};
    const double largest = *std::max_element(load.begin(), load.end());
    double sum = 0;
    for (std::size_t p = 0; p < n; ++p) sum += prices[p] *= std::exp(load[p] / std::max(largest, 1.0) * 2 / std::sqrt(round + 4.0));
    for (double& price : prices) price /= sum;
  }
  return best;
}

inline double fluid_makespan(const Device& device, std::span<const Model> models, std::span<const std::size_t> jobs) {
  return solve_fluid(device, models, jobs).makespan;
}

}  // namespace sluice::scheduler
