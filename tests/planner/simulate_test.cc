#include "sluice/planner/stream/simulate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "sluice/planner/place/place_loads.h"
#include "sluice/planner/stream/fluid.h"
#include "sluice/planner/stream/load_sides.h"
#include "sluice/planner/stream/trim.h"
#include "tests/planner/pipeline.h"

namespace sluice::planner {
namespace {

TEST_CASE("loads hide behind steps as far as gates allow") {
  const Pipeline p({1, 1, 1});
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).seconds() == Approx(4));  // only the first load shows
  CHECK(simulate(p.schedule, p.costs, {0, 1, 2}, Run::kPrologue).seconds() == Approx(6));  // on demand: one after the other
  CHECK(simulate(p.schedule, p.costs, {0, 0, 1}, Run::kPrologue).seconds() == Approx(4));
}

TEST_CASE("a slow load stalls, and the loader works ahead behind a slow step") {
  Pipeline p({1, 3, 0.5});
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).seconds() == Approx(6));
  p.costs.step[0] = 5;
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).seconds() == Approx(8));
}

TEST_CASE("resident loads run in the prologue only") {
  Pipeline p({2, 1, 1});
  p.schedule.loads[0].resident = true;
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).seconds() == Approx(5));
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPeriod).seconds() == Approx(3));
  CHECK(reading_seconds(p.schedule, p.costs, Run::kPrologue) == Approx(4));
  CHECK(reading_seconds(p.schedule, p.costs, Run::kPeriod) == Approx(2));
}

TEST_CASE("decoding is a lane of its own") {
  Pipeline p({1, 1, 1});
  p.costs.decode = {2, 2, 2};
  // Reads end at 1, 2, 3; decodes at 3, 5, 7; steps at 4, 6, 8.
  CHECK(simulate(p.schedule, p.costs, {0, 0, 0}, Run::kPrologue).seconds() == Approx(8));
}

TEST_CASE("a wrapped load hides behind the run before") {
  const Pipeline p({1, 1, 1});
  // Everything read just before its step: only the very first run waits.
  CHECK(simulate(p.schedule, p.costs, {-1, 0, 1}, Run::kPrologue).seconds() == Approx(4));
  CHECK(simulate(p.schedule, p.costs, {-1, 0, 1}, Run::kPeriod).seconds() == Approx(3));
  CHECK(simulate(p.schedule, p.costs, {0, 0, 1}, Run::kPeriod).seconds() == Approx(4));
  // A disk that is slower than the steps decides the period, however early loads start.
  const Pipeline slow({2, 2, 2});
  CHECK(simulate(slow.schedule, slow.costs, {-2, -1, 0}, Run::kPeriod).seconds() == Approx(6));
}

TEST_CASE("fluid gates count bytes and nothing else") {
  const Pipeline p({1, 1, 1, 1});
  const std::vector<std::uint64_t> nothing(4, 0);
  const auto gates = [&](const std::vector<std::uint64_t>& fixed, std::uint64_t blocks) {
    return fluid_gates(p.schedule, fixed, blocks * kBlockBytes, Run::kPrologue, false).gates;
  };
  CHECK(gates(nothing, 4) == Gates{0, 0, 0, 0});
  CHECK(gates(nothing, 2) == Gates{0, 0, 1, 2});
  CHECK(gates(nothing, 1) == Gates{0, 1, 2, 3});
  CHECK(gates({0, 0, kBlockBytes, 0}, 2) == Gates{0, 0, 1, 3});
  CHECK_FALSE(fluid_gates(p.schedule, {0, 0, kBlockBytes, 0}, kBlockBytes, Run::kPrologue, false).fits);
}

TEST_CASE("a load that is still in use beside larger fixed buffers does not fit") {
  Pipeline p({1, 1, 1, 1});
  p.schedule.loads[0].uses = {0, 3};
  const std::vector<std::uint64_t> fixed = {0, 0, 2 * kBlockBytes, 0};
  CHECK(fluid_gates(p.schedule, fixed, 4 * kBlockBytes, Run::kPrologue, false).fits);
  CHECK_FALSE(fluid_gates(p.schedule, fixed, 3 * kBlockBytes, Run::kPrologue, false).fits);
  p.schedule.loads.pop_back();  // nor where no load comes after it
  p.schedule.loads.pop_back();
  p.schedule.loads.pop_back();
  CHECK_FALSE(fluid_gates(p.schedule, fixed, 2 * kBlockBytes, Run::kPeriod, true).fits);
}

