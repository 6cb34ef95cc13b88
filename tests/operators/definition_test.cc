#include "sluice/operators/definition.h"

#include <catch2/catch.hpp>

#include "sluice/operators/validate.h"
#include "src/operators/node_check.h"
#include "tests/model/sample_graph.h"
#include "tests/operators/problems.h"

namespace walk_through {
using namespace sluice;
using namespace sluice::operators;
struct OpKind {  // as if it were appended
  static constexpr model::OpKind kGated{model::kOpKindCount};
};
#include "adding_a_definition.inc"
}  // namespace walk_through

namespace sluice::operators::test {

TEST_CASE("the table has one definition of each operator, whole and in its place") {
  CHECK(definitions().size() == static_cast<std::size_t>(model::kOpKindCount));
  for (std::size_t i = 0; i < definitions().size(); ++i) {
    const OperatorDefinition& definition = *definitions()[i];
    INFO(definition.name());
    CHECK(static_cast<std::size_t>(definition.kind) == i);
    CHECK(&definition_of(definition.kind) == &definition);
    CHECK(definition.validate != nullptr);
    CHECK(definition.infer != nullptr);
    CHECK(definition.relate_input != nullptr);
  }
}

TEST_CASE("shapes of outputs follow from inputs and attributes, but where the output itself decides") {
  for (const OpKind kind : declared_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 300);
    for (int round = 0; round < 20; ++round) {
      const Problem p = problems.of(kind);
      INFO(kernels::test::describe(p, kernels::reference_kernel(p.node().op, p.node().numeric), {}));
      const std::optional<Shape> inferred = infer_shape(p.graph, p.node());
      const bool open = kind == OpKind::kSlice || kind == OpKind::kReshape || kind == OpKind::kResize;
      CHECK(inferred.has_value() != open);
      if (inferred) CHECK(*inferred == p.output().shape);
    }
  }
  for (const OpKind kind : integer_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 600);
    const Problem p = problems.of_integers(kind);
    if (kind != OpKind::kResize) CHECK(infer_shape(p.graph, p.node()) == p.output().shape);
  }
}

TEST_CASE("no shape is inferred of what no attributes say, and none of other output is valid") {
  const model::Graph sample = model::sample_graph();
  for (const model::Node& node : sample.nodes) {
    INFO(node.name);
    CHECK(node.attributes.index() == definition_of(node.op).attributes);
    model::Graph graph = sample;
    model::Node broken = node;
    broken.attributes = model::SoftmaxAttributes{};
    if (node.op != OpKind::kSoftmax) CHECK_FALSE(infer_shape(graph, broken));
    broken = node;
    broken.inputs.clear();
    if (definition_of(node.op).inputs > 0) CHECK_FALSE(infer_shape(graph, broken));
    if (!infer_shape(graph, node)) continue;
    Shape& out = graph.tensors[node.outputs[0].index()].shape;
    REQUIRE(validate_node(graph, node));
    out[out.rank() - 1] += 1;
    CHECK_FALSE(validate_node(graph, node));
  }
}

TEST_CASE("what may be replaced in place is read where it is written, and elementwise operators read one place") {
  const auto at_one_place = [](const AxisRelations& axes, bool along_last) {
    for (int axis = 0; axis < axes.rank(); ++axis) {
      const bool last = along_last && axis + 1 == axes.rank() && axes[axis].kind == AxisKind::kReduced;
      if (axes[axis].kind != AxisKind::kSame && axes[axis].kind != AxisKind::kBroadcast && !last) return false;
    }
    return true;
  };
  for (const OpKind kind : declared_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 400);
    const OperatorDefinition& definition = definition_of(kind);
    for (int round = 0; round < 10; ++round) {
      const Problem p = problems.of(kind);
      INFO(definition.name());
      const Relations relations(p.graph, p.node());
      for (std::size_t i = 0; i < p.inputs.size(); ++i) {
        const bool in_place = definition.in_place == InPlace::kAny || (definition.in_place == InPlace::kFirst && i == 0);
        if (in_place || relations.is_residual(i)) CHECK(at_one_place(relations.input(i), true));
        if (definition.elementwise) CHECK(at_one_place(relations.input(i), false));
      }
    }
  }
}

TEST_CASE("validation takes the parts of an epilogue that a definition names, and no others") {
  const model::Graph sample = model::sample_graph();
  for (const model::Node& node : sample.nodes) {
    const EpilogueParts& takes = definition_of(node.op).epilogue;
    INFO(node.name);
    model::Node broken = node;
    broken.epilogue.activation.function = model::Function::kRelu;
    if (node.numeric == model::NumericClass::kInt8 && node.op == OpKind::kUnary) continue;  // a table has its function in it
    CHECK(validate_node(sample, broken).has_value() == takes.activation);
    broken = node;
    broken.epilogue.has_bias = true;
    if (!takes.bias) CHECK_FALSE(validate_node(sample, broken));
    broken = node;
    broken.epilogue.has_residual = true;
    if (!takes.residual) CHECK_FALSE(validate_node(sample, broken));
  }
}

TEST_CASE("the definition of docs/adding-an-operator.md") {
  const OperatorDefinition& gated = walk_through::kGated;
  model::GraphBuilder b;
  const TensorId in = b.tensor("in", {3, 8}), out = b.tensor("out", {3, 4});
  const model::Node node = b.node(OpKind::kUnary, {in}, out);
  CHECK(gated.infer(b.graph, node) == Shape{3, 4});
  const AxisRelations axes = gated.relate_input(b.graph, node, 0);
  CHECK(axes[0] == same(0));
  CHECK(positions_read(axes[1], {1, 2}, 8) == Interval<std::int64_t>{1, 6});
  CHECK(axes[1].dilation == 4);
  b.graph.tensors[in.index()].shape = {3, 7};
  CHECK_FALSE(gated.infer(b.graph, node));
  b.graph.tensors[in.index()].shape = {2, 8};
  CHECK(gated.infer(b.graph, node) == Shape{2, 4});
}

TEST_CASE("rows of a causal attention cost what the keys that they see in the mean do") {
  constexpr std::int64_t kQueries = 4, kKeys = 6, kRows = 3 * kQueries;
  const auto problem = [&](bool causal) {
    return kernels::test::attention_problem(
        {.batch = 3, .queries = kQueries, .keys = kKeys, .heads = 2, .depth = 2, .width = 3, .causal = causal});
  };
  const auto flops = [](const Problem& p, std::int64_t begin, std::int64_t end) {
    return static_cast<double>(cost_of(p.graph, p.node(), {{begin, end}, {0, 6}}).flops);
  };
  const double of_key = flops(problem(false), 0, 1) / kKeys;
  const Problem causal = problem(true);
  CHECK(flops(causal, 0, kRows) == Approx(3 * of_key * (3 + 4 + 5 + 6)));
  for (std::int64_t row = 0; row < kRows; ++row) CHECK(flops(causal, row, row + 1) == Approx(of_key * 4.5).margin(1));
  CHECK(flops(causal, 2, 2) == 0);
}

}  // namespace sluice::operators::test
