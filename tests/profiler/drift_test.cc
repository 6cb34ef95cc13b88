#include "src/profiler/drift.h"

#include <catch2/catch.hpp>

#include "src/profiler/middle.h"

namespace sluice::profiler {
namespace {

constexpr double kDrift = 0.1;

/// So many steps, each measured at four times: slower, faster, slower, faster.
std::vector<std::vector<double>> drifting(int steps) {
  std::vector<std::vector<double>> seconds;
  for (int i = 1; i <= steps; ++i) {
    const double slow = 1e-5 * i * std::exp(kDrift), fast = 1e-5 * i * std::exp(-kDrift);
    seconds.push_back({slow, fast, slow, fast});
  }
  return seconds;
}

TEST_CASE("drift is what all steps differ by together from one time to the next") {
  const double expected = kDrift * std::sqrt(4.0 / 3);
  std::vector<std::vector<double>> seconds = drifting(20);
  CHECK(drift_of(seconds).value() == Approx(expected));
  SECTION("steps that were measured once say nothing of it") {
    for (int i = 0; i < 500; ++i) seconds.push_back({1.0});
    CHECK(drift_of(seconds).value() == Approx(expected));
  }
  SECTION("nor does a time that few steps were measured at") {
    seconds[0].push_back(seconds[0][0] * 1.001);
    seconds[1].push_back(seconds[1][0] * 100);
    CHECK(drift_of(seconds).value() == Approx(expected).epsilon(0.2));
  }
}

TEST_CASE("without two times there is no drift to be known") {
  CHECK_FALSE(drift_of({}));
  const std::vector<std::vector<double>> once(10, {1e-3});
  CHECK_FALSE(drift_of(once));
}

TEST_CASE("the usual value is the mean without an eighth at each end") {
  CHECK(usual_of({5}) == 5);
  CHECK(usual_of({1, 100, 1, 2, 1, 2, 1, 2}) == Approx(9.0 / 6));
  CHECK(usual_of({3, 3, 3, 3, 3, 3, 3, 3}) == 3);
}

}  // namespace
}  // namespace sluice::profiler
