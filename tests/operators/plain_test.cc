// What operators of the long tail are said to cost.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/operators/cost.h"
#include "sluice/operators/generic.h"

using namespace sluice;
using namespace sluice::operators;

namespace {

/// One plain node of this operator, of a first input of f32 and others of i64.
model::Graph plain_graph(std::string_view op, const Shape& first, const std::vector<Shape>& others, const Shape& out) {
  model::Graph graph;
  model::Node node;
  node.op = model::OpKind::kPlain;
  node.attributes = model::PlainAttributes{find_plain(op)->number, 0, (1u << (1 + others.size())) - 1, {}};
  const auto add = [&](DType dtype, const Shape& shape) {
    graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), dtype, shape, {}});
    return TensorId(graph.tensors.size() - 1);
  };
  node.inputs = {add(DType::kF32, first)};
  for (const Shape& shape : others) node.inputs.push_back(add(DType::kI64, shape));
  node.outputs = {add(DType::kF32, out)};
  graph.nodes.push_back(node);
  return graph;
}

CostFeatures plain_cost(const model::Graph& graph, std::int64_t rows, std::int64_t channels) {
  return cost_of(graph, graph.nodes[0], {{0, rows}, {0, channels}, 1, false});
}

TEST_CASE("what looks values up reads no more of a table than it gives") {
  const model::Graph rows = plain_graph("Gather", {1000, 256}, {{128}}, {128, 256});
  constexpr std::uint64_t kGiven = 128 * 256 * sizeof(float), kPlaces = 128 * sizeof(std::int64_t);
  CHECK(plain_cost(rows, 128, 256).input_bytes == kGiven + kPlaces);
  CHECK(plain_cost(rows, 64, 256).input_bytes == (kGiven + kPlaces) / 2);
  // Of a table of fewer values it reads them all.
  const model::Graph repeated = plain_graph("GatherElements", {2, 256}, {{128, 256}}, {128, 256});
  CHECK(plain_cost(repeated, 128, 256).input_bytes == 2 * 256 * sizeof(float) + 128 * 256 * sizeof(std::int64_t));
  // Others read all that they are given.
  CHECK(plain_cost(plain_graph("Tile", {64, 64}, {{2}}, {128, 64}), 128, 64).input_bytes ==
        64 * 64 * sizeof(float) + 2 * sizeof(std::int64_t));
}

TEST_CASE("operators that look at each value of their input count them, and those of their output") {
  const model::Graph best = plain_graph("TopK", {100, 1000}, {{1}}, {100, 5});
  const std::uint64_t all = plain_cost(best, 100, 5).flops;
  CHECK(all >= 100 * 1000);
  CHECK(plain_cost(best, 50, 5).flops == all / 2);
  CHECK(plain_cost(plain_graph("TopK", {100, 1000}, {{1}}, {100, 500}), 100, 500).flops == all);
  const auto sampled = [](std::int64_t extent) {
    return plain_cost(plain_graph("GridSample", {1, 4, 8, 8}, {{1, extent, 8, 2}}, {1, 4, extent, 8}), 4, 8).flops;
  };
  CHECK(sampled(8) > 0);
  CHECK(sampled(16) == 2 * sampled(8));
}

TEST_CASE("the table of what operators take names operators that there are") {
  for (const std::string_view name : {"ModC", "Cast", "CumSum", "CumProd", "TopK", "Gather", "GatherElements", "GatherND", "GlobalLpPool",
                                      "GridSample", "RoiAlign", "NonZero", "NonMaxSuppression"}) {
    CAPTURE(name);
    REQUIRE(find_plain(name) != nullptr);
    const model::Graph graph = plain_graph(name, {16, 16}, {{16, 16}}, {16, 8});
    const CostFeatures cost = plain_cost(graph, 16, 8), usual = usual_cost_of(graph, graph.nodes[0], {{0, 16}, {0, 8}, 1, false});
    CHECK((cost.flops > 0 || cost.input_bytes < usual.input_bytes));
  }
}

}  // namespace
