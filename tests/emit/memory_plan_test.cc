// The memory plan of emission: rings as small as windows allow, whole tensors where nothing else works, limits that are kept.
#include "sluice/emit/memory_plan.h"

#include <catch2/catch.hpp>

#include "sluice/emit/walk.h"

using namespace sluice;
using namespace sluice::emit;

namespace {

/// A chain of 3x3 windows, pad 1, over rows x pixels x channels of bytes, by their strides.
Network chain(std::int64_t rows, std::int64_t pixels, std::int64_t channels, const std::vector<std::int64_t>& strides) {
  Network network;
  RowExtents extents{rows, pixels, channels};
  const auto add = [&](Stage stage) {
    stage.out = stage.walked = extents;
    stage.storage = network.storages.size();
    network.storages.push_back({.name = std::to_string(network.stages.size()),
                                .dtype = DType::kU8,
                                .elements = extents.rows * extents.pixels * extents.channels,
                                .maker = network.stages.size()});
    network.stages.push_back(std::move(stage));
  };
  add({.whole_rows = true});
  for (const std::int64_t stride : strides) {
    const std::size_t input = network.storages.size() - 1;
    network.storages[input].readers = {network.stages.size()};
    StageInput from{.storage = input, .view = extents};
    from.reach = Reach{{.stride = stride, .ahead = 1, .behind = 1, .extent = extents.rows},
                       {.stride = stride, .ahead = 1, .behind = 1, .extent = extents.pixels}};
    extents.rows = (extents.rows + stride - 1) / stride;
    extents.pixels = (extents.pixels + stride - 1) / stride;
    const std::int64_t macs = extents.rows * extents.pixels * channels * channels * 9;
    add({.kernel = Kernel::kConvU8, .inputs = {from}, .macs = static_cast<std::uint64_t>(macs)});
    network.macs += network.stages.back().macs;
  }
  network.storages.back().is_output = true;
  return network;
}

}  // namespace

TEST_CASE("a ring of pixels is two rows and three pixels of a 3x3 window, a ring of rows three rows") {
  const Network network = chain(20, 16, 4, {1, 1});
  Walk pixels(network, {0, 3, 1});
  pixels.run();
  CHECK(pixels.alive(1) == (2 * 16 + 3) * 4);
  Walk rows(network, {0, 3, 0});
  rows.run();
  CHECK(rows.alive(1) == 3 * 16 * 4);
}

TEST_CASE("a tensor that dies may lie over the one that is made from it, as far as its rows have been read") {
  const Network network = chain(20, 16, 4, {1, 1});
  Walk walk(network, {2, 3, 0});
  walk.watch(1, 2);
  walk.run();
  // When row y is written, row y - 1 of what is read is still wanted.
  CHECK(walk.overlaps()[0].distance == 2 * 16 * 4);
}

TEST_CASE("the least arena is near the bound, and a limit is kept") {
  const Network network = chain(64, 64, 8, {1, 2, 1, 2, 1, 2});
  const MemoryPlan least = plan_smallest(network);
  CHECK(least.arena_bytes >= least.lower_bound_bytes);
  CHECK(least.arena_bytes <= least.lower_bound_bytes + 512);
  for (std::uint64_t limit = least.arena_bytes; limit < 300'000; limit = limit * 3 / 2) {
    const auto plan = plan_memory(network, {.arena_bytes = limit});
    REQUIRE(plan);
    CHECK(plan->arena_bytes <= limit);
  }
  const auto refused = plan_memory(network, {.arena_bytes = least.arena_bytes - 1});
  REQUIRE(!refused);
  CHECK(refused.error().needed == least.arena_bytes);
}

TEST_CASE("with all the RAM that it wants, no stage runs in pieces of pixels") {
  const auto plan = plan_memory(chain(64, 64, 8, {1, 2, 1, 2}), {.arena_bytes = 1 << 24});
  REQUIRE(plan);
  for (const Region& region : plan->regions) {
    CHECK(region.granule == 0);
    CHECK(region.last - region.first == 1);
  }
}

TEST_CASE("two strips of a 3x3 window over another one compute the columns between them twice, and rings are as wide as a strip") {
  const Network network = chain(20, 16, 4, {1, 1});
  const Region region{1, 3, 1, 2};
  REQUIRE(Strips::possible(network, region));
  const Strips strips(network, region);
  CHECK(strips.columns(0, 2) == Interval<std::int64_t>{0, 8});
  CHECK(strips.columns(1, 2) == Interval<std::int64_t>{8, 16});
  CHECK(strips.columns(0, 1) == Interval<std::int64_t>{0, 9});
  CHECK(strips.columns(1, 1) == Interval<std::int64_t>{7, 16});
  CHECK(strips.macs() == network.macs + network.stages[1].macs / 16 * 2);
  Walk walk(network, region);
  walk.run();
  CHECK(walk.alive(1) == (2 * 9 + 3) * 4);
}

TEST_CASE("multiply-adds buy RAM as far as they may, and none are spent where the RAM is enough without") {
  const Network network = chain(64, 64, 8, {1, 2, 1, 2, 1, 2});
  const MemoryPlan least = plan_smallest(network);
  CHECK(least.macs == network.macs);
  std::uint64_t before = least.arena_bytes;
  for (const std::uint64_t percent : {5, 20, 50}) {
    const std::uint64_t extra = network.macs * percent / 100;
    const MemoryPlan plan = plan_smallest(network, extra);
    INFO(percent << " %: " << plan.arena_bytes << " B, multiply-adds " << plan.macs << " of " << network.macs);
    CHECK(plan.macs <= network.macs + extra);
    CHECK(plan.arena_bytes <= before);
    before = plan.arena_bytes;
    const auto enough = plan_memory(network, {.arena_bytes = least.arena_bytes, .extra_macs = extra});
    REQUIRE(enough);
    CHECK(enough->macs == network.macs);
    const auto refused = plan_memory(network, {.arena_bytes = plan.arena_bytes - 1, .extra_macs = extra});
    REQUIRE(!refused);
    CHECK(refused.error().needed == plan.arena_bytes);
  }
  CHECK(before < least.arena_bytes * 9 / 10);
}

TEST_CASE("strips are not for folds, nor for what finds pixels by addresses of its own") {
  Network network = chain(20, 16, 4, {1, 1});
  CHECK(Strips::possible(network, {1, 3, 1, 16}));
  CHECK(!Strips::possible(network, {1, 3, 1, 17}));
  network.stages[1].folds = true;
  CHECK(!Strips::possible(network, {1, 3, 1, 2}));
  network.stages[1].folds = false;
  network.stages[1].kernel = Kernel::kCopy;
  CHECK(!Strips::possible(network, {1, 3, 1, 2}));
  CHECK(Strips::possible(network, {2, 3, 1, 2}));
}
