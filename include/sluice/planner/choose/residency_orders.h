// Pass: the orders in which the pieces of this model are kept, the one that streams best first (planner/stream/residency.h makes them).
//
//     order      even | dense | large | front | back
//     kept       a quarter, a half, three quarters of its pieces          of one draft, cut once: what is kept is a matter of flags
//     period     fluid bound, beside two loads of room                    the least sum of three is the model's own order
//
// Invariant: constant for a model and a profile, so that what one budget keeps a larger one keeps too, at the same addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "sluice/planner/choose/stream_draft.h"
#include "sluice/planner/stream/fluid.h"
#include "sluice/planner/stream/residency.h"

namespace sluice::planner {

namespace detail {

/// By load: the piece in which its middle lies, or none.
inline std::vector<std::uint32_t> pieces_of_loads(const Problem& problem, const Schedule& schedule) {
  std::vector<std::uint32_t> of_stretch(problem.graph->stretches.size(), kNoPiece);
  for (std::uint32_t p = 0; p < problem.pieces.all.size(); ++p)
    std::fill_n(of_stretch.begin() + problem.pieces.all[p].first_stretch, problem.pieces.all[p].stretch_count, p);
  std::vector<std::uint32_t> of_load;
  for (const LoadSpec& load : schedule.loads)
    of_load.push_back(load.resident ? kNoPiece : of_stretch[load.first_stretch + load.stretch_count / 2]);
  return of_load;
}

}  // namespace detail

/// The orders of pieces, first the one whose prefixes stream best.
inline std::vector<std::vector<std::uint32_t>> residency_orders(const Problem& problem) {
  // All orders use the same pieces, so the kept ones are a list of flags. What several nodes read comes first in each order.
  Draft draft = make_draft(problem, {.target = middle_target(problem.pieces)});
  const std::vector<std::uint32_t> piece_of = detail::pieces_of_loads(problem, draft.schedule);
  const std::vector<std::uint64_t> live = live_by_step(draft.layout, draft.schedule);
  std::vector<double> compute;
  for (const Interval<std::int64_t>& steps : draft.schedule.steps_of)
    compute.push_back(std::accumulate(draft.costs.step.begin() + steps.begin, draft.costs.step.begin() + steps.end, 0.0));
  std::uint64_t always = 0, total = 0;
  for (const Piece& piece : problem.pieces.all) (piece.reads > 1 ? always : total) += piece.region_bytes();
  // Room for two loads beside the activations: a budget that keeps a share of the weights has hardly more, and with much room every order
  // streams well.
  std::uint64_t room = 0;
  for (const LoadSpec& load : draft.schedule.loads) room = std::max(room, 2 * load.region_bytes());
  room += live.empty() ? 0 : *std::max_element(live.begin(), live.end());
  std::vector<std::vector<std::uint32_t>> orders;
  std::size_t best = 0;
  double best_sum = std::numeric_limits<double>::infinity();
  for (const ResidencyOrder rule : kResidencyOrders) {
    orders.push_back(order_pieces(problem.pieces, compute, rule));
    double sum = 0;
    for (const std::uint64_t quarters : {1u, 2u, 3u}) {
      const std::vector<bool> kept = keep_prefix(problem.pieces, orders.back(), always + total / 4 * quarters);
      for (std::size_t k = 0; k < piece_of.size(); ++k)
        if (piece_of[k] != kNoPiece) draft.schedule.loads[k].resident = kept[piece_of[k]] || problem.pieces.all[piece_of[k]].reads > 1;
      const Gates gates = fluid_gates(draft.schedule, live, room, Run::kPeriod, problem.wraps()).gates;
      sum += simulate(draft.schedule, draft.costs, gates, Run::kPeriod).seconds();
    }
    if (sum >= best_sum * problem.search.worthwhile) continue;
    best_sum = sum;
    best = orders.size() - 1;
  }
  std::rotate(orders.begin(), orders.begin() + static_cast<std::ptrdiff_t>(best), orders.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  return orders;
}

}  // namespace sluice::planner
