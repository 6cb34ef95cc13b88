#include "src/plan/span_index.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

namespace sluice::plan {

TEST_CASE("spans that meet are the ones that a search over all finds; what is removed stays away") {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  SpanIndex index;
  std::vector<SpanIndex::Span> spans;
  std::set<std::size_t> removed;
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t begin = below(5000), length = 1 + below(std::uint64_t{1} << below(12));
    const SpanIndex::Span span{begin, begin + length};
    std::multiset<std::size_t> found, expected;
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (!removed.contains(i) && spans[i].overlaps(span)) expected.insert(i);
    index.visit_meeting(span, [&](std::size_t i) {
      found.insert(i);
      if (i % 3 != 0) return true;
      removed.insert(i);
      return false;
    });
    REQUIRE(found == expected);
    index.add(span, spans.size());
    spans.push_back(span);
  }
  CHECK(removed.size() > 100);
  index.clear();
  index.visit_meeting({0, ~std::uint64_t{0}}, [](std::size_t) {
    FAIL("nothing is left");
    return true;
  });
}

}  // namespace sluice::plan
