// Counts and percentiles of many requests, in memory that does not grow with them.
#include "src/cli/serve/tally.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sluice/scheduler/random.h"

namespace sluice::cli::serve_detail {
namespace {

using scheduler::ModelId;
using scheduler::Outcome;
using scheduler::Time;

Served served(std::size_t model, Time latency, Outcome outcome = Outcome::kMet) {
  Served one;
  one.result.model = ModelId(model);
  one.result.outcome = outcome;
  one.result.submitted = 1000;
  one.result.ended = 1000 + latency;
  return one;
}

Time exact(std::vector<Time> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
}

TEST_CASE("percentiles are exact while there are few, and within half a percent of many") {
  scheduler::Random random(5);
  LatencySketch sketch;
  CHECK(sketch.percentile(0.5) == 0);
  std::vector<Time> values;
  for (const std::size_t until : {std::size_t{1}, std::size_t{7}, LatencySketch::kExact, LatencySketch::kExact + 1, std::size_t{200'000}}) {
    while (values.size() < until) {
      values.push_back(static_cast<Time>(random.log_uniform(1e4, 1e11)));
      sketch.add(values.back());
    }
    CHECK(sketch.count() == until);
    CHECK(sketch.mean() == Approx(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(until)));
    for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
      CAPTURE(until, share);
      const auto right = static_cast<double>(exact(values, share));
      CHECK(static_cast<double>(sketch.percentile(share)) == Approx(right).epsilon(until <= LatencySketch::kExact ? 0 : 0.0051));
    }
  }
}

TEST_CASE("a million requests take no more memory than a few thousand") {
  Tally tally(3);
  std::size_t before = 0;
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    tally.add(served(i % 3, static_cast<Time>(1000 * (i % 977 + 1)), i % 5 == 0 ? Outcome::kDropped : Outcome::kMet));
    if (i == 5000) before = tally.bytes();
  }
  CHECK(tally.bytes() == before);
  CHECK(before <= 4 * 64 * 1024);
  CHECK(tally.all().ended == 1'000'000);
  CHECK(tally.all().met == 800'000);
  CHECK(tally.all().latencies.count() == 800'000);
  CHECK(tally.model(0).ended + tally.model(1).ended + tally.model(2).ended == 1'000'000);
}

TEST_CASE("latencies beyond all measure count as the longest that there are") {
  LatencySketch sketch;
  for (std::size_t i = 0; i < 3000; ++i) sketch.add(i % 2 == 0 ? 0 : scheduler::kNever);
  CHECK(sketch.percentile(0.25) <= 1);
  CHECK(sketch.percentile(0.99) > 24 * 3600 * scheduler::kSecond);
}

TEST_CASE("what was checked, and what was said of its end") {
  Tally tally(1);
  Served one = served(0, 100);
  tally.add(one);  // nothing was said
  one.checked = true;
  one.result.predicted = 1000 + 110;
  tally.add(one);
  one.wrong = true;
  one.result.predicted = 1000 + 130;
  tally.add(one);
  one.result.outcome = Outcome::kDropped;
  tally.add(one);
  CHECK(tally.checked() == 3);
  CHECK(tally.wrong() == 2);
  CHECK(tally.told() == 2);
  CHECK(tally.told_well() == 1);
}

}  // namespace
}  // namespace sluice::cli::serve_detail
