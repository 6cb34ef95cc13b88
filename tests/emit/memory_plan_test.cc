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
    add({.kernel = Kernel::kConvU8, .inputs = {from}});
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
    const auto plan = plan_memory(network, limit);
    REQUIRE(plan);
    CHECK(plan->arena_bytes <= limit);
  }
  const auto refused = plan_memory(network, least.arena_bytes - 1);
  REQUIRE(!refused);
  CHECK(refused.error().needed == least.arena_bytes);
}

TEST_CASE("with all the RAM that it wants, no stage runs in pieces of pixels") {
  const auto plan = plan_memory(chain(64, 64, 8, {1, 2, 1, 2}), 1 << 24);
  REQUIRE(plan);
  for (const Region& region : plan->regions) {
    CHECK(region.granule == 0);
    CHECK(region.last - region.first == 1);
  }
}
