// Pass: which chains run in bands of rows. Two questions, two partitions:
//
//     for time      what one node writes and the next reads stays in the cores' own caches, if it is a band and not the whole. Every run of
//                   a few neighbours is a chain that could be, in a few numbers of bands; the profile prices its steps, and the cheapest
//                   way to cover all positions with chains and single nodes wins.
//     for memory    the tensors between are never whole (planner/bands/memory_partition.h)
//
// Bands cost their steps' overheads and read weights again.
// Invariant: without a chain that pays, views stay as they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/bands/band_chain.h"
#include "sluice/planner/stream/problem.h"

namespace sluice::planner {

/// The times of steps that are not cut by channels, by the profile. Remembers those of a few neighbours: chains that are compared begin at
/// positions that come one after the other.
class StepPrices {
 public:
  explicit StepPrices(const Problem& problem) : problem_(problem) {}

  double seconds(std::size_t p) {
    return price({p, {0, row_extents(problem_.graph->tensor(problem_.graph->node(problem_.views.order[p]).outputs[0]).shape).rows}});
  }
  double seconds(const Chain& chain) {
    double sum = 0;
    for (const BandStep& step : chain.steps) sum += price(step);
    return sum;
  }

 private:
  double price(const BandStep& band) {
    const NodeId id = problem_.views.order[band.position];
    StepSpec step{band.position, {0, model::step_channels(*problem_.graph, problem_.graph->node(id))}};
    step.rows = band.rows;
    step.far_bytes = band.far_bytes;
    step.round_bytes = band.round_bytes;
    step.there_bytes = band.there_bytes;
    return known_.seconds(step,
                          [&] { return price_step(*problem_.graph, problem_.kernels, id, step, *problem_.profile, problem_.threads); });
  }

  static constexpr std::size_t kMostKnown = 2048;

  const Problem& problem_;
  StepMemory known_{kMostKnown};
};

/// A chain holds its weights whole: larger ones come in slices.
inline bool weights_stay_small(const model::Graph& graph, const model::Node& node) {
  constexpr std::uint64_t kMost = 4u << 20;
  return std::all_of(node.weights.begin(), node.weights.end(), [&](WeightId w) { return graph.weight(w).bytes.count() <= kMost; });
}

namespace detail {

class TimePartition {
 public:
  TimePartition(const Problem& problem, const BandCutter& cutter) : problem_(problem), cutter_(cutter), prices_(problem) {}

  std::vector<Banded> find() {
    const std::size_t positions = problem_.views.order.size();
    std::vector<Way> best(positions + 1);
    for (std::size_t p = positions; p-- > 0;) {
      best[p].seconds = prices_.seconds(p) + best[p + 1].seconds;
      try_chains(p, best);
    }
    std::vector<Banded> chains;
    for (std::size_t p = 0; p < positions;) {
      const std::size_t end = best[p].end;
      if (end > p) chains.push_back(*cutter_.cut(p, end, best[p].bands));
      p = std::max(end, p + 1);
    }
    return chains;
  }

 private:
  /// The most that the rings of a chain may hold together, for each thread.
  static constexpr std::uint64_t kRings[] = {192u << 10, 384u << 10, 640u << 10};

  static constexpr std::uint64_t kMostWeights = 1u << 20;  // of a chain: each band reads them again, from near if they are few

  struct Way {
    double seconds = 0;   // of this position and all after it
    std::size_t end = 0;  // of the chain that begins here; 0: there is none
    std::int64_t bands = 1;
  };

  void try_chains(std::size_t first, std::vector<Way>& best) {
    double whole = prices_.seconds(first);
    std::uint64_t inner = 0;
    std::uint64_t weights = weight_bytes(first);
    for (std::size_t end = first + 2; end <= std::min(first + problem_.search.time_chain_nodes, problem_.views.order.size()); ++end) {
      if (!may_run(end - 2) || !may_run(end - 1)) return;
      whole += prices_.seconds(end - 1);
      weights += weight_bytes(end - 1);
      if (weights > kMostWeights) return;
      inner += cutter_.output_bytes(end - 2);
      if (!all_stay_inside(first, end)) continue;
      std::int64_t former = 1;
      for (const std::uint64_t ring : kRings) {
        const auto bands = static_cast<std::int64_t>(inner / (ring * static_cast<std::uint64_t>(problem_.threads))) + 1;
        if (bands < 2 || bands == former) continue;
        former = bands;
        const std::optional<Banded> banded = cutter_.cut(first, end, bands);
        if (!banded) break;
        const double seconds = prices_.seconds(banded->chain);
        if (seconds < whole * problem_.search.time_chain_gain && seconds + best[end].seconds < best[first].seconds)
          best[first] = {seconds + best[end].seconds, end, bands};
      }
    }
  }

  std::uint64_t weight_bytes(std::size_t p) const {
    std::uint64_t bytes = 0;
    for (WeightId w : problem_.graph->node(problem_.views.order[p]).weights) bytes += problem_.graph->weight(w).bytes.count();
    return bytes;
  }

  bool may_run(std::size_t p) const {
    return cutter_.takes_bands(p) && weights_stay_small(*problem_.graph, problem_.graph->node(problem_.views.order[p]));
  }

  bool all_stay_inside(std::size_t first, std::size_t end) const {
    for (std::size_t p = first; p + 1 < end; ++p)
      if (!cutter_.stays_inside(p, end)) return false;
    return true;
  }

  const Problem& problem_;
  const BandCutter& cutter_;
  StepPrices prices_;
};

}  // namespace detail

/// The chains that save time; `problem` has none yet.
inline std::vector<Banded> partition_for_time(const Problem& problem, const BandCutter& cutter) {
  return detail::TimePartition(problem, cutter).find();
}

}  // namespace sluice::planner
