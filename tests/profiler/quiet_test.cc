#include "src/profiler/quiet.h"

#include <catch2/catch.hpp>

namespace sluice::profiler {
namespace {

TEST_CASE("a machine is quiet while an anchor takes little more than at its quickest quarter") {
  CHECK(longest_quiet_anchor({}) == 0);
  CHECK(longest_quiet_anchor({2}) == Approx(2.2));
  CHECK(longest_quiet_anchor({1, 1.02, 1.4, 1.45, 1.4, 1.5, 1.01, 1.38}) == Approx(1.1 * 1.02));
  CHECK(usual_quiet_anchor({1, 1.02, 1.4, 1.45, 1.4, 1.5, 1.01, 1.08}) == Approx((1 + 1.02 + 1.01 + 1.08) / 4));
}

TEST_CASE("of a step's times those of the quiet machine count") {
  // It waits for memory: while anchors take half as long again, it takes no longer.
  const std::vector<TimedOnce> times = {{2, 2e-4}, {2.02, 2.02e-4}, {1.98, 1.98e-4}, {1.3, 1.95e-4}, {1.35, 2.025e-4}, {1.4, 2.1e-4}};
  CHECK(quiet_time_of(times, 1.1e-4) == Approx(2));
  SECTION("of fewer than three such times the three with the shortest anchors") {
    const std::vector<TimedOnce> disturbed = {{2, 2e-4}, {1.3, 1.95e-4}, {1.2, 2.4e-4}, {1.4, 1.96e-4}};
    CHECK(quiet_time_of(disturbed, 1.1e-4) == Approx((2 + 1.3 + 1.4) / 3));
  }
  SECTION("what was measured once is what it was") { CHECK(quiet_time_of({{5, 1e-3}}, 1e-6) == 5); }
}

}  // namespace
}  // namespace sluice::profiler
