// If and Loop whose course is known at run only: one step that runs its bodies (body.h). Of an If, only the branch that is taken.
#include "sluice/kernels/turns.h"
#include "src/kernels/plain/body.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

/// A checked node: its bodies, and how their inputs and outputs are the node's.
struct Control {
  Body first{{}}, second{{}};  // then and else; a loop has one
  bool loop = false;
  // Of a loop. Its body takes the number of the iteration, a condition, carried values and captured ones; it gives a condition, carried
  // values and values that are stacked. The node's inputs: count and condition where it has them, carried, captured.
  std::size_t carried = 0;
  bool has_count = false, has_condition = false;
  std::int64_t most = 0;  // iterations: that there is room for, where values are stacked; else a guess, or 0

  std::size_t own_inputs() const noexcept { return loop ? std::size_t{has_count} + std::size_t{has_condition} : 1; }
  std::size_t results() const noexcept { return loop ? first.outputs() - 1 : first.outputs(); }
  std::uint64_t workspace() const noexcept { return loop ? first.workspace() : std::max(first.workspace(), second.workspace()); }

  /// The most that a result can be; false where branches do not agree.
  bool result(std::size_t i, Planned& out) const noexcept {
    out = first.planned(first.output(loop ? i + 1 : i));
    if (!loop) {
      const Planned other = second.planned(second.output(i));
      if (other.dtype != out.dtype || other.shape.rank() != out.shape.rank()) return false;
      // What both branches fit in may be too large for any.
      Dims dims;
      for (int axis = 0; axis < out.shape.rank(); ++axis) dims.add(std::max(out.shape[axis], other.shape[axis]));
      return make_shape(dims.span(), out.shape);
    }
    if (i < carried) return true;
    Dims dims;
    dims.add(most);
    dims.add(out.shape, 0, out.shape.rank());
    return out.bounded == 0 && make_shape(dims.span(), out.shape);
  }
};

bool is_scalar(const PlainTensor& t, DType dtype) noexcept { return t.dtype == dtype && t.count() == 1; }

PlainRefusal check_if(const PlainNode& node, const Control& c) noexcept {
  const auto inputs = node.inputs();
  if (inputs.size() != 1 + c.first.given() + c.second.given() || !is_scalar(inputs[0], DType::kBool)) return kWrongShape;
  if (c.first.outputs() != c.second.outputs()) return kWrongArgument;
  std::size_t at = 1;
  for (const Body* body : {&c.first, &c.second})
    for (std::size_t i = 0; i < body->given(); ++i)
      if (body->in_arena(body->input(i)) || !is_planned(body->planned(body->input(i)), inputs[at++])) return kWrongShape;
  return nullptr;
}

PlainRefusal check_loop(const PlainNode& node, const Control& c) noexcept {
  const auto inputs = node.inputs();
  const Body& body = c.first;
  const std::size_t own = c.own_inputs();
  if (body.given() < 2 + c.carried || body.outputs() < 1 + c.carried || inputs.size() != own + body.given() - 2) return kWrongArgument;
  if (c.has_count && !is_scalar(inputs[0], DType::kI64)) return kWrongType;
  if (c.has_condition && !is_scalar(inputs[own - 1], DType::kBool)) return kWrongType;
  const Planned number = body.planned(body.input(0)), condition = body.planned(body.input(1)), next = body.planned(body.output(0));
  if (number.dtype != DType::kI64 || number.shape.element_count() != 1) return kWrongType;
  for (const Planned& truth : {condition, next})
    if (truth.dtype != DType::kBool || truth.shape.element_count() != 1 || truth.bounded != 0) return kWrongType;
  for (std::size_t i = 0; i < body.given(); ++i) {
    if (body.in_arena(body.input(i)) != (i < 2 + c.carried)) return kWrongArgument;
    const Planned taken = body.planned(body.input(i));
    if (i >= 2 && !is_planned(taken, inputs[own + i - 2])) return kWrongShape;
    if (i < 2 || i >= 2 + c.carried) continue;
    const Planned given = body.planned(body.output(i - 1));
    if (taken.bounded != 0 || given.bounded != 0 || given.dtype != taken.dtype || !(given.shape == taken.shape)) return kWrongShape;
  }
  return nullptr;
}

