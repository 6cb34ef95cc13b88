#include "src/kernels/plain/kernel.h"

#include <algorithm>
#include <array>

#include "sluice/kernels/plain.h"

namespace sluice::kernels {

namespace plain {
namespace {

/// Is there room for the most, `made`, on every axis that the values do not decide? On the others `run_sized` looks itself.
bool has_room(const PlainNode& node, const Shape& made, const Shape& planned) noexcept {
  if (made.rank() != planned.rank()) return false;
  std::uint8_t decided = 0;
  PlainTensor most;
  node.op().bound(node, most, decided);  // a refusal to say how much leaves the axes as they are
  for (int axis = 0; axis < made.rank(); ++axis)
    if ((decided >> axis & 1u) == 0 && planned[axis] < made[axis]) return false;
  return true;
}

PlainRefusal run_fixed(const PlainNode& node, const Planned& planned, PlainTensor& out, std::byte* scratch) noexcept {
  const PlainOperator& op = node.op();
  PlainTensor made;
  if (const PlainRefusal refusal = infer_plain(node, made)) return refusal;
  if (made.dtype != planned.dtype) return "its result is of another type than the plan's";
  const GenericKernel& kernel = generic_kernel(op);
  if (kernel.scratch != nullptr && kernel.scratch(node) > planned.scratch) return "it takes more scratch than planned";
  if (op.sized_by_values) {
    if (!has_room(node, made.shape, planned.shape)) return kOverBound;
    PlainTensor sized{planned.dtype, planned.shape, out.data};
    const PlainRefusal refusal = kernel.run_sized(node, sized, scratch);
    if (refusal == nullptr && !within(sized.shape, planned)) return kOverBound;
    if (refusal == nullptr) out.shape = sized.shape;
    return refusal;
  }
  if (!within(made.shape, planned)) return kOverBound;
  const auto inputs = node.inputs();
  const auto empty = [](const PlainTensor& input) { return input.count() == 0; };
  if (made.count() > 0) {
    if (!op.takes_empty && std::any_of(inputs.begin(), inputs.end(), empty)) return "an input has no elements in this run";
    if (const PlainRefusal refusal = kernel.run(node, {made.dtype, made.shape, out.data}, scratch)) return refusal;
  }
  out.shape = made.shape;
  return nullptr;
}

}  // namespace

std::uint64_t scratch_of(const PlainNode& node) noexcept {
  const GenericKernel& kernel = generic_kernel(node.op());
  if (kernel.scratch == nullptr) return 0;
  PlainTensor out;
  const PlainRefusal refusal = infer_bound(node, out);
  return refusal == nullptr || refusal == kStateBound ? kernel.scratch(node) : 0;
}

PlainRefusal run_within(const PlainNode& stated, const Planned& planned, PlainTensor& out, std::byte* scratch) noexcept {
  if (!stated.late()) return run_fixed(stated, planned, out, scratch);
  LateArguments arguments;
  if (const PlainRefusal refusal = arguments.read(stated)) return refusal;
  return run_fixed(stated.with(arguments.span()), planned, out, scratch);
}

namespace {

/// A step with late arguments or bounded tensors.
PlainRefusal run_bounded(const KernelCall& call, const PlainNode& node, PlainTensor& out) noexcept {
  const auto& p = call.parameters<operators::PlainParameters>();
  return run_within(node, {p.dtype, p.shape, p.bounded, p.scratch}, out, call.workspace);
}

}  // namespace

void run(const KernelCall& call) noexcept {
  const auto& parameters = call.parameters<operators::PlainParameters>();
  const PlainOperator* op = find_plain(parameters.op);
  std::array<PlainTensor, kMaxInputs> inputs;
  Shape* const extents = call.outputs[0].extents;
  bool fixed = extents == nullptr && !needs_bound(*op, parameters.form.present);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Operand& input = call.inputs[i];
    inputs[i] = {input.view.dtype, input.extents != nullptr ? *input.extents : input.shape, input.view.data};
    fixed = fixed && input.extents == nullptr;
  }
  PlainTensor out{call.outputs[0].view.dtype, call.outputs[0].shape, call.outputs[0].view.data};
  const PlainNode node = PlainNode(*op, parameters.form, std::span(inputs).first(call.inputs.size())).in_call(&call);
  const PlainRefusal fault = fixed ? generic_kernel(*op).run(node, out, call.workspace) : run_bounded(call, node, out);
  if (fault != nullptr && call.fault != nullptr) call.fault->reason = fault;
  if (extents == nullptr) return;
  // After a fault those that follow find nothing.
  if (fault != nullptr)
    for (int axis = 0; axis < out.shape.rank(); ++axis) out.shape[axis] = 0;
  *extents = out.shape;
}

}  // namespace plain
}  // namespace sluice::kernels
