#include "src/executor/movable_ports.h"

#include <algorithm>
#include <utility>

#include "sluice/core/sort.h"

namespace sluice::executor {
namespace {

/// The operands that view each buffer.
class BufferUse {
 public:
  BufferUse(const model::Graph& graph, const plan::Plan& plan, const BoundPlan& bound)
      : graph_(graph), plan_(plan), written_(plan.buffers.size(), false), ports_(plan.buffers.size(), 0) {
    for (const auto* list : {&graph.inputs, &graph.outputs})
      for (const model::Port& port : *list)
        if (const BufferId buffer = buffer_of(port.tensor); buffer.valid()) ++ports_[buffer.index()];
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].prepare) continue;
      const model::Node& node = graph.node(plan.steps[i].node);
      add(bound, bound.steps[i].call.inputs, node.inputs);
      add(bound, bound.steps[i].call.outputs, node.outputs);
      for (const TensorId output : node.outputs)
        if (const BufferId buffer = buffer_of(output); buffer.valid()) written_[buffer.index()] = true;
    }
    sluice::sort(operands_.begin(), operands_.end());
    operands_.erase(std::unique(operands_.begin(), operands_.end()), operands_.end());
  }

  bool written(BufferId buffer) const noexcept { return written_[buffer.index()]; }

  /// Is the buffer this port's alone, and its tensor all that is in it?
  bool belongs_to(const model::Port& port, const RowView& view) const noexcept {
    const BufferId buffer = buffer_of(port.tensor);
    if (!buffer.valid() || view.data == nullptr || !view.dense() || ports_[buffer.index()] != 1) return false;
    const model::Tensor& tensor = graph_.tensor(port.tensor);
    return tensor.bounded == 0 && plan_.tensors[port.tensor.index()].offset == Bytes() &&
           plan_.buffer(buffer).size <= Bytes(align_up(tensor.bytes().count(), 64)) + kernels::kReadTail;
  }

  std::vector<std::uint32_t> operands_in(BufferId buffer) const {
    std::vector<std::uint32_t> found;
    for (const auto& [in, operand] : operands_)
      if (in == buffer.index()) found.push_back(operand);
    return found;
  }

  BufferId buffer_of(TensorId tensor) const noexcept {
    return graph_.tensor(tensor).weight.valid() ? BufferId() : plan_.tensors[tensor.index()].buffer;
  }

 private:
  void add(const BoundPlan& bound, std::span<const kernels::Operand> operands, const std::vector<TensorId>& tensors) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (const BufferId buffer = buffer_of(tensors[i]); buffer.valid())
        operands_.emplace_back(buffer.index(), static_cast<std::uint32_t>(&operands[i] - bound.operands.data()));
  }

  const model::Graph& graph_;
  const plan::Plan& plan_;
  std::vector<bool> written_;
  std::vector<std::uint32_t> ports_;
  std::vector<std::pair<std::size_t, std::uint32_t>> operands_;
};

}  // namespace

MovablePorts::MovablePorts(const model::Graph& graph, const plan::Plan& plan, const BoundPlan& bound)
    : inputs_(graph.inputs.size()), outputs_(graph.outputs.size()) {
  if (!bound.guards.runs().empty()) return;  // conditions are read where the plan has them
  const BufferUse use(graph, plan, bound);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (use.belongs_to(graph.inputs[i], bound.inputs[i]) && !use.written(use.buffer_of(graph.inputs[i].tensor)))
      inputs_[i] = {bound.inputs[i].data, use.operands_in(use.buffer_of(graph.inputs[i].tensor))};
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (use.belongs_to(graph.outputs[i], bound.outputs[i]))
      outputs_[i] = {bound.outputs[i].data, use.operands_in(use.buffer_of(graph.outputs[i].tensor))};
}

bool MovablePorts::place_input(BoundPlan& bound, std::size_t port, std::byte* data) const noexcept {
  return move(bound, inputs_, bound.inputs, port, data);
}

bool MovablePorts::place_output(BoundPlan& bound, std::size_t port, std::byte* data) const noexcept {
  return move(bound, outputs_, bound.outputs, port, data);
}

bool MovablePorts::move(BoundPlan& bound, const std::vector<Place>& places, std::vector<RowView>& views, std::size_t port,
                        std::byte* data) noexcept {
  if (port >= places.size() || places[port].home == nullptr) return false;
  std::byte* const from = std::exchange(views[port].data, data == nullptr ? places[port].home : data);
  for (const std::uint32_t operand : places[port].operands) {
    std::byte*& at = bound.operands[operand].view.data;
    at = views[port].data + (at - from);
  }
  return true;
}

}  // namespace sluice::executor
