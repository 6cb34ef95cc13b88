#include "sluice/planner/simulate.h"

#include <catch2/catch.hpp>

#include "sluice/planner/place_loads.h"

namespace sluice::planner {
namespace {

/// Steps of one second; load k feeds step k and takes `seconds[k]`.
struct Pipeline {
  Schedule schedule;
  Costs costs;
  explicit Pipeline(std::vector<double> seconds, std::uint64_t blocks = 1) {
    for (std::size_t k = 0; k < seconds.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      schedule.steps.push_back({k, {0, 16}, 0, 0, static_cast<std::uint32_t>(k + 1)});
      schedule.loads.push_back({0, 1, {Bytes(k * blocks * kBlockBytes), Bytes(blocks * kBlockBytes)}, {at, at + 1}, false});
      costs.step.push_back(1.0);
      costs.load.push_back(seconds[k]);
      costs.compute += 1.0;
    }
  }
};

TEST_CASE("loads hide behind steps as far as gates allow") {
  const Pipeline p({1, 1, 1});
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, true) == Approx(4));  // only the first load shows
  CHECK(simulate(p.schedule, p.costs, {0, 1, 2}, true) == Approx(6));  // on demand: one after the other
  CHECK(simulate(p.schedule, p.costs, {0, 0, 1}, true) == Approx(4));
}

TEST_CASE("a slow load stalls, and the loader works ahead behind a slow step") {
  Pipeline p({1, 3, 0.5});
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, true) == Approx(6));
  p.costs.step[0] = 5;
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, true) == Approx(8));
}

TEST_CASE("resident loads run in the prologue only") {
  Pipeline p({2, 1, 1});
  p.schedule.loads[0].resident = true;
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, true) == Approx(5));
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, false) == Approx(3));
  CHECK(reading_seconds(p.schedule, p.costs, true) == Approx(4));
  CHECK(reading_seconds(p.schedule, p.costs, false) == Approx(2));
}

TEST_CASE("fluid gates count bytes and nothing else") {
  const Pipeline p({1, 1, 1, 1});
  const std::vector<std::uint64_t> nothing(4, 0);
  CHECK(fluid_gates(p.schedule, nothing, 4 * kBlockBytes) == std::vector<std::int64_t>{0, 0, 0, 0});
  CHECK(fluid_gates(p.schedule, nothing, 2 * kBlockBytes) == std::vector<std::int64_t>{0, 0, 1, 2});
  CHECK(fluid_gates(p.schedule, nothing, kBlockBytes) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(fluid_gates(p.schedule, {0, 0, kBlockBytes, 0}, 2 * kBlockBytes) == std::vector<std::int64_t>{0, 0, 1, 3});
}

TEST_CASE("placed loads reach the fluid gates where addresses do not matter, and go round what is fixed") {
  const Pipeline p({1, 1, 1, 1});
  for (const AddressRule address : {AddressRule::kLowest, AddressRule::kHighest, AddressRule::kRing}) {
    const PlaceRule two{.arena = {0, 2 * kBlockBytes}, .address = address};
    const auto placed = place_loads(p.schedule, {}, two);
    REQUIRE(placed.has_value());
    CHECK(placed->gates == std::vector<std::int64_t>{0, 0, 1, 2});
    CHECK(placed->offsets[0] != placed->offsets[1]);
    // Step 2 takes the first block: load 2 may only lie in the second, which load 1 leaves after step 1.
    const auto round = place_loads(p.schedule, {{{2, 3}, {0, 100}}}, two);
    REQUIRE(round.has_value());
    CHECK(round->offsets[2] == kBlockBytes);
  }
  CHECK_FALSE(place_loads(p.schedule, {{{2, 3}, {0, 2 * kBlockBytes}}}, {.arena = {0, 2 * kBlockBytes}}).has_value());
  const auto on_demand = place_loads(p.schedule, {}, {.arena = {0, 4 * kBlockBytes}, .preload = false});
  REQUIRE(on_demand.has_value());
  CHECK(on_demand->gates == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(on_demand->height == kBlockBytes);
}

TEST_CASE("the latency model takes the longer of arithmetic and traffic") {
  profiler::DeviceProfile profile;
  profile.flops_per_second = 10;
  profile.depthwise_flops_per_second = 1;
  profile.memory_bytes_per_second = 100;
  profile.step_overhead_seconds = 1;
  model::Node node;
  CHECK(profiler::step_seconds(profile, {}, node, {.flops = 50, .input_bytes = 100}) == Approx(6));
  CHECK(profiler::step_seconds(profile, {}, node, {.flops = 5, .input_bytes = 100, .output_bytes = 50, .weight_bytes = 50}) == Approx(3));
  node.attributes = model::ConvAttributes{{}, 8, 8, 8};
  CHECK(profiler::step_seconds(profile, {}, node, {.flops = 50}) == Approx(51));
}

}  // namespace
}  // namespace sluice::planner
