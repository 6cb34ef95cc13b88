#include "sluice/planner/place/exact_search.h"

#include <catch2/catch.hpp>
#include <random>

#include "sluice/planner/place/validate_placement.h"
#include "tests/planner/placement_problems.h"

namespace sluice::planner {
namespace {

constexpr std::uint64_t kPlenty = 100'000'000;

SearchOutcome search(const std::vector<Rectangle>& rectangles, std::uint64_t capacity, DiveRule rule, std::uint64_t limit = kPlenty) {
  const auto problem = SearchProblem::make(rectangles, columns_of(rectangles), capacity);
  REQUIRE(problem);
  ExactSearch exact(*problem, capacity, rule, limit);
  const SearchOutcome outcome = exact.run();
  if (outcome == SearchOutcome::kFound) CHECK(validate_placement({rectangles, capacity}, exact.placement(rectangles).offsets));
  return outcome;
}

TEST_CASE("every rule finds what fits and proves what does not") {
  std::mt19937 random(13);
  for (int n = 0; n < 500; ++n) {
    const std::vector<Rectangle> rectangles = random_rectangles(random, 4 + n % 4, n % 2 == 1);
    const std::uint64_t least = least_height(rectangles);
    for (DiveRule rule : kDiveRules) {
      REQUIRE(search(rectangles, least, rule) == SearchOutcome::kFound);
      REQUIRE(search(rectangles, least - 1, rule) == SearchOutcome::kImpossible);
    }
  }
}

TEST_CASE("columns keep exactly who overlaps whom") {
  std::mt19937 random(17);
  for (int n = 0; n < 200; ++n) {
    const std::vector<Rectangle> rectangles = random_rectangles(random, 12);
    const Columns columns = columns_of(rectangles);
    CHECK(columns.count <= rectangles.size());
    for (std::size_t a = 0; a < rectangles.size(); ++a)
      for (std::size_t b = 0; b < rectangles.size(); ++b)
        REQUIRE(columns.runs[a].overlaps(columns.runs[b]) == rectangles[a].time.overlaps(rectangles[b].time));
  }
}

TEST_CASE("a search that may do nothing, or is told to stop, knows nothing") {
  const std::vector<Rectangle> rectangles = {{{0, 2}, 3}, {{1, 3}, 4}, {{2, 4}, 3}};
  CHECK(search(rectangles, 7, DiveRule::kTwa, 0) == SearchOutcome::kStopped);
  const std::atomic<bool> stop{true};
  const auto problem = SearchProblem::make(rectangles, columns_of(rectangles), 7);
  CHECK(ExactSearch(*problem, 7, DiveRule::kTwa, kPlenty, &stop).run() == SearchOutcome::kStopped);
}

TEST_CASE("problems that 32 bits of units do not hold are left to the other rules") {
  const std::vector<Rectangle> odd = {{{0, 2}, (std::uint64_t{1} << 40) + 1}, {{1, 3}, 2}};
  CHECK_FALSE(SearchProblem::make(odd, columns_of(odd), std::uint64_t{1} << 41));
  const std::vector<Rectangle> even = {{{0, 2}, std::uint64_t{1} << 39, 4096}, {{1, 3}, std::uint64_t{1} << 30, 4096}};
  CHECK(SearchProblem::make(even, columns_of(even), std::uint64_t{3} << 38));
}

}  // namespace
}  // namespace sluice::planner
