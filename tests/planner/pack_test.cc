#include "sluice/planner/pack.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace sluice::planner {
namespace {

bool disjoint(const std::vector<PackItem>& items, const Packing& packing) {
  for (std::size_t a = 0; a < items.size(); ++a) {
    for (std::size_t b = a + 1; b < items.size(); ++b) {
      const bool apart =
          packing.offsets[a] + items[a].size <= packing.offsets[b] || packing.offsets[b] + items[b].size <= packing.offsets[a];
      if (items[a].time.overlaps(items[b].time) && !apart) return false;
    }
  }
  return true;
}

/// The least height: some order of items, each at its lowest place, attains it.
std::uint64_t least_height(const std::vector<PackItem>& items) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::uint64_t best = ~std::uint64_t{0};
  do {
    best = std::min(best, detail::pack_in_order(items, order).height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<PackItem> random_items(std::mt19937& random, std::size_t count) {
  std::vector<PackItem> items;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % 8);
    items.push_back({{begin, begin + 1 + static_cast<std::int64_t>(random() % 4)}, 64 * (1 + random() % 9)});
  }
  return items;
}

TEST_CASE("packings of small problems are sound and close to the best there is") {
  std::mt19937 random(3);
  int optimal = 0;
  constexpr int kProblems = 150;
  for (int n = 0; n < kProblems; ++n) {
    const std::vector<PackItem> items = random_items(random, 2 + n % 6);
    const Packing packing = pack(items);
    const std::uint64_t least = least_height(items);
    REQUIRE(disjoint(items, packing));
    REQUIRE(packing.height >= least);
    REQUIRE(least >= live_sum(items));
    CHECK(static_cast<double>(packing.height) <= 1.35 * static_cast<double>(least));  // planner.md: TFLite's rule is at 1.36
    optimal += packing.height == least ? 1 : 0;
    REQUIRE(disjoint(items, detail::pack_by_time(items)));
  }
  CHECK(optimal >= kProblems * 9 / 10);
}

TEST_CASE("the lowest place may lie in a gap") {
  // B and C lie on A; D fits between them in time above A.
  const std::vector<PackItem> items = {{{0, 9}, 64}, {{0, 3}, 128}, {{6, 9}, 128}, {{3, 6}, 128}};
  const Packing packing = pack(items);
  CHECK(packing.height == 192);
  CHECK(disjoint(items, packing));
}

TEST_CASE("nothing to pack has no height") {
  CHECK(pack({}).height == 0);
  CHECK(live_sum({}) == 0);
}

}  // namespace
}  // namespace sluice::planner
