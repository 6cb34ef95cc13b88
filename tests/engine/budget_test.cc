// What an open model takes of a budget: everything that its graph holds, whatever kind of model it is.
#include "src/engine/budget.h"

#include <catch2/catch.hpp>

#include "sluice/model/graph.h"

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

}  // namespace
}  // namespace sluice::engine
