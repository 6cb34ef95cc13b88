// Runs plans in bands: the same bits as whole, for every number of bands and threads, and nothing touched between the buffers.
#include <catch2/catch.hpp>

#include "tests/planner/nets.h"
#include "tests/property/filled_run.h"
#include "tests/property/forced_bands.h"

namespace sluice::planner {
namespace {

/// Every kind of neighbour: 3x3 and 1x1, strides, depthwise, residuals in place, pooling, elementwise, dense rows.
model::Graph image_net() {
  NetBuilder net("image");
  TensorId x = net.conv(net.input({1, 21, 18, 3}), {.channels = 24, .kernel = 3, .stride = 2});
  x = net.conv(x, {.channels = 48});
  x = net.conv(x, {.channels = 48, .kernel = 3, .groups = 48});
  x = net.conv(x, {.channels = 24});
  TensorId y = net.conv(net.conv(x, {.channels = 40}), {.channels = 40, .kernel = 3, .groups = 40});
  x = net.conv(y, {.channels = 24, .residual = x});
  x = net.conv(net.conv(x, {.channels = 32, .kernel = 3}), {.channels = 24, .kernel = 3, .residual = x});
  x = net.pool(net.relu(net.conv(x, {.channels = 32, .kernel = 5})), 3, 2, 1);
  net.output(net.dense(net.reshape(x, {1, net.shape(x).element_count()}), 10));
  return net.finish();
}

model::Graph winograd_net() {
  NetBuilder net("winograd");
  TensorId x = net.conv(net.input({2, 19, 13, 16}), {.channels = 32, .kernel = 3});
  net.last_node().numeric = model::NumericClass::kWinograd4;
  x = net.conv(x, {.channels = 48, .kernel = 3});
  net.last_node().numeric = model::NumericClass::kWinograd4;
  x = net.conv(x, {.channels = 32, .kernel = 3});
  net.output(net.pool(x, 2, 2));
  return net.finish();
}

model::Graph row_net() {
  NetBuilder net("rows");
  const TensorId x = net.relu(net.input({1, 37, 48}));
  const TensorId hidden = net.softmax(net.dense(net.dense(x, 96), 80));
  net.output(net.binary(net.dense(hidden, 48), x));
  return net.finish();
}

/// A dense block: each layer reads all that were made before it.
model::Graph joining_net() {
  NetBuilder net("joins");
  std::vector<TensorId> made{net.conv(net.input({1, 19, 12, 3}), {.channels = 24, .kernel = 3})};
  for (int layer = 0; layer < 3; ++layer) {
    const TensorId all = made.size() == 1 ? made[0] : net.concat(made, 3);
    made.push_back(net.conv(net.conv(net.relu(all), {.channels = 40}), {.channels = 16, .kernel = 3}));
  }
  net.output(net.pool(net.conv(net.concat(made, 3), {.channels = 32}), 2, 2));
  return net.finish();
}

/// An encoder and a decoder, with what the first map keeps for the last.
model::Graph skipping_net() {
  NetBuilder net("skips");
  const TensorId top = net.conv(net.input({1, 16, 12, 3}), {.channels = 16, .kernel = 3});
  const TensorId low = net.conv(net.pool(top, 2, 2), {.channels = 48, .kernel = 3});
  const TensorId up = net.conv_transpose(low, 16);
  net.output(net.conv(net.conv(net.concat({top, up}, 3), {.channels = 24, .kernel = 3}), {.channels = 16}));
  return net.finish();
}

/// A layer of an encoder: queries go by rows, keys and values are read whole.
model::Graph attending_net() {
  NetBuilder net("attends");
  const TensorId x = net.relu(net.input({1, 37, 48}));
  const TensorId k = net.dense(x, 48), v = net.dense(x, 48), q = net.dense(x, 48);
  const TensorId y = net.binary(net.dense(net.attention(q, k, v, 3), 48), x);
  net.output(net.dense(net.relu(net.dense(y, 144)), 48));
  return net.finish();
}

/// Each run of nodes as a region, in several numbers of bands, weights held and read again.
void check_regions(const model::Graph& graph) {
  INFO(graph.name);
  const Filled model(graph);
  const std::vector<std::byte> expected = run(model, ForcedBands(model.graph, 1).plan({}, 1 << 20), 1);
  std::size_t plans = 0, rings = 0;
  for (const int threads : {1, 2}) {
    const ForcedBands bands(model.graph, threads);
    for (std::size_t first = 0; first < graph.nodes.size(); first += 2) {
      for (std::size_t end = first + 2; end <= graph.nodes.size(); end += 3) {
        for (const std::int64_t count : {2, 5, 100}) {
          for (const std::uint64_t above : {std::uint64_t{1} << 40, std::uint64_t{0}}) {
            INFO(threads << " threads, nodes " << first << " to " << end << " in " << count << " bands, read again above " << above);
            const auto plan = bands.plan_region(Region{first, end, count, true, above}, above == 0 ? 1 : 1 << 20);
            if (!plan) continue;
            ++plans;
            for (const plan::TensorPlacement& t : plan->tensors) rings += t.ring_rows > 0 ? 1 : 0;
            REQUIRE(run(model, *plan, threads) == expected);
          }
        }
      }
    }
  }
  CHECK(plans >= 20);
  CHECK(rings >= 20);
}

void check_same_bits(const model::Graph& graph) {
  INFO(graph.name);
  const Filled model(graph);
  std::vector<std::byte> expected;
  for (const int threads : {1, 3}) {
    const ForcedBands bands(model.graph, threads);
    const std::vector<std::byte> whole = run(model, bands.plan({}, 1 << 20), threads);
    if (expected.empty()) expected = whole;
    CHECK(whole == expected);
    std::size_t rings = 0;
    for (const std::int64_t count : {2, 3, 7, 1000}) {
      for (const std::size_t longest : {2, 3, 6, 20}) {
        INFO(threads << " threads, " << count << " bands, chains of up to " << longest);
        const std::vector<Banded> chains = bands.chains(longest % 2, longest, count);
        rings += ForcedBands::rings(chains);
        CHECK(run(model, bands.plan(chains, longest == 3 ? 1 : 1 << 20), threads) == expected);
      }
    }
    CHECK(rings >= 10);
  }
}

}  // namespace

TEST_CASE("bands of image networks give the same bits as whole maps") {
  check_same_bits(image_net());
  check_same_bits(winograd_net());
}

TEST_CASE("bands of rows give the same bits as whole matrices") { check_same_bits(row_net()); }

TEST_CASE("regions with joins, skips and residuals give the same bits as whole maps") {
  check_regions(joining_net());
  check_regions(skipping_net());
  check_regions(image_net());
  check_regions(winograd_net());
}

TEST_CASE("regions with an attention give the same bits as whole matrices") { check_regions(attending_net()); }

}  // namespace sluice::planner
