// A graph, and the problem of planning repeated runs of it on an assumed device.
#pragma once

#include <utility>

#include "sluice/planner/linearise.h"
#include "sluice/planner/policies.h"

namespace sluice::planner {

struct Fixture {
  model::Graph graph;
  profiler::DeviceProfile profile;
  Problem problem;

  explicit Fixture(model::Graph g) : graph(std::move(g)) {
    problem.graph = &graph;
    problem.profile = &profile;
    problem.repeat = true;
    problem.kernels = *select_kernels(graph);
    problem.views = assign_views(graph, problem.kernels, graph_order(graph), false);
    problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
    problem.residency = residency_orders(problem);
  }
};

}  // namespace sluice::planner
