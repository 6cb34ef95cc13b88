// What the XNNPACK backend says that it supports, it prepares: a unit whose node it then refuses ends the whole scheduler.
#include <catch2/catch.hpp>
#include <limits>

#include "src/backends/xnnpack.h"
#include "tests/planner/nets.h"

namespace sluice::backends {
namespace {

model::Graph clipped(float least, float most) {
  planner::NetBuilder net("clipped");
  const TensorId x = net.relu(net.input({1, 4, 4, 16}));
  net.last_node().epilogue.activation = {.function = Function::kClip, .a = least, .b = most};
  net.output(x);
  return net.finish();
}

model::Graph convolution() {
  planner::NetBuilder net("convolution");
  net.output(net.conv(net.input({1, 4, 4, 16}), {.channels = 16}));
  return net.finish();
}

}  // namespace

TEST_CASE("XNNPACK is given no clamp to a single value or to none") {
  const auto backend = make_xnnpack_backend();
  REQUIRE(backend);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [least, most, supported] :
       {std::tuple(0.0f, 6.0f, true), std::tuple(-kInfinity, 1.0f, true), std::tuple(1.0f, 1.0f, false), std::tuple(1.0f, -1.0f, false)}) {
    CAPTURE(least, most);
    const model::Graph graph = clipped(least, most);
    CHECK(backend->supports(graph, graph.nodes[0]) == supported);
  }
}

TEST_CASE("XNNPACK reads no weights that are encrypted") {
  const auto backend = make_xnnpack_backend();
  REQUIRE(backend);
  model::Graph graph = convolution();
  CHECK(backend->supports(graph, graph.nodes[0]));
  graph.tags.resize(graph.stretches.size());
  CHECK_FALSE(backend->supports(graph, graph.nodes[0]));
}

}  // namespace sluice::backends
