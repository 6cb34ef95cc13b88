// Parts of a graph: which tensors become their ports.
#include "sluice/model/part.h"

#include <catch2/catch.hpp>

#include "tests/planner/nets.h"

namespace sluice::model {

TEST_CASE("an output of the graph that another part reads leaves its own part twice, and enters the other as the nodes have it") {
  planner::NetBuilder net("middle");
  const TensorId first = net.relu(net.input({1, 4, 4, 16})), second = net.relu(first);
  net.output(first);
  net.output(second);
  Graph graph = net.finish();
  graph.outputs[0].perm = {0, 2, 3, 1};
  graph.outputs[0].onnx_shape = Shape{1, 16, 4, 4};

  const auto before = part_of(graph, 0, 1), after = part_of(graph, 1, 1), whole = part_of(graph, 0, 2);
  REQUIRE(before);
  REQUIRE(after);
  REQUIRE(whole);
  CHECK(before->outputs == std::vector{first, first});
  CHECK(before->graph.outputs[0].perm == graph.outputs[0].perm);
  CHECK(before->graph.outputs[1].onnx_shape == graph.tensor(first).shape);
  CHECK(after->graph.inputs[0].onnx_shape == graph.tensor(first).shape);
  CHECK(after->inputs == std::vector{first});
  CHECK(after->outputs == std::vector{second});
  CHECK(whole->outputs == std::vector{first, second});
}

}  // namespace sluice::model
