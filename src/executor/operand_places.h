// Which steps of a plan share the operands of their tensors: a table of a step must be small, since a tight budget has many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::executor {

/// By tensor: whether it lies where each step has it, as a weight that is an input does (a step's own load brings it), or what passes.
inline std::vector<bool> lie_by_step(const model::Graph& graph, const plan::Plan& plan) {
  std::vector<bool> by_step(graph.tensors.size(), false);
  for (std::size_t t = 0; t < by_step.size(); ++t) by_step[t] = graph.tensors[t].weight.valid();
  for (const plan::PassingTensor& passing : plan.passing) by_step[passing.tensor.index()] = true;
  return by_step;
}

/// Whether a step has the same tensors as the one before it; a prepare step has no places.
inline bool shares_tensors(const model::Graph& graph, const std::vector<bool>& by_step, const plan::Step* before,
                           const plan::Step& step) noexcept {
  if (before == nullptr || before->node != step.node || before->prepare != step.prepare) return false;
  const auto moves = [&](TensorId id) { return by_step[id.index()]; };
  const model::Node& node = graph.node(step.node);
  return std::none_of(node.inputs.begin(), node.inputs.end(), moves) && std::none_of(node.outputs.begin(), node.outputs.end(), moves);
}

/// Where in the table of operands a list of tensors begins: that of a single one anywhere, those of several for each node. Lists with what
/// lies by step, and those of a prepare step, whose tensors have no places, are nobody else's.
class OperandPlaces {
 public:
  OperandPlaces(const model::Graph& graph, const plan::Plan& plan)
      : by_step_(lie_by_step(graph, plan)), of_tensor_(graph.tensors.size(), kNone), of_node_(graph.nodes.size(), kNone) {}

  /// The place of the list; null: it is to be a new one. `kNone` there: it is new, and may be shared from now on.
  std::uint32_t* find(const plan::Step& step, const std::vector<TensorId>& ids, bool inputs) noexcept {
    const auto moves = [&](TensorId id) { return by_step_[id.index()]; };
    if (step.prepare || ids.empty() || std::any_of(ids.begin(), ids.end(), moves)) return nullptr;
    if (ids.size() == 1) return &of_tensor_[ids[0].index()];
    return inputs ? &of_node_[step.node.index()] : nullptr;
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 private:
  std::vector<bool> by_step_;
  std::vector<std::uint32_t> of_tensor_, of_node_;
};

/// How many operands there are, shared as far as they may be.
inline std::size_t count_shared_operands(const model::Graph& graph, const plan::Plan& plan) {
  OperandPlaces places(graph, plan);
  std::size_t count = 0;
  const auto add = [&](const plan::Step& step, const std::vector<TensorId>& ids, bool inputs) {
    std::uint32_t* place = places.find(step, ids, inputs);
    if (place != nullptr && *place != OperandPlaces::kNone) return;
    if (place != nullptr) *place = static_cast<std::uint32_t>(count);
    count += ids.size();
  };
  for (const plan::Step& step : plan.steps) {
    const model::Node& node = graph.node(step.node);
    add(step, node.inputs, true);
    add(step, node.outputs, false);
  }
  return count;
}

}  // namespace sluice::executor