/// The node's bodies, checked. Arguments: what a loop is, one body, the other.
PlainRefusal read_control(const PlainNode& node, Control& c) noexcept {
  const auto what = node.list(0);
  c.loop = !what.empty();
  c.first = Body(node.list(1), node.bodies());
  if (const PlainRefusal refusal = c.first.check()) return refusal;
  if (!c.loop) {
    c.second = Body(node.list(2), node.bodies());
    if (const PlainRefusal refusal = c.second.check()) return refusal;
    return check_if(node, c);
  }
  if (what.size() != 4 || what[0] < 0 || what[0] > 32 || what[3] < 0 || what[3] > (std::int64_t{1} << 32)) return kWrongArgument;
  c.carried = static_cast<std::size_t>(what[0]);
  c.has_count = what[1] != 0;
  c.has_condition = what[2] != 0;
  c.most = what[3];
  return check_loop(node, c);
}

std::int64_t control_turns(const PlainNode& node, const PlainWeights& weights) noexcept {
  constexpr std::int64_t kGuess = 16;
  Control c;
  if (read_control(node, c) != nullptr) return -1;
  const Body* const bodies[] = {&c.first, &c.second};
  if (!weights_fit(std::span(bodies).first(c.loop ? 1 : 2), weights)) return -1;
  return !c.loop ? 1 : c.most == 0 ? kGuess : c.most;
}

PlainRefusal infer_control(const PlainNode& node, PlainTensor& out) noexcept {
  Control c;
  if (const PlainRefusal refusal = read_control(node, c)) return refusal;
  return infer_packed(c, out);
}

std::uint64_t control_scratch(const PlainNode& node) noexcept {
  Control c;
  return read_control(node, c) != nullptr ? 0 : c.workspace();
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

PlainRefusal infer_dense(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape &x = node.in(0).shape, &weight = node.in(1).shape;
  if (!is_f32(node.in(0).dtype) || !is_f32(node.in(1).dtype)) return kWrongType;
  if (x.rank() < 1 || weight.rank() != 2) return kWrongRank;
  if (x.back() != weight[1]) return kWrongShape;
  out = {DType::kF32, x};
  out.shape[x.rank() - 1] = weight[0];
  return nullptr;
}

PlainRefusal run_dense(const PlainNode&, const PlainTensor&, std::byte*) noexcept { return "it runs in bodies alone"; }

// ---- TakeResult: one result, by its number

enum TakeArgument : std::size_t { kNumber, kType, kAxes, kShape };

PlainRefusal infer_take(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const std::int64_t type = node.integer(kType), number = node.integer(kNumber);
  if (node.in(0).dtype != DType::kU8 || type < 0 || type >= kDTypeCount) return kWrongType;
  if (number < 0 || number >= static_cast<std::int64_t>(kMaxResults)) return kWrongArgument;
  out.dtype = static_cast<DType>(type);
  return make_shape(node.list(kShape), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal bound_take(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (const PlainRefusal refusal = infer_take(node, out)) return refusal;
  axes = static_cast<std::uint8_t>(node.integer(kAxes) & ((1 << out.shape.rank()) - 1));
  return nullptr;
}

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

constexpr PlainOperator kOperators[] = {
    {560, "Control", "loop:I first:I second:I", infer_control, nullptr, 1, nullptr, false, true},
    {561, "TakeResult", "number:i=0 type:i=0 axes:i=0 shape:I", infer_take, nullptr, 1, bound_take, true},
    {kBodyDense, "BodyDense", "", infer_dense},
};

constexpr GenericKernel kKernels[] = {
    {"Control", run_control, control_scratch, nullptr, control_turns},
    {"TakeResult", nullptr, nullptr, run_take},
    {"BodyDense", run_dense},
};

}  // namespace

std::span<const PlainOperator> control_operators() noexcept { return kOperators; }
std::span<const GenericKernel> control_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
