// Problems for the placement tests: random ones, and the least height by trying everything.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "sluice/planner/place/placement_problem.h"

namespace sluice::planner {

/// `count` rectangles over a short time, of sizes that leave odd gaps. `extras`: some with alignments, one with a fixed offset.
inline std::vector<Rectangle> random_rectangles(std::mt19937& random, std::size_t count, bool extras = false) {
  std::vector<Rectangle> rectangles;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % 8);
    rectangles.push_back({{begin, begin + 1 + static_cast<std::int64_t>(random() % 5)}, 1 + random() % 9});
    if (extras && random() % 3 == 0) rectangles.back().alignment = 1 + random() % 5;
  }
  if (extras && random() % 2 == 0) rectangles[0].fixed = random() % 12 / rectangles[0].alignment * rectangles[0].alignment;
  return rectangles;
}

/// The least height there is: the lowest placement has each rectangle on the floor or on another one, so it is enough to place them in each
/// order, each as low as it goes above those before it that it overlaps.
inline std::uint64_t least_height(const std::vector<Rectangle>& rectangles) {
  std::vector<std::size_t> order(rectangles.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::uint64_t best = ~std::uint64_t{0};
  std::vector<std::uint64_t> offsets(rectangles.size());
  do {
    std::uint64_t height = 0;
    bool possible = true;
    for (std::size_t n = 0; n < order.size() && possible; ++n) {
      const Rectangle& r = rectangles[order[n]];
      std::uint64_t at = 0;
      for (std::size_t p = 0; p < n; ++p)
        if (rectangles[order[p]].time.overlaps(r.time)) at = std::max(at, offsets[order[p]] + rectangles[order[p]].size);
      at = round_up_to(at, r.alignment);
      possible = !r.fixed || at <= *r.fixed;
      offsets[order[n]] = r.fixed.value_or(at);
      height = std::max(height, offsets[order[n]] + r.size);
      possible = possible && height < best;
    }
    if (possible) best = height;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace sluice::planner
