// If and Loop whose course is known at run only: one step that runs its bodies (body.h). Of an If, only the branch that is taken.
#include "sluice/operators/generic/control.h"

#include "sluice/kernels/turns.h"
#include "src/kernels/plain/body.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::control;
namespace {

using Control = operators::generic::control::Control<Body>;

std::uint64_t workspace_of(const Control& c) noexcept {
  return c.loop ? c.first.workspace() : std::max(c.first.workspace(), c.second.workspace());
}

std::int64_t control_turns(const PlainNode& node, const PlainWeights& weights) noexcept {
  constexpr std::int64_t kGuess = 16;
  Control c;
  if (read_control(node, c) != nullptr) return -1;
  const Body* const bodies[] = {&c.first, &c.second};
  if (!weights_fit(std::span(bodies).first(c.loop ? 1 : 2), weights)) return -1;
  return !c.loop ? 1 : c.most == 0 ? kGuess : c.most;
}

std::uint64_t control_scratch(const PlainNode& node) noexcept {
  Control c;
  return read_control(node, c) != nullptr ? 0 : workspace_of(c);
}

PlainRefusal run_branch(const PlainNode& node, const Control& c, const PlainTensor& out, std::byte* scratch) noexcept {
  const auto inputs = node.inputs();
  const bool holds = inputs[0].as<const std::uint8_t>()[0] != 0;
  const Body& body = holds ? c.first : c.second;
  const std::span<PlainTensor> tensors = body.begin(scratch);
  for (std::size_t i = 0; i < body.given(); ++i) tensors[body.input(i)] = inputs[1 + (holds ? 0 : c.first.given()) + i];
  const BodyWeights weights(node.call(), holds ? 0 : c.first.weights(), body.weights(), false);
  if (!weights.given()) return kWrongWeights;
  if (const PlainRefusal fault = body.run(tensors, scratch, weights)) return fault;
  const Packed packed(c, out.data);
  for (std::size_t i = 0; i < body.outputs(); ++i) packed.put(i, tensors[body.output(i)]);
  return nullptr;
}

PlainRefusal run_iterations(const PlainNode& node, const Control& c, const PlainTensor& out, std::byte* scratch) noexcept {
  const auto inputs = node.inputs();
  const Body& body = c.first;
  const std::size_t own = c.own_inputs();
  const std::span<PlainTensor> tensors = body.begin(scratch);
  PlainTensor &number = tensors[body.input(0)], &condition = tensors[body.input(1)];
  *condition.as<std::uint8_t>() = c.has_condition ? inputs[own - 1].as<const std::uint8_t>()[0] : 1;
  const BodyWeights weights(node.call(), 0, body.weights(), true);
  if (!weights.given()) return kWrongWeights;
  for (std::size_t i = 2; i < body.given(); ++i) {
    PlainTensor& to = tensors[body.input(i)];
    const PlainTensor& from = inputs[own + i - 2];
    if (i < 2 + c.carried)
      copy_elements(to.data, from.data, to.count(), to.dtype);
    else
      to = from;
  }
  const Packed packed(c, out.data);
  const std::int64_t limit = c.has_count ? integer_at(inputs[0], 0) : INT64_MAX;
  const bool stacks = c.results() > c.carried;
  std::int64_t done = 0;
  for (; done < limit && *condition.as<std::uint8_t>() != 0; ++done) {
    if (const PlainRefusal none = take_turn()) return none;
    if (stacks && done >= c.most) return kOverBound;
    *number.as<std::int64_t>() = done;
    if (const PlainRefusal fault = body.run(tensors, scratch, weights)) return fault;
    for (std::size_t i = c.carried; i < c.results(); ++i) {
      const PlainTensor& value = tensors[body.output(i + 1)];
      const auto size = value.count() * static_cast<std::int64_t>(size_of(value.dtype));
      copy_elements(packed.values(i) + done * size, value.data, value.count(), value.dtype);
    }
    *condition.as<std::uint8_t>() = *tensors[body.output(0)].as<std::uint8_t>();
    for (std::size_t i = 0; i < c.carried; ++i) {
      const PlainTensor& value = tensors[body.output(i + 1)];
      copy_elements(tensors[body.input(i + 2)].data, value.data, value.count(), value.dtype);
    }
  }
  for (std::size_t i = 0; i < c.carried; ++i) packed.put(i, tensors[body.input(i + 2)]);
  for (std::size_t i = c.carried; i < c.results(); ++i) {
    Planned planned;
    c.result(i, planned);
    planned.shape[0] = done;
    packed.set_extents(i, planned.shape);
  }
  return nullptr;
}

PlainRefusal run_control(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Control c;
  if (const PlainRefusal refusal = read_control(node, c)) return refusal;
  return c.loop ? run_iterations(node, c, out, scratch) : run_branch(node, c, out, scratch);
}

// ---- BodyDense: what a product with a constant becomes in a body

PlainRefusal run_dense(const PlainNode&, const PlainTensor&, std::byte*) noexcept { return "it runs in bodies alone"; }

// ---- TakeResult: one result, by its number

PlainRefusal run_take(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& packed = node.in(0);
  const std::int64_t bytes = packed.count(), number = node.integer(kNumber);
  if ((number + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)) > bytes) return kWrongIndex;
  const std::int64_t at = packed.as<const std::int64_t>()[number];
  if (at < 0 || at % 64 != 0 || at > bytes - kExtentBytes) return kWrongIndex;
  Shape extents = out.shape;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    extents[axis] = reinterpret_cast<const std::int64_t*>(packed.data + at)[axis];
    if (extents[axis] < 0 || extents[axis] > out.shape[axis]) return kOverBound;
  }
  const std::int64_t values = extents.element_count() * static_cast<std::int64_t>(size_of(out.dtype));
  if (values > bytes - at - kExtentBytes) return kWrongIndex;
  out.shape = extents;
  copy_elements(out.data, packed.data + at + kExtentBytes, extents.element_count(), out.dtype);
  return nullptr;
}

// ---- Choose: what is not taken may not have been computed, so nothing of it is looked at

PlainRefusal run_choose(const PlainNode& node, PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& taken = node.in(node.in(0).as<const std::uint8_t>()[0] != 0 ? 1 : 2);
  for (int axis = 0; axis < taken.shape.rank(); ++axis)
    if (taken.shape[axis] > out.shape[axis]) return kOverBound;
  out.shape = taken.shape;
  copy_elements(out.data, taken.data, taken.count(), out.dtype);
  return nullptr;
}

constexpr GenericKernel kKernels[] = {
    {"Control", run_control, control_scratch, nullptr, control_turns},
    {"TakeResult", nullptr, nullptr, run_take},
    {"BodyDense", run_dense},
    {"Choose", nullptr, nullptr, run_choose},
};

}  // namespace

std::span<const GenericKernel> control_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
