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

}  // namespace sluice::planner
