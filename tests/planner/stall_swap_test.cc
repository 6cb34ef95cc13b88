#include "sluice/planner/stall_swap.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sluice/planner/linearise.h"
#include "sluice/planner/policies.h"
#include "tests/planner/nets.h"

namespace sluice::planner {
namespace {

std::uint64_t bytes_of(const Pieces& pieces, const std::vector<bool>& kept) {
  std::uint64_t bytes = 0;
  for (std::size_t p = 0; p < kept.size(); ++p)
    if (kept[p]) bytes += pieces.all[p].region_bytes();
  return bytes;
}

TEST_CASE("what is waited for comes in for what is kept, in no more bytes") {
  model::Graph graph = resnet50();
  const profiler::DeviceProfile profile;
  Problem problem;
  problem.graph = &graph;
  problem.profile = &profile;
  problem.repeat = true;
  problem.kernels = *select_kernels(graph);
  problem.views = assign_views(graph, problem.kernels, graph_order(graph), false);
  problem.pieces = cut_pieces(graph, problem.kernels, problem.views.order);
  problem.residency = best_residency(problem);
  std::vector<bool> kept(problem.pieces.all.size(), false);
  for (std::size_t p = 0; p < kept.size(); p += 2) kept[p] = true;
  // On demand each streamed load is waited for.
  const auto candidate = place_on_demand(problem, make_draft(problem, {.pieces = &problem.pieces, .kept = kept}), kEndlessArena);
  REQUIRE(candidate);
  CHECK(kept_pieces(problem, *candidate) == kept);
  const std::vector<double> stalls = stalls_by_piece(problem, *candidate);
  for (std::size_t p = 0; p < kept.size(); ++p) CHECK((stalls[p] > 0) != kept[p]);

  const std::uint64_t bytes = bytes_of(problem.pieces, kept);
  CHECK(swaps(problem, *candidate, bytes - 1).empty());
  const auto near = swaps(problem, *candidate, bytes);
  REQUIRE_FALSE(near.empty());
  const double longest = *std::max_element(stalls.begin(), stalls.end());
  bool first = true;
  for (const std::vector<bool>& swapped : near) {
    CHECK(bytes_of(problem.pieces, swapped) <= bytes);
    std::size_t in = 0, out = 0;
    for (std::size_t p = 0; p < kept.size(); ++p) {
      in += swapped[p] && !kept[p];
      out += kept[p] && !swapped[p];
      if (first && swapped[p] && !kept[p]) CHECK(stalls[p] == longest);
    }
    CHECK(in == 1);
    CHECK(out == 1);
    first = false;
  }
}

}  // namespace
}  // namespace sluice::planner