TEST_CASE("fluid gates of a period go round") {
  const Pipeline p({1, 1, 1, 1});
  const std::vector<std::uint64_t> nothing(4, 0);
  CHECK(fluid_gates(p.schedule, nothing, 2 * kBlockBytes, Run::kPeriod, true).gates == Gates{-1, 0, 1, 2});
  CHECK(fluid_gates(p.schedule, nothing, kBlockBytes, Run::kPeriod, true).gates == Gates{0, 1, 2, 3});
  // A region is free again only after its last use: load k cannot begin before step k of the run before is over.
  CHECK(fluid_gates(p.schedule, nothing, 64 * kBlockBytes, Run::kPeriod, true).gates == Gates{-3, -2, -1, 0});
}

/// The definition: gates one by one, each the least that leaves no column over the room. O(loads * steps).
Gates plain_fluid_gates(const Schedule& schedule, const std::vector<std::uint64_t>& fixed, std::uint64_t room) {
  std::vector<std::uint64_t> used = fixed;
  Gates gates(schedule.loads.size(), 0);
  std::int64_t former = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    gates[k] = former;
    if (load.resident) continue;
    std::int64_t gate = load.uses.begin;
    while (gate > former && used[static_cast<std::size_t>(gate - 1)] + load.region_bytes() <= room) --gate;
    for (std::int64_t i = gate; i < load.uses.end; ++i) used[static_cast<std::size_t>(i)] += load.region_bytes();
    gates[k] = former = gate;
  }
  return gates;
}

/// A queue fits if each step's fixed bytes and the loads in use there do.
bool loads_in_use_fit(const Schedule& schedule, const std::vector<std::uint64_t>& fixed, std::uint64_t room) {
  std::vector<std::uint64_t> used = fixed;
  for (const LoadSpec& load : schedule.loads)
    for (std::int64_t i = load.uses.begin; i < load.uses.end; ++i)
      used[static_cast<std::size_t>(i)] += load.resident ? 0 : load.region_bytes();
  return *std::max_element(used.begin(), used.end()) <= room;
}

/// Loads of unlike sizes and uses beside fixed bytes of unlike heights.
Pipeline random_pipeline(std::mt19937& random, std::vector<std::uint64_t>& fixed) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  Pipeline p(std::vector<double>(3 + below(12), 0.0));
  const std::int64_t steps = p.schedule.step_count();
  std::int64_t first = 0;
  for (LoadSpec& load : p.schedule.loads) {
    load.payload.size = Bytes((1 + below(6)) * kBlockBytes);
    load.uses = {first, std::min<std::int64_t>(steps, first + 1 + static_cast<std::int64_t>(below(3)))};
    first = std::min<std::int64_t>(steps - 1, first + static_cast<std::int64_t>(below(3)));
    load.resident = below(8) == 0;
  }
  fixed.clear();
  for (std::int64_t i = 0; i < steps; ++i) fixed.push_back(below(8) * kBlockBytes);
  for (double& seconds : p.costs.load) seconds = 0.25 * static_cast<double>(1 + below(8));
  for (double& seconds : p.costs.step) seconds = 0.25 * static_cast<double>(1 + below(8));
  for (StepSpec& step : p.schedule.steps) step.loads_needed = 0;
  for (std::size_t k = 0; k < p.schedule.loads.size(); ++k) {
    StepSpec& step = p.schedule.steps[static_cast<std::size_t>(p.schedule.loads[k].uses.begin)];
    step.loads_needed = static_cast<std::uint32_t>(k + 1);
  }
  return p;
}

