// What an open model takes of a budget: everything that its graph holds, whatever kind of model it is.
#include "src/engine/budget.h"

#include <catch2/catch.hpp>

#include "sluice/model/graph.h"
#include "tests/engine/fixture.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kMany = 1000;

/// What `add` makes a graph take more.
template <class Add>
std::uint64_t more(const Add& add) {
  model::Graph graph;
  graph.weights.resize(1);
  graph.quantisations.reserve(1);
  graph.subgraphs.reserve(1);
  graph.units.reserve(1);
  const Bytes before = graph_bytes(graph);
  add(graph);
  return (graph_bytes(graph) - before).count();
}

TEST_CASE("the ends of sparse panels, scales, bodies of loops and units count as the rest of a graph does") {
  CHECK(more([](model::Graph& graph) { graph.weights[0].panel_ends.resize(kMany); }) >= kMany * sizeof(std::uint32_t));
  CHECK(more([](model::Graph& graph) { graph.quantisations.push_back({.scales = std::vector<float>(kMany)}); }) >= kMany * sizeof(float));
  CHECK(more([](model::Graph& graph) { graph.subgraphs.push_back({.nodes = std::vector<model::Node>(kMany)}); }) >=
        kMany * sizeof(model::Node));
  CHECK(more([](model::Graph& graph) { graph.subgraphs.push_back({.tensors = std::vector<model::Tensor>(kMany)}); }) >=
        kMany * sizeof(model::Tensor));
  CHECK(more([](model::Graph& graph) { graph.units.push_back({.inputs = std::vector<TensorId>(kMany)}); }) >= kMany * sizeof(TensorId));
}

TEST_CASE("the least process has room for the planning of a long graph") {
  const Fixture few, many({.rows = 2, .widths = std::vector<std::int64_t>(900, 16)});
  const auto floor = [](const Fixture& fixture, planner::Partition partition, const plan::Plan* plan = nullptr,
                        double max_overhead = 0.05) {
    SessionOptions options{.scope = BudgetScope::kProcess, .plan = plan};
    options.tuning.partition = partition;
    options.tuning.max_overhead = max_overhead;
    return budget_of(*fixture.model, {}, {}, options);
  };
  using planner::Partition;
  const Bytes least = least_process(false);
  const std::size_t nodes = many.model->graph().nodes.size();
  REQUIRE(nodes > 890);
  for (const Partition partition : {Partition::kAuto, Partition::kOff, Partition::kLeast}) CHECK(floor(few, partition) == least);
  CHECK(floor(many, Partition::kOff) >= least + Bytes((nodes - 750) * 2600));  // by which chains of 3,000 convolutions were above
  CHECK(floor(many, Partition::kAuto) >= least + Bytes((nodes - 750) * 3200));
  CHECK(floor(many, Partition::kLeast) >= floor(many, Partition::kAuto) + Bytes((nodes - 400) * 2600));
  CHECK(floor(many, Partition::kLeast, nullptr, 4) > floor(many, Partition::kLeast));
  const plan::Plan given;
  CHECK(floor(many, Partition::kAuto, &given) == least);
}

}  // namespace
}  // namespace sluice::engine
