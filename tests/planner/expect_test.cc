#include "sluice/planner/stream/expect.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/planner/pipeline.h"

namespace sluice::planner {
namespace {

/// Any steps, loads and gates that a plan might have.
struct Drawn {
  explicit Drawn(std::uint64_t seed, bool wraps) : random(seed) {
    const std::size_t steps = 1 + random() % 12;
    std::size_t loads = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const bool prepares = random() % 8 == 0;
      for (; random() % 3 != 0; ++loads) {
        const auto at = static_cast<std::int64_t>(i);
        pipeline.schedule.loads.push_back({0, 1, model::FileRange{Bytes(), Bytes(kBlockBytes)}, {at, at + 1}, random() % 8 == 0, prepares});
        pipeline.costs.load.push_back(real());
        pipeline.costs.decode.push_back(random() % 2 == 0 ? 0 : real() / 4);
        pipeline.costs.pieces.push_back(1 + random() % 4);
        const std::int64_t least = gates.empty() ? (wraps ? 1 - static_cast<std::int64_t>(steps) : 0) : gates.back();
        gates.push_back(std::max(least, at - static_cast<std::int64_t>(random() % steps)));
      }
      pipeline.schedule.steps.push_back({i, {0, 16}, 0, 0, static_cast<std::uint32_t>(loads)});
      pipeline.schedule.steps.back().prepare = prepares;
      pipeline.costs.step.push_back(real());
      pipeline.costs.compute += pipeline.costs.step.back();
    }
    pipeline.costs.load_start = real() / 8;
    pipeline.costs.wake = real() / 8;
    pipeline.costs.beside_reads = 1.1;
  }
  double real() { return static_cast<double>(random() % 1000 + 1) / 500; }

  std::mt19937_64 random;
  Pipeline pipeline{{}};
  Gates gates;
};

TEST_CASE("loads that share the disk end together") {
  Pipeline p({1, 1, 1});
  p.together(3, 3);
  const ExpectedRun run = expect(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue);
  CHECK(run.load_end == std::vector<double>{3, 3, 3});
  CHECK(run.steps.step_start == std::vector<double>{3, 4, 5});
  // Two at a time: the third begins when they end.
  p.together(3, 2);
  CHECK(expect(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).load_end == std::vector<double>{2, 2, 3});
  // Each on demand has the disk to itself.
  p.together(3, 3);
  CHECK(expect(p.schedule, p.costs, {0, 1, 2}, Run::kPrologue).seconds() == Approx(6));
}

TEST_CASE("a short load leaves the disk to the long ones, and a later one joins them") {
  Pipeline p({1, 3, 2});
  p.together(8, 8);
  // Loads 0 and 1 share until 2, when load 0 ends; step 0 ends at 3 and opens the gate of load 2. Load 1 has 1 left then, load 2 has 2.
  const ExpectedRun run = expect(p.schedule, p.costs, {0, 0, 1}, Run::kPrologue);
  CHECK(run.load_begin == std::vector<double>{0, 0, 3});
  CHECK(run.load_end == std::vector<double>{2, 5, 6});
}

TEST_CASE("pieces begin in order, as many as may be in flight") {
  Pipeline p({4, 1});
  p.costs.pieces = {4, 1};
  p.together(2, 2);
  // Two pieces until 2, two until 4, load 1 alone.
  CHECK(expect(p.schedule, p.costs, {0, 0}, Run::kPrologue).load_end == std::vector<double>{4, 5});
  p.together(3, 3);
  // Three pieces until 3; then the last one beside load 1.
  CHECK(expect(p.schedule, p.costs, {0, 0}, Run::kPrologue).load_end == std::vector<double>{5, 5});
}

TEST_CASE("loads of the next run share the disk with those of this one") {
  Pipeline p({1, 1});
  p.together(2, 2);
  // Both begin with step 1 of the run before: they end with it, after 2, one of which is the next run's.
  const ExpectedRun run = expect(p.schedule, p.costs, {-1, -1}, Run::kPeriod);
  CHECK(run.load_begin == std::vector<double>{-1, -1});
  CHECK(run.load_end == std::vector<double>{1, 1});
  CHECK(run.seconds() == Approx(3));
  CHECK(simulate(p.schedule, p.costs, {-1, -1}, Run::kPeriod).seconds() == Approx(2));
}

TEST_CASE("the disk is faster while a step waits") {
  Pipeline p({2, 2});
  p.costs.read_rate_waiting = 2;
  // Load 0 takes 1, because nothing computes; load 1 takes 1 of its 2 beside step 0, and the rest in half the time.
  const ExpectedRun run = expect(p.schedule, p.costs, {0, 0}, Run::kPrologue);
  CHECK(run.load_end == std::vector<double>{1, 2.5});
  CHECK(run.seconds() == Approx(3.5));
}

TEST_CASE("with one read at once the expected times are the simulated ones, and with more of them never less") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    for (const Run kind : {Run::kPrologue, Run::kPeriod}) {
      Drawn drawn(seed, kind == Run::kPeriod);
      Pipeline& p = drawn.pipeline;
      CAPTURE(seed, kind == Run::kPeriod);
      for (const std::uint32_t at_once : {1, 2, 8}) {
        if (at_once > 1) p.costs.load_start = p.costs.wake = 0;  // a longer wait may spare another one
        const Timeline simulated = simulate(p.schedule, p.costs, drawn.gates, kind);
        p.together(1 + static_cast<std::uint32_t>(seed % 8), at_once);
        const ExpectedRun run = expect(p.schedule, p.costs, drawn.gates, kind);
        REQUIRE(run.steps.step_end.size() == simulated.step_end.size());
        if (at_once == 1)
          for (std::size_t i = 0; i < simulated.step_end.size(); ++i) REQUIRE(run.steps.step_end[i] == Approx(simulated.step_end[i]));
        // Of periods the ends are never earlier, though one may be shorter that follows a longer one.
        if (kind == Run::kPrologue) REQUIRE(run.seconds() >= simulated.seconds() * (1 - 1e-6));
        p.costs.read_rate_waiting = 1.5;
        const double seconds = expect(p.schedule, p.costs, drawn.gates, kind).seconds();
        p.costs.read_rate_waiting = 1;
        if (kind == Run::kPrologue) REQUIRE(seconds <= run.seconds() * (1 + 1e-6));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::planner
