#include "sluice/planner/place/validate_placement.h"

#include <catch2/catch.hpp>
#include <string>

namespace sluice::planner {
namespace {

const PlacementProblem& sample() {
  static const PlacementProblem problem{{{{0, 4}, 10}, {{2, 6}, 10, 4}, {{4, 8}, 20, 1, 0}, {{3, 3}, 99}}, 32};
  return problem;
}

std::string broken_rule(const std::vector<std::uint64_t>& offsets) {
  const Status status = validate_placement(sample(), offsets);
  return status ? "" : std::string(status.error().reason).substr(0, 2);
}

TEST_CASE("each rule of placements is checked under its name") {
  CHECK(broken_rule({0, 20, 0, 0}).empty());
  CHECK(broken_rule({0, 20, 0}) == "P1");
  CHECK(broken_rule({0, 22, 0, 0}) == "P2");
  CHECK(broken_rule({0, 20, 1, 0}) == "P3");
  CHECK(broken_rule({0, 24, 0, 0}) == "P4");
  CHECK(broken_rule({~std::uint64_t{0} - 3, 20, 0, 0}) == "P4");
  CHECK(broken_rule({15, 20, 0, 0}) == "P5");
  CHECK(broken_rule({0, 16, 0, 0}) == "P5");
}

TEST_CASE("problems whose offsets could overflow are refused") {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  CHECK(check_problem(sample()));
  CHECK_FALSE(check_problem({{{{0, 1}, huge}, {{0, 1}, huge}}}));
  CHECK_FALSE(check_problem({{{{0, 1}, 1, 0}}}));
  CHECK_FALSE(check_problem({{{{1, 0}, 1}}}));
}

}  // namespace
}  // namespace sluice::planner
