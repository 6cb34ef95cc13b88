// Placement with pairs that may overlap: random problems keep the rules, and a pair saves what it can.
#include "sluice/emit/overlap_placement.h"

#include <catch2/catch.hpp>
#include <random>

using namespace sluice;
using namespace sluice::emit;

TEST_CASE("a pair lies in each other's bytes, as far apart as it must") {
  const std::vector<planner::Rectangle> rectangles = {{.time = {0, 2}, .size = 100}, {.time = {1, 3}, .size = 80}};
  CHECK(OverlapPlacement(rectangles, {}).lowest(0).height == 180);
  const planner::Placement placement = OverlapPlacement(rectangles, {{.above = 0, .below = 1, .distance = 12}}).lowest(0);
  CHECK(placement.height == 112);
  CHECK(placement.offsets[0] >= placement.offsets[1] + 12);
}

TEST_CASE("what must lie above later ones lies at the top, where nothing is in the way of those") {
  // 0 lies over 1, and 1 over 2; beside 0 and beside 2 there is room for one more at the other end only.
  const std::vector<planner::Rectangle> rectangles = {
      {.time = {0, 2}, .size = 60}, {.time = {1, 3}, .size = 60}, {.time = {2, 4}, .size = 60}, {.time = {0, 1}, .size = 40},
      {.time = {1, 2}, .size = 40}, {.time = {2, 3}, .size = 40}, {.time = {3, 4}, .size = 40}};
  CHECK(OverlapPlacement(rectangles, {{0, 1, 0}, {1, 2, 0}}).lowest(100).height == 100);
  // The same, but 2 gives way to what stays for all the time at the bottom.
  std::vector<planner::Rectangle> low = rectangles;
  low.push_back({.time = {3, 5}, .size = 40});
  low[6].size = 0;
  CHECK(OverlapPlacement(low, {{0, 1, 0}, {1, 2, 0}}).lowest(100).height == 100);
}

TEST_CASE("rectangles of random problems overlap only as pairs say") {
  std::mt19937 random(5);
  const auto draw = [&](std::uint64_t most) { return random() % most; };
  for (int round = 0; round < 200; ++round) {
    std::vector<planner::Rectangle> rectangles;
    for (int i = 0; i < 12; ++i) {
      const auto begin = static_cast<std::int64_t>(draw(8));
      rectangles.push_back({.time = {begin, begin + 1 + static_cast<std::int64_t>(draw(3))}, .size = draw(90), .alignment = 1 + draw(4)});
    }
    const std::vector<OverlapPair> pairs = {{0, 1, draw(30)}, {1, 2, draw(30)}};
    const planner::Placement placement = OverlapPlacement(rectangles, pairs).lowest(draw(2) == 0 ? 0 : 150 + draw(200));
    CHECK(placement.height == planner::height_of(rectangles, placement.offsets));
    for (std::size_t a = 0; a < rectangles.size(); ++a) {
      CHECK(placement.offsets[a] % rectangles[a].alignment == 0);
      for (std::size_t b = 0; b < rectangles.size(); ++b) {
        const auto &x = rectangles[a], &y = rectangles[b];
        const bool together = a != b && x.matters() && y.matters() && x.time.begin < y.time.end && y.time.begin < x.time.end;
        if (!together || placement.offsets[a] < placement.offsets[b]) continue;
        const bool pair = a + 1 == b && b <= 2, turned = b + 1 == a && a <= 2;
        if (turned && placement.offsets[a] == placement.offsets[b] && pairs[b].distance == 0) continue;
        CHECK(placement.offsets[a] >= placement.offsets[b] + (pair ? std::min(pairs[a].distance, y.size) : y.size));
      }
    }
  }
}
