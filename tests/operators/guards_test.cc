#include "sluice/operators/guards.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace sluice;
using namespace sluice::operators;

namespace {

/// Adds tensors and nodes of a graph of scalars.
struct Builder {
  model::Graph graph;

  TensorId tensor(DType dtype) {
    graph.tensors.push_back({.name = "t", .dtype = dtype, .shape = Shape{1}});
    return TensorId(graph.tensors.size() - 1);
  }
  TensorId input(DType dtype) {
    const TensorId id = tensor(dtype);
    graph.inputs.push_back({.name = "i", .tensor = id, .onnx_shape = Shape{1}});
    return id;
  }
  TensorId node(std::vector<TensorId> inputs, DType dtype = DType::kF32, std::uint16_t op = 0) {
    model::Node node;
    node.op = model::OpKind::kPlain;
    node.attributes = model::PlainAttributes{op, 0, 7, {}};
    node.inputs = std::move(inputs);
    const TensorId made = tensor(dtype);
    node.outputs = {made};
    graph.nodes.push_back(std::move(node));
    return made;
  }
  TensorId choose(TensorId condition, TensorId yes, TensorId no) { return node({condition, yes, no}, DType::kF32, kChoose); }
  void output(TensorId id) { graph.outputs.push_back({.name = "o", .tensor = id, .onnx_shape = Shape{1}}); }
};

bool is_choose(const model::Node& node) { return std::get<model::PlainAttributes>(node.attributes).op == kChoose; }

/// By node: is it computed when each Choose asks for its condition and what it takes?
std::vector<bool> needed(const model::Graph& graph, const std::vector<bool>& truth) {
  std::vector<bool> wanted(graph.tensors.size(), false), nodes(graph.nodes.size(), false);
  for (const model::Port& port : graph.outputs) wanted[port.tensor.index()] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const model::Node& node = graph.nodes[n];
    if (!wanted[node.outputs[0].index()]) continue;
    nodes[n] = true;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!is_choose(node) || i == 0 || (i == 1) == truth[node.inputs[0].index()]) wanted[node.inputs[i].index()] = true;
  }
  return nodes;
}

bool met(const Guards& guards, std::uint32_t guard, const std::vector<bool>& truth) {
  for (; guard != kAlways; guard = guards.guards[guard].around)
    if (truth[guards.guards[guard].condition.index()] != guards.guards[guard].wanted) return false;
  return true;
}

}  // namespace

TEST_CASE("a node is guarded by the side that all its uses lead to") {
  Builder b;
  const TensorId x = b.input(DType::kF32), c = b.input(DType::kBool);
  const TensorId both = b.node({x}), yes = b.node({both}), then = b.node({yes}), no = b.node({both});
  b.output(b.choose(c, then, no));
  const Guards guards = find_guards(b.graph);
  REQUIRE(guards.guards.size() == 3);
  CHECK(guards.of_node[0] == kAlways);
  CHECK(guards.of_node[1] == guards.of_node[2]);
  CHECK(guards.guards[guards.of_node[1]].wanted);
  CHECK(guards.guards[guards.of_node[1]].condition == c);
  CHECK_FALSE(guards.guards[guards.of_node[3]].wanted);
  CHECK(guards.of_node[4] == kAlways);
}

TEST_CASE("what comes before the condition, or is asked for outside, always runs; a graph without a choice has no guards") {
  Builder b;
  const TensorId x = b.input(DType::kF32);
  const TensorId early = b.node({x}), c = b.node({x}, DType::kBool), seen = b.node({x}), no = b.node({x});
  b.output(b.choose(c, early, b.node({seen, no})));
  b.output(seen);
  const Guards guards = find_guards(b.graph);
  CHECK(guards.of_node[0] == kAlways);
  CHECK(guards.of_node[2] == kAlways);
  CHECK(guards.of_node[3] != kAlways);
  Builder plain;
  plain.output(plain.node({plain.input(DType::kF32)}));
  CHECK(find_guards(plain.graph).empty());
}

TEST_CASE("two results of one If guard what both are made of") {
  Builder b;
  const TensorId x = b.input(DType::kF32), c = b.input(DType::kBool);
  const TensorId shared = b.node({x}), first = b.node({shared}), second = b.node({shared});
  b.output(b.choose(c, first, x));
  b.output(b.choose(c, second, x));
  const Guards guards = find_guards(b.graph);
  for (std::size_t n = 0; n < 3; ++n) CHECK(guards.of_node[n] == guards.of_node[0]);
  CHECK(guards.of_node[0] != kAlways);
}

TEST_CASE("in random graphs a node runs whenever it is needed, with what it reads, and conditions come first") {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  std::size_t spared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Builder b;
    std::vector<TensorId> values = {b.input(DType::kF32)}, conditions = {b.input(DType::kBool)};
    for (int n = 0; n < 24; ++n) {
      const TensorId some = values[pick(values.size())], other = values[std::max(pick(values.size()), pick(values.size()))];
      const std::size_t kind = pick(4);
      if (kind == 0)
        conditions.push_back(b.node({some}, DType::kBool));
      else
        values.push_back(kind == 1 ? b.choose(conditions[pick(conditions.size())], some, other) : b.node({some, other}));
    }
    b.output(values.back());
    const Guards guards = find_guards(b.graph);
    if (guards.empty()) continue;
    for (std::size_t n = 0; n < b.graph.nodes.size(); ++n)
      for (std::uint32_t g = guards.of_node[n]; g != kAlways; g = guards.guards[g].around) {
        CHECK(guards.guards[g].around < g);
        const TensorId condition = guards.guards[g].condition;
        const auto maker =
            std::find_if(b.graph.nodes.begin(), b.graph.nodes.end(), [&](const model::Node& node) { return node.outputs[0] == condition; });
        CHECK((maker == b.graph.nodes.end() || static_cast<std::size_t>(maker - b.graph.nodes.begin()) < n));
      }
    for (int assignment = 0; assignment < 16; ++assignment) {
      std::vector<bool> truth(b.graph.tensors.size());
      for (const TensorId condition : conditions) truth[condition.index()] = pick(2) == 1;
      const std::vector<bool> wanted = needed(b.graph, truth);
      for (std::size_t n = 0; n < wanted.size(); ++n) {
        const bool runs = met(guards, guards.of_node[n], truth);
        CHECK((runs || !wanted[n]));
        spared += runs ? 0 : 1;
      }
    }
  }
  CHECK(spared > 1000);
}

TEST_CASE("choices nested deeper than a guard can say run with what is around them") {
  Builder b;
  const TensorId x = b.input(DType::kF32);
  std::vector<TensorId> conditions;
  for (int i = 0; i < 200; ++i) conditions.push_back(b.input(DType::kBool));
  TensorId value = b.node({x});
  for (const TensorId condition : conditions) value = b.choose(condition, b.node({value}), x);
  b.output(value);
  const Guards guards = find_guards(b.graph);
  CHECK(guards.guards[guards.of_node[0]].depth == 64);
  const std::vector<bool> all(b.graph.tensors.size(), true);
  for (std::size_t n = 0; n < b.graph.nodes.size(); ++n) CHECK(met(guards, guards.of_node[n], all));
}
