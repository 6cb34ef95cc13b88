// Pass: which side of the free bytes each load takes. One rule for all loads leaves some of them in the way of the next:
//
//     bytes ->   | A, ends soon |......free......| B, stays |
//     L low      | A            | L |            | B        |      when A ends, what is free is in two parts
//     L high     | A            |            | L | B        |      when A ends, it is one part: the next load comes then
//
// From a placement by one rule: one or two loads before the largest delays against the fluid run change sides, or come later than they
// could (which leaves their place to another), all are placed again, and what makes the run no longer stays. Loads of the next run that
// wrap do so, too. Equal runs count as progress, because one of them may lead to a better one. Invariants: what comes out is never slower
// than what went in; gates and addresses are those that `place_loads` gives; the same input always gives the same output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/place_loads.h"
#include "sluice/planner/search_parameters.h"
#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

namespace detail {

class SideSearch {
 public:
  SideSearch(const Schedule& schedule, const Costs& costs, const std::vector<FixedRect>& fixed, Run kind,
             const SearchParameters& parameters)
      : schedule_(schedule), costs_(costs), fixed_(fixed), kind_(kind), parameters_(parameters) {
    for (std::uint32_t k = 0; k < schedule.loads.size(); ++k)
      if (schedule.loads[k].streamed()) streamed_.push_back(k);
  }

  /// `fluid`: the run that bytes alone allow; `enough`: seconds at which to stop. `each`, what to simulate a placement takes, `most_work`
  /// and `work`, which it adds to: in the unit of SearchLimit.
  LoadPlacement improve(PlaceRule rule, LoadPlacement placed, const Timeline& fluid, double enough, std::uint64_t each,
                        std::uint64_t most_work, std::uint64_t& work) {
    Timeline times = simulate(schedule_, costs_, placed.gates, kind_);
    rule.sides.assign(schedule_.loads.size(), rule.address);
    const std::uint64_t end = work + most_work;
    const std::vector<std::int64_t> least_gates = rule.least_gates;
    std::vector<std::uint32_t> suspects = in_the_way(times, fluid);
    for (int failures = 0; failures < parameters_.side_failures && work < end && !suspects.empty() && times.seconds() > enough;) {
      PlaceRule turned = rule;
      for (std::uint32_t turns = 1 + random(2); turns > 0; --turns)
        turn(turned, suspects[random(static_cast<std::uint32_t>(suspects.size()))], placed.gates, least_gates);
      work += each;
      auto again = place_loads(schedule_, fixed_, turned, &work);
      ++failures;
      if (!again) continue;
      Timeline then = simulate(schedule_, costs_, again->gates, kind_);
      if (then.seconds() > times.seconds()) continue;
      if (then.seconds() < times.seconds() * kLess) failures = 0;
      times = std::move(then);
      placed = std::move(*again);
      rule = std::move(turned);
      suspects = in_the_way(times, fluid);
    }
    return placed;
  }

 private:
  static constexpr double kLess = 0.9999;

  /// Moves one load: to another side; or to a later gate than it has; or back to the first one.
  void turn(PlaceRule& rule, std::uint32_t load, const Gates& gates, const std::vector<std::int64_t>& first) {
    constexpr std::int64_t kMostLater = 16;
    const std::uint32_t move = random(4);
    if (move < 3) rule.sides[load] = static_cast<AddressRule>(move);
    if (move < 3 || first.empty()) return;
    const std::int64_t later = std::clamp<std::int64_t>(schedule_.loads[load].uses.begin - gates[load] + 1, 1, kMostLater);
    const bool back = random(4) == 0;
    rule.least_gates[load] = back ? first[load] : gates[load] + static_cast<std::int64_t>(random(static_cast<std::uint32_t>(later)));
  }

  /// Always the same numbers: a request has one plan.
  std::uint32_t random(std::uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % below;
  }

  /// Loads that may be in the way: those before the largest delays.
  std::vector<std::uint32_t> in_the_way(const Timeline& times, const Timeline& fluid) const {
    std::vector<std::pair<double, std::size_t>> delays;
    double former = 0;
    for (std::size_t i = 0; i < streamed_.size(); ++i) {
      const auto use = static_cast<std::size_t>(schedule_.loads[streamed_[i]].uses.begin);
      const double late = times.step_start[use] - fluid.step_start[use];
      if (late > former) delays.push_back({late - former, i});
      former = std::max(former, late);
    }
    sluice::stable_sort(delays.begin(), delays.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    delays.resize(std::min(delays.size(), parameters_.side_delays));
    std::vector<std::uint32_t> loads;
    for (const auto& [delay, i] : delays)
      for (std::size_t before = 0; before < std::min(parameters_.side_loads, i + 1); ++before) loads.push_back(streamed_[i - before]);
    return loads;
  }

  const Schedule& schedule_;
  const Costs& costs_;
  const std::vector<FixedRect>& fixed_;
  const Run kind_;
  const SearchParameters& parameters_;
  std::vector<std::uint32_t> streamed_;
  std::uint64_t state_ = 1;
};

}  // namespace detail

}  // namespace sluice::planner
