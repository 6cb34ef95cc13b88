#include "src/kernels/plain/kernel.h"

#include <array>
#include <bit>

#include "sluice/kernels/plain.h"

namespace sluice::kernels {

const PlainTensor& PlainNode::in(int input) const noexcept {
  const auto before = static_cast<std::size_t>(std::popcount(attributes_.present & ((1u << input) - 1u)));
  return inputs_[before];
}

std::size_t PlainNode::argument_count() const noexcept {
  std::size_t count = 0;
  const auto& a = attributes_.arguments;
  for (std::size_t at = 0; at < a.size(); at += static_cast<std::size_t>(a[at]) + 1) ++count;
  return count;
}

std::span<const std::int64_t> PlainNode::list(std::size_t argument) const noexcept {
  const std::span<const std::int64_t> a = attributes_.arguments;
  std::size_t at = 0;
  for (; at < a.size() && argument > 0; --argument) at += static_cast<std::size_t>(a[at]) + 1;
  return at < a.size() ? a.subspan(at + 1, static_cast<std::size_t>(a[at])) : std::span<const std::int64_t>();
}

std::int64_t PlainNode::integer(std::size_t argument) const noexcept {
  const auto values = list(argument);
  return values.empty() ? 0 : values[0];
}

double PlainNode::real(std::size_t argument, std::size_t at) const noexcept {
  const auto values = list(argument);
  return at < values.size() ? std::bit_cast<double>(values[at]) : 0.0;
}

namespace plain {
namespace {

constexpr std::size_t kMaxInputs = 32;

/// The node's operands without bytes.
struct Operands {
  std::array<PlainTensor, kMaxInputs> tensors;
  std::size_t count = 0;
  std::span<const PlainTensor> span() const noexcept { return {tensors.data(), count}; }
};

Operands operands_of(const model::Graph& graph, const model::Node& node) noexcept {
  Operands operands;
  for (const TensorId id : node.inputs) {
    if (operands.count == kMaxInputs) break;
    operands.tensors[operands.count++] = {graph.tensor(id).dtype, graph.tensor(id).shape, nullptr};
  }
  return operands;
}

}  // namespace

bool supports(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& attributes = node.as<model::PlainAttributes>();
  const PlainOperator* op = find_plain(attributes.op);
  if (op == nullptr || node.inputs.size() > kMaxInputs) return false;
  const Operands operands = operands_of(graph, node);
  PlainTensor out;
  if (infer_plain(PlainNode(*op, attributes, operands.span()), out) != nullptr) return false;
  const model::Tensor& stated = graph.tensor(node.outputs[0]);
  return out.dtype == stated.dtype && out.shape == stated.shape;
}

Bytes workspace(const model::Graph& graph, const model::Node& node, const StepExtent&) noexcept {
  const auto& attributes = node.as<model::PlainAttributes>();
  const PlainOperator* op = find_plain(attributes.op);
  if (op == nullptr || op->scratch == nullptr) return Bytes(0);
  const Operands operands = operands_of(graph, node);
  return Bytes(op->scratch(PlainNode(*op, attributes, operands.span())));
}

void run(const KernelCall& call) noexcept {
  const auto& attributes = call.node->as<model::PlainAttributes>();
  const PlainOperator* op = find_plain(attributes.op);
  std::array<PlainTensor, kMaxInputs> inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    inputs[i] = {call.inputs[i].view.dtype, call.inputs[i].shape, call.inputs[i].view.data};
  const PlainTensor out{call.outputs[0].view.dtype, call.outputs[0].shape, call.outputs[0].view.data};
  const PlainRefusal fault = op->run(PlainNode(*op, attributes, {inputs.data(), call.inputs.size()}), out, call.workspace);
  if (fault != nullptr && call.fault != nullptr) call.fault->reason = fault;
}

}  // namespace plain
}  // namespace sluice::kernels
