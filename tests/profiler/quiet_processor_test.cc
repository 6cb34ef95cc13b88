#include "src/profiler/quiet_processor.h"

#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace sluice::profiler {
namespace {

TEST_CASE("processors nearby begin with the one that the thread runs on, and are some of those that it may run on") {
  const std::vector<int> allowed = other_processors({});
  const ScopedAffinity here(std::span(&allowed.back(), 1));
  CHECK(processors_nearby(4) == std::vector<int>{allowed.back()});
  CHECK(processors_nearby(0).empty());
}

TEST_CASE("a thread is kept on the quickest of its processors, and may run on all of them afterwards") {
  const std::vector<int> allowed = other_processors({});
  if (allowed.size() < 2) {
    WARN("skipped: this process may run on one processor");
    return;
  }
  const std::vector<int> two(allowed.begin(), allowed.begin() + 2);
  const ScopedAffinity both(two);
  for (const int quick : two) {
    std::map<int, int> asked;
    {
      const QuietProcessor processor(true, [&] {
        ++asked[sched_getcpu()];
        return sched_getcpu() == quick ? 1.0 : 1.25;
      });
      CHECK(other_processors({}) == std::vector<int>{quick});
    }
    CHECK(asked == std::map<int, int>{{two[0], 1}, {two[1], 1}});
    CHECK(other_processors({}) == two);
  }
  bool timed = false;
  const QuietProcessor unwanted(false, [&] {
    timed = true;
    return 1.0;
  });
  CHECK_FALSE(timed);
  CHECK(other_processors({}) == two);
}

}  // namespace
}  // namespace sluice::profiler