TEST_CASE("the sweep gives the gates of the definition, and trimming them costs no time") {
  std::mt19937 random(5);
  std::vector<std::uint64_t> fixed;
  std::size_t later = 0;
  for (int n = 0; n < 2000; ++n) {
    INFO("problem " << n);
    const Pipeline p = random_pipeline(random, fixed);
    const std::uint64_t room = (14 + static_cast<std::uint64_t>(n % 40)) * kBlockBytes;
    const FluidGates fluid = fluid_gates(p.schedule, fixed, room, Run::kPrologue, false);
    REQUIRE(fluid.fits == loads_in_use_fit(p.schedule, fixed, room));
    REQUIRE(fluid_gates(p.schedule, fixed, room, Run::kPeriod, true).fits == fluid.fits);
    if (!fluid.fits) continue;
    REQUIRE(fluid.gates == plain_fluid_gates(p.schedule, fixed, room));
    for (const Run run : {Run::kPrologue, Run::kPeriod}) {
      const bool wrap = run == Run::kPeriod;
      const FluidGates early = fluid_gates(p.schedule, fixed, room, run, wrap);
      const Timeline times = simulate(p.schedule, p.costs, early.gates, run);
      const Gates trimmed = trim_gates(p.schedule, p.costs, early.gates, times, run, {0.0, 0.0});
      for (std::size_t k = 0; k < trimmed.size(); ++k) {
        REQUIRE(trimmed[k] >= early.gates[k]);
        REQUIRE(trimmed[k] <= p.schedule.loads[k].uses.begin);
        later += trimmed[k] > early.gates[k] ? 1 : 0;
      }
      REQUIRE(simulate(p.schedule, p.costs, trimmed, run).seconds() <= times.seconds() + 1e-6);
      REQUIRE(times.seconds() <= simulate(p.schedule, p.costs, fluid.gates, run).seconds() + 1e-6);
    }
  }
  CHECK(later > 100);
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

TEST_CASE("a wrapped load keeps its place across the end of the run, and others keep off it") {
  const Pipeline p({1, 1, 1, 1});
  const PlaceRule rule{.arena = {0, 2 * kBlockBytes}, .least_gates = {-1, 0, 1, 2}};
  const auto placed = place_loads(p.schedule, {}, rule);
  REQUIRE(placed.has_value());
  CHECK(placed->gates == Gates{-1, 0, 1, 2});
  CHECK(placed->offsets[3] != placed->offsets[0]);
  CHECK(placed->offsets[1] != placed->offsets[0]);
}

TEST_CASE("a wrapped load lies on the side that its rule says, from the earliest gate at which that is free") {
  const Pipeline p({1, 1, 1, 1});
  PlaceRule rule{.arena = {0, 3 * kBlockBytes}, .least_gates = {-2, 0, 1, 2}};
  CHECK(place_loads(p.schedule, {}, rule)->offsets[0] == 0);
  rule.address = AddressRule::kHighest;
  CHECK(place_loads(p.schedule, {}, rule)->offsets[0] == 2 * kBlockBytes);
  rule.sides = {AddressRule::kLowest, AddressRule::kHighest, AddressRule::kHighest, AddressRule::kHighest};
  CHECK(place_loads(p.schedule, {}, rule)->offsets[0] == 0);
  // The top is taken in the head, the rest until the last step but one is over.
  Pipeline kept = p;
  kept.schedule.loads[2].resident = true;
  const std::vector<FixedRect> fixed{{{0, 1}, {2 * kBlockBytes, 3 * kBlockBytes}}, {{2, 3}, {0, 2 * kBlockBytes}}};
  const auto late =
      place_loads(kept.schedule, fixed, {.arena = {0, 3 * kBlockBytes}, .address = AddressRule::kHighest, .least_gates = {-2, 0, 1, 3}});
  REQUIRE(late);
  CHECK(late->gates[0] == -1);
  CHECK(late->offsets[0] == kBlockBytes);
}

TEST_CASE("the left extension moves gates as early as regions allow and keeps addresses") {
  const Pipeline p({1, 1, 1, 1});
  PlaceRule rule{.arena = {0, 2 * kBlockBytes}};
  rule.least_gates = {0, 1, 2, 3};
  const auto placed = place_loads(p.schedule, {}, rule);
  REQUIRE(placed.has_value());
  const LoadPlacement extended = extend_left(p.schedule, {}, rule, *placed);
  CHECK(extended.offsets == placed->offsets);
  for (std::size_t k = 0; k < 4; ++k) CHECK(extended.gates[k] <= placed->gates[k]);
}

TEST_CASE("the latency model takes the longer of arithmetic and traffic, and adds what comes from memory") {
  profiler::DeviceProfile profile;
  profile.flops_per_second = 10;
  profile.depthwise_flops_per_second = 1;
  profile.memory_bytes_per_second = 100;
  profile.step_overhead_seconds = 1;
  model::Node node;
  CHECK(profiler::step_seconds(profile, {}, node, kernels::CostFeatures{.flops = 50, .input_bytes = 100}) == Approx(6));
  CHECK(profiler::step_seconds(profile, {}, node,
                               kernels::CostFeatures{.flops = 5, .input_bytes = 100, .output_bytes = 60, .weight_bytes = 60}) == Approx(2));
  const std::uint64_t cache = 1 << 20;  // what is beyond it comes from memory, at a quarter of the speed
  CHECK(profiler::step_seconds(profile, {}, node, kernels::CostFeatures{.input_bytes = cache, .output_bytes = 300}) ==
        Approx(1 + static_cast<double>(cache) / 400 + 3));
  node.attributes = model::ConvAttributes{{}, 8, 8, 8};
  CHECK(profiler::step_seconds(profile, {}, node, kernels::CostFeatures{.flops = 50}) == Approx(51));
}

TEST_CASE("a load without an address makes those in its way come late") {
  // As early and as high as it can, load 1 lies in the middle of what load 2 needs while both are in use.
  Pipeline p({1, 1, 1});
  p.schedule.loads[1].uses = {1, 3};
  p.schedule.loads[2].payload.size = Bytes(2 * kBlockBytes);
  const auto blocks = [](std::uint64_t begin, std::uint64_t end) {
    return Interval<std::uint64_t>{begin * kBlockBytes, end * kBlockBytes};
  };
  const std::vector<FixedRect> fixed{{{0, 1}, blocks(0, 1)}, {{0, 1}, blocks(2, 3)}, {{2, 3}, blocks(3, 4)}};
  PlaceRule rule{.arena = blocks(0, 4), .address = AddressRule::kHighest, .least_gates = {0, 0, 0}};
  REQUIRE_FALSE(place_loads(p.schedule, fixed, rule));
  std::uint64_t work = 0;
  const auto placed = place_loads_late(p.schedule, fixed, rule, work);
  REQUIRE(placed);
  CHECK(work > 0);
  for (std::size_t a = 0; a < 3; ++a) {
    const auto region = [&](std::size_t k) {
      return Interval<std::uint64_t>{placed->offsets[k], placed->offsets[k] + p.schedule.loads[k].region_bytes()};
    };
    const auto life = [&](std::size_t k) { return Interval<std::int64_t>{placed->gates[k], p.schedule.loads[k].uses.end}; };
    CHECK(region(a).end <= 4 * kBlockBytes);
    for (std::size_t b = 0; b < a; ++b) CHECK_FALSE((region(a).overlaps(region(b)) && life(a).overlaps(life(b))));
    for (const FixedRect& rect : fixed) CHECK_FALSE((region(a).overlaps(rect.bytes) && life(a).overlaps(rect.time)));
  }
}

TEST_CASE("loads that change sides never make a run longer, and often shorter than any one side for all does") {
  std::mt19937 random(7);
  int shorter = 0;
  for (int n = 0; n < 60; ++n) {
    Pipeline p(std::vector<double>(24, 0.0));
    for (std::size_t k = 0; k < p.schedule.loads.size(); ++k) {
      p.schedule.loads[k].payload.size = Bytes((1 + random() % 6) * kBlockBytes);
      p.costs.load[k] = 0.3 * static_cast<double>(p.schedule.loads[k].region_bytes() / kBlockBytes);
    }
    constexpr std::uint64_t kRoom = 13 * kBlockBytes;
    const Gates fluid = fluid_gates(p.schedule, std::vector<std::uint64_t>(24, 0), kRoom, Run::kPeriod, false).gates;
    const Timeline bound = simulate(p.schedule, p.costs, fluid, Run::kPeriod);
    double one_side = 1e9, sides = 1e9;
    for (const AddressRule address : {AddressRule::kLowest, AddressRule::kHighest}) {
      const PlaceRule rule{.arena = {0, kRoom}, .address = address, .least_gates = fluid};
      auto placed = place_loads(p.schedule, {}, rule);
      if (!placed) continue;
      const double before = simulate(p.schedule, p.costs, placed->gates, Run::kPeriod).seconds();
      std::uint64_t work = 0;
      const std::vector<FixedRect> none;
      const SearchParameters parameters;
      detail::SideSearch search(p.schedule, p.costs, none, Run::kPeriod, parameters);
      const LoadPlacement turned = search.improve(rule, std::move(*placed), bound, bound.seconds(), 1, 1u << 22, work);
      const double after = simulate(p.schedule, p.costs, turned.gates, Run::kPeriod).seconds();
      CHECK(after <= before);
      CHECK(after >= bound.seconds() - 1e-9);
      one_side = std::min(one_side, before);
      sides = std::min(sides, after);
      for (std::size_t a = 0; a < 24; ++a)
        for (std::size_t b = 0; b < a; ++b) {
          const auto end = [&](std::size_t k) { return turned.offsets[k] + p.schedule.loads[k].region_bytes(); };
          const bool in_time = turned.gates[a] < p.schedule.loads[b].uses.end && turned.gates[b] < p.schedule.loads[a].uses.end;
          CHECK_FALSE((in_time && turned.offsets[a] < end(b) && turned.offsets[b] < end(a)));
          CHECK(end(a) <= kRoom);
        }
    }
    shorter += sides < one_side * 0.99 ? 1 : 0;
  }
  CHECK(shorter >= 15);
}

}  // namespace
}  // namespace sluice::planner
