#include "sluice/planner/place/place.h"

#include <catch2/catch.hpp>
#include <random>

#include "sluice/planner/place/validate_placement.h"
#include "tests/planner/placement_problems.h"

namespace sluice::planner {
namespace {

constexpr PlaceOptions kLowestSearched{PlaceGoal::kLowest, SearchLimit::of_milliseconds(50)};

TEST_CASE("brute force agrees on the least height and on what fits") {
  std::mt19937 random(7);
  for (int n = 0; n < 10000; ++n) {
    const PlacementProblem problem{random_rectangles(random, 1 + n % 7, n % 4 == 3)};
    const std::uint64_t least = least_height(problem.rectangles);
    const Placed lowest = place(problem, kLowestSearched);
    REQUIRE(validate_placement(problem, lowest.placement.offsets));
    REQUIRE(lowest.settled);
    REQUIRE(lowest.placement.height == least);
    REQUIRE(lowest.bound <= least);
    const auto fit = [&](std::uint64_t capacity) {
      const Placed placed = place({problem.rectangles, capacity}, {PlaceGoal::kFit, SearchLimit::of_milliseconds(50)});
      REQUIRE(placed.settled);
      REQUIRE(validate_placement(problem, placed.placement.offsets));
      return placed.placement.height <= capacity;
    };
    REQUIRE(fit(least));
    REQUIRE_FALSE(fit(least - 1));
  }
}

TEST_CASE("placements without a search are valid, fixed and aligned rectangles too") {
  std::mt19937 random(11);
  for (int n = 0; n < 300; ++n) {
    const PlacementProblem problem{random_rectangles(random, 2 + n % 60, n % 2 == 1)};
    const Placed placed = place(problem);
    REQUIRE(validate_placement(problem, placed.placement.offsets));
    REQUIRE(placed.placement.height >= placed.bound);
    REQUIRE(placed.placement.height == height_of(problem.rectangles, placed.placement.offsets));
  }
}

TEST_CASE("the same problem gives the same placement with every number of threads") {
  std::mt19937 random(5);
  std::vector<Rectangle> rectangles;
  for (int i = 0; i < 60; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % 40);
    rectangles.push_back({{begin, begin + 1 + static_cast<std::int64_t>(random() % 20)}, 100 + random() % 5000});
  }
  PlaceOptions options{PlaceGoal::kLowest, SearchLimit::of_milliseconds(100)};
  const Placed one = place({rectangles}, options);
  for (int threads : {1, 2, 3, 8}) {
    options.threads = threads;
    CHECK(place({rectangles}, options).placement.offsets == one.placement.offsets);
  }
}

TEST_CASE("problems too entangled for lists of neighbours are placed as time passes") {
  std::vector<Rectangle> rectangles;
  for (int i = 0; i < 3000; ++i) rectangles.push_back({{i, 6000 - i}, 64, 64});
  rectangles.push_back({{2000, 4000}, 64, 64, 640});
  const PlacementProblem problem{rectangles};
  const Placed placed = place(problem, kLowestSearched);
  CHECK(placed.by == PlacedBy::kTimeOrder);
  CHECK(validate_placement(problem, placed.placement.offsets));
  CHECK(placed.ratio() == 1.0);
}

TEST_CASE("what has no time or no bytes is in nobody's way") {
  CHECK(place({}).placement.height == 0);
  const Placed placed = place({{{{0, 4}, 8}, {{2, 2}, 100}, {{1, 3}, 0}, {{0, 4}, 8}}});
  CHECK(placed.placement.height == 16);
  CHECK(placed.settled);
}

}  // namespace
}  // namespace sluice::planner
