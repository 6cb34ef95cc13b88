#include "sluice/planner/choose/stall_swap.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/planner/nets.h"
#include "tests/planner/problem_fixture.h"

namespace sluice::planner {
namespace {

TEST_CASE("what is waited for comes in for what is kept, in no more bytes") {
  const Fixture fixture(resnet50());
  const Problem& problem = fixture.problem;
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
