#include "src/kernels/plain/resolve.h"

#include <algorithm>
#include <array>

#include "sluice/kernels/plain.h"
#include "src/kernels/plain/kernel.h"

namespace sluice::kernels::plain {
namespace {

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

bool bounded(const model::Graph& graph, TensorId id) noexcept { return graph.tensor(id).bounded != 0; }

}  // namespace

operators::PlainParameters parameters_of(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& attributes = node.as<model::PlainAttributes>();
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  operators::PlainParameters parameters{
      .form = form_of(attributes), .op = attributes.op, .dtype = out.dtype, .bounded = out.bounded, .shape = out.shape};
  if (const PlainOperator* op = find_plain(attributes.op)) {
    const Operands operands = operands_of(graph, node);
    parameters.scratch = scratch_of(PlainNode(*op, parameters.form, operands.span()));
  }
  return parameters;
}

std::int64_t weight_turns(const model::Graph& graph, const model::Node& node) noexcept {
  const PlainOperator* op = node.subgraph_count == 0 ? nullptr : find_plain(node.as<model::PlainAttributes>().op);
  if (op == nullptr || generic_kernel(*op).turns == nullptr) return 0;
  const Operands operands = operands_of(graph, node);
  return generic_kernel(*op).turns(PlainNode(*op, form_of(node.as<model::PlainAttributes>()), operands.span()));
}

bool supports(const model::Graph& graph, const model::Node& node) noexcept {
  const auto& attributes = node.as<model::PlainAttributes>();
  const PlainOperator* op = find_plain(attributes.op);
  if (op == nullptr || node.inputs.size() > kMaxInputs) return false;
  const Operands operands = operands_of(graph, node);
  if (!node.weights.empty() || (generic_kernel(*op).turns != nullptr) != (node.subgraph_count > 0)) return false;
  const model::Tensor& stated = graph.tensor(node.outputs[0]);
  PlainTensor out;
  const PlainRefusal refusal = infer_bound(PlainNode(*op, form_of(attributes), operands.span()), out);
  // Where extents are known at run only, the run compares them with the plan's; a bound may be stated that does not follow.
  if (stated.bounded != 0 || std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) { return bounded(graph, id); }))
    return true;
  return refusal == nullptr && out.dtype == stated.dtype && out.shape == stated.shape;
}

}  // namespace sluice::kernels::plain
