// What the verifier's tests share: a graph, a plan made for it by hand, and ways to break them, each with the rule that refuses it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "sluice/operators/validate.h"
#include "sluice/plan/verify.h"
#include "src/model/layout.h"

namespace sluice::plan {

inline constexpr std::uint64_t kHash = 0x5151;

/// The parts of a sample, and how they are put together.
struct HandMade {
  model::Graph graph;
  Plan plan;
  VerifyContext context{Bytes(4096), kHash, Bytes(64)};

 protected:
  explicit HandMade(std::string name) {
    graph.name = std::move(name);
    plan.policy = "by hand";
    plan.model_hash = kHash;
  }

  void add_tensors(std::initializer_list<Shape> shapes) {
    for (const Shape& shape : shapes) graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), DType::kF32, shape, {}});
  }
  static model::Port port(const model::Graph& graph, std::string name, std::size_t tensor) {
    return {std::move(name), TensorId(tensor), graph.tensors[tensor].shape, {0, 1, 2, 3, 4, 5, 6, 7}};
  }
  void add_input(std::string name, std::size_t tensor) { graph.inputs.push_back(port(graph, std::move(name), tensor)); }
  void add_output(std::string name, std::size_t tensor) { graph.outputs.push_back(port(graph, std::move(name), tensor)); }

  /// Weights of a dense layer: panels of f32, and a bias for each output.
  void add_dense_weights(std::int64_t outputs, std::int64_t inputs) {
    model::Weight panels;
    panels.name = "w";
    panels.panel_layout.layout = model::WeightLayout::kPanels;
    panels.shape = {outputs, inputs};
    panels.panels = outputs / 16;
    panels.panel_bytes = Bytes(static_cast<std::uint64_t>(64 * inputs));
    model::Weight bias;
    bias.name = "b";
    bias.shape = {outputs};
    bias.panel_bytes = Bytes(static_cast<std::uint64_t>(4 * outputs));
    graph.weights.push_back(panels);
    graph.weights.push_back(bias);
  }

  model::Node& add_node(model::OpKind op, const std::vector<std::size_t>& inputs, std::size_t output,
                        const model::Attributes& attributes = {}) {
    model::Node node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = op;
    for (std::size_t in : inputs) node.inputs.push_back(TensorId(in));
    node.outputs = {TensorId(output)};
    node.attributes = attributes;
    if (op == model::OpKind::kUnary) node.epilogue.activation.function = model::Function::kRelu;
    graph.nodes.push_back(node);
    return graph.nodes.back();
  }

  /// Gives weights their places in a file.
  void lay_out_file() {
    const auto size = model::assign_layout(graph, Bytes(4096));
    REQUIRE(size.has_value());
    REQUIRE(model::validate(graph, *size, operators::validate_node).has_value());
    context.file_size = *size;
  }

  /// A step whose operands, added after it, follow those of the step before.
  Step& add_step(std::size_t node, RowRange rows, ChannelRange channels, std::uint32_t operands = 0, std::uint32_t loads = 0) {
    Step step;
    step.node = NodeId(node);
    step.kernel = static_cast<KernelId>(1);
    step.rows = rows;
    step.channels = channels;
    step.first_operand = static_cast<std::uint32_t>(plan.operands.size());
    step.operand_count = operands;
    step.loads_needed = loads;
    plan.steps.push_back(step);
    return plan.steps.back();
  }
};

template <class T>
struct BreakageOf {
  const char* rule;  // how the reason begins
  const char* what;
  std::function<void(T&)> apply;
};

template <class T>
void check_passes(const T& sample) {
  const Status status = verify(sample.plan, sample.graph, sample.context);
  INFO((status ? std::string() : status.error().to_string()));
  CHECK(status.has_value());
}

template <class T>
void check_refused(const std::vector<BreakageOf<T>>& breakages) {
  for (const BreakageOf<T>& breakage : breakages) {
    INFO(breakage.rule << ": " << breakage.what);
    T sample;
    breakage.apply(sample);
    const Status status = verify(sample.plan, sample.graph, sample.context);
    REQUIRE_FALSE(status.has_value());
    INFO(status.error().to_string());
    CHECK(status.error().code == ErrorCode::kInvalidPlan);
    CHECK(std::string(status.error().reason).starts_with(breakage.rule));
  }
}

}  // namespace sluice::plan
