// Pass: which chains run in bands of rows.
//
//     time    what one node writes and the next reads stays in the cores' own caches, if it is a band and not the whole
//
// Every run of a few neighbours is a chain that could be, in a few numbers of bands; the profile prices its steps, and the cheapest way to
// cover all positions with chains and single nodes wins. Bands cost their steps' overheads and read weights again.
// Invariant: without a chain that pays, views stay as they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/band_chain.h"
#include "sluice/planner/candidate.h"

namespace sluice::planner {

namespace detail {

class TimePartition {
 public:
  explicit TimePartition(const Problem& problem) : problem_(problem), cutter_(*problem.graph, problem.kernels, problem.views) {}

  std::vector<Banded> find() {
    const std::size_t positions = problem_.views.order.size();
    std::vector<Way> best(positions + 1);
    for (std::size_t p = positions; p-- > 0;) {
      best[p] = {seconds_of(p) + best[p + 1].seconds, {}};
      try_chains(p, best);
    }
    std::vector<Banded> chains;
    for (std::size_t p = 0; p < positions;) {
      if (!best[p].chain) {
        ++p;
        continue;
      }
      chains.push_back(std::move(*best[p].chain));
      p = chains.back().chain.end;
    }
    return chains;
  }

 private:
  static constexpr std::size_t kLongest = 5;
  /// A chain must promise this much, of its own time: prices of steps are not better known.
  static constexpr double kGain = 0.97;
  static constexpr std::uint64_t kMostWeight = 4u << 20;  // larger ones come in slices
  /// What the rings of a chain may hold together, for each thread.
  static constexpr std::uint64_t kRings[] = {192u << 10, 384u << 10, 640u << 10};

  struct Way {
    double seconds = 0;  // of this position and all after it
    std::optional<Banded> chain;
  };

  void try_chains(std::size_t first, std::vector<Way>& best) {
    double whole = seconds_of(first);
    std::uint64_t inner = 0;
    for (std::size_t end = first + 2; end <= std::min(first + kLongest, problem_.views.order.size()); ++end) {
      if (!may_run(end - 2) || !may_run(end - 1)) return;
      whole += seconds_of(end - 1);
      inner += cutter_.output_bytes(end - 2);
      if (!all_stay_inside(first, end)) continue;
      std::int64_t former = 1;
      for (const std::uint64_t ring : kRings) {
        const auto bands = static_cast<std::int64_t>(inner / (ring * static_cast<std::uint64_t>(problem_.threads))) + 1;
        if (bands < 2 || bands == former) continue;
        former = bands;
        std::optional<Banded> banded = cutter_.cut(first, end, bands);
        if (!banded) break;
        const double seconds = seconds_of(banded->chain);
        if (seconds < whole * kGain && seconds + best[end].seconds < best[first].seconds)
          best[first] = {seconds + best[end].seconds, std::move(banded)};
      }
    }
  }

  bool may_run(std::size_t p) const {
    for (WeightId w : problem_.graph->node(problem_.views.order[p]).weights)
      if (w.valid() && problem_.graph->weight(w).bytes.count() > kMostWeight) return false;
    return cutter_.takes_bands(p);
  }

  bool all_stay_inside(std::size_t first, std::size_t end) const {
    for (std::size_t p = first; p + 1 < end; ++p)
      if (!cutter_.stays_inside(p, end)) return false;
    return true;
  }

  double price(std::size_t position, RowRange rows) const {
    const model::Node& node = problem_.graph->node(problem_.views.order[position]);
    StepSpec step{position, {0, model::step_channels(*problem_.graph, node)}};
    step.rows = rows;
    return problem_.memo->step_seconds(step, [&] {
      return price_step(*problem_.graph, problem_.kernels, problem_.views.order[position], step, *problem_.profile, problem_.threads);
    });
  }
  double seconds_of(std::size_t p) const {
    return price(p, {0, row_extents(problem_.graph->tensor(problem_.graph->node(problem_.views.order[p]).outputs[0]).shape).rows});
  }
  double seconds_of(const Chain& chain) const {
    double seconds = 0;
    for (const BandStep& step : chain.steps) seconds += price(step.position, step.rows);
    return seconds;
  }

  const Problem& problem_;
  const BandCutter cutter_;
};

}  // namespace detail

/// The views of a problem, with the chains that save time.
inline Views partition_for_time(const Problem& problem) {
  Views views = problem.views;
  const BandCutter cutter(*problem.graph, problem.kernels, problem.views);
  for (const Banded& banded : detail::TimePartition(problem).find()) cutter.apply(banded, views);
  return views;
}

}  // namespace sluice::planner
