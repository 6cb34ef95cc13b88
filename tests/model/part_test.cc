// Parts of a graph: which tensors become their ports.
#include "sluice/model/part.h"

#include <catch2/catch.hpp>

#include "tests/planner/nets.h"

namespace sluice::model {

TEST_CASE("an output of the graph that a part reads is an input of that part, and no output") {
  planner::NetBuilder net("middle");
  const TensorId first = net.relu(net.input({1, 4, 4, 16})), second = net.relu(first);
  net.output(first);
  net.output(second);
  const Graph graph = net.finish();

  const auto before = part_of(graph, 0, 1), after = part_of(graph, 1, 1), whole = part_of(graph, 0, 2);
  REQUIRE(before);
  REQUIRE(after);
  REQUIRE(whole);
  CHECK(before->outputs == std::vector{first});
  CHECK(after->inputs == std::vector{first});
  CHECK(after->outputs == std::vector{second});
  CHECK(whole->outputs == std::vector{first, second});
}

}  // namespace sluice::model
