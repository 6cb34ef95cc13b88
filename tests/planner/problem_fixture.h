// A graph, and the problem of planning repeated runs of it on an assumed device.
#pragma once

#include <utility>

#include "sluice/planner/choose/policies.h"
#include "sluice/planner/choose/residency_orders.h"
#include "sluice/planner/order/linearise.h"

namespace sluice::planner {

/// Of one run, without an order of residency.
inline Problem problem_of(const model::Graph& graph, const profiler::DeviceProfile& profile) {
  Problem problem;
  problem.graph = &graph;
  problem.profile = &profile;
  problem.kernels = *select_kernels(graph);
  problem.views = assign_views(graph, problem.kernels, graph_order(graph), false);
  problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
  return problem;
}

struct Fixture {
  model::Graph graph;
  profiler::DeviceProfile profile;
  Problem problem;

  explicit Fixture(model::Graph g) : graph(std::move(g)), problem(problem_of(graph, profile)) {
    problem.repeat = true;
    problem.residency = residency_orders(problem);
  }
};

}  // namespace sluice::planner
