#include "sluice/core/sort.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

namespace sluice {
namespace {

/// Few different keys, so that many items are equal, and where each was.
template <class Key>
std::vector<std::pair<Key, int>> items_of(std::size_t count, unsigned seed, Key (*key_of)(unsigned)) {
  std::mt19937 random(seed);
  std::vector<std::pair<Key, int>> items;
  for (std::size_t i = 0; i < count; ++i) items.emplace_back(key_of(random() % 7), static_cast<int>(i));
  return items;
}

// The sort of builds with small code, whichever this one is.
template <class Key>
void check_small(Key (*key_of)(unsigned)) {
  const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (std::size_t count = 0; count < 70; ++count) {
    auto items = items_of<Key>(count, static_cast<unsigned>(count), key_of), expected = items;
    std::stable_sort(expected.begin(), expected.end(), less);
    if (count > 0) detail::sort_small(items.data(), count, less);
    CHECK(items == expected);
    // Items that are sorted, and those that are in reverse.
    if (count > 0) detail::sort_small(items.data(), count, less);
    CHECK(items == expected);
    std::reverse(items.begin(), items.end());
    auto again = items;
    std::stable_sort(again.begin(), again.end(), less);
    if (count > 0) detail::sort_small(items.data(), count, less);
    CHECK(items == again);
  }
}

TEST_CASE("The one sort of small code keeps equal items in their order, as std::stable_sort does") {
  STATIC_REQUIRE(detail::kMovesAsBytes<std::pair<unsigned, int>>);
  check_small<unsigned>([](unsigned key) { return key; });
}

TEST_CASE("Items that do not move as bytes are sorted by that sort, too") {
  STATIC_REQUIRE_FALSE(detail::kMovesAsBytes<std::pair<std::string, int>>);
  check_small<std::string>([](unsigned key) { return std::string(40, static_cast<char>('a' + key)); });
}

TEST_CASE("Many items, and large ones") {
  struct Wide {
    unsigned key;
    unsigned place;
    char rest[200];
  };
  std::mt19937 random(1);
  std::vector<Wide> items(3000);
  for (unsigned i = 0; i < items.size(); ++i) items[i] = {static_cast<unsigned>(random() % 100), i, {}};
  detail::sort_small(items.data(), items.size(), [](const Wide& a, const Wide& b) { return a.key < b.key; });
  CHECK(std::is_sorted(items.begin(), items.end(),
                       [](const Wide& a, const Wide& b) { return a.key != b.key ? a.key < b.key : a.place < b.place; }));
}

TEST_CASE("sort, stable_sort and merge_in_place in any build") {
  std::vector<int> numbers{3, 1, 2}, none;
  sluice::sort(numbers.begin(), numbers.end());
  CHECK(numbers == std::vector{1, 2, 3});
  sluice::stable_sort(numbers.begin(), numbers.end(), std::greater<>());
  CHECK(numbers == std::vector{3, 2, 1});
  sluice::sort(none.begin(), none.end());
  std::vector<int> halves{1, 4, 6, 2, 4, 5};
  sluice::merge_in_place(halves.begin(), halves.begin() + 3, halves.end(), std::less<>());
  CHECK(halves == std::vector{1, 2, 4, 4, 5, 6});
}

}  // namespace
}  // namespace sluice
