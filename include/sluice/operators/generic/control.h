// If and Loop whose conditions are known at run only: one node that runs its bodies (body.h), and the node that extracts one of its
// results.
//
// Read by the definitions (src/operators/generic/control.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/control.cc), which run it.
//
// Invariant: after `read_control`, inputs of the node and of its bodies have types and extents that fit each other, and results a shape.
#pragma once

#include "sluice/operators/generic/body.h"
#include "sluice/operators/generic/packed.h"

namespace sluice::operators::generic::control {

/// A checked node: its bodies, and how their inputs and outputs are the node's. `Body` is a BodyForm, or what can run one.
template <class Body>
struct Control {
  Body first{{}}, second{{}};  // then and else; a loop has one
  bool loop = false;
  // Of a loop. Its body takes the number of the iteration, a condition, carried values and captured ones; it gives a condition, carried
  // values and values that are stacked. The node's inputs: count and condition where it has them, carried, captured.
  std::size_t carried = 0;
  bool has_count = false, has_condition = false;
  std::int64_t most = 0;  // iterations for which there is room, if values are stacked; else a guess, or 0

  std::size_t own_inputs() const noexcept { return loop ? std::size_t{has_count} + std::size_t{has_condition} : 1; }
  std::size_t results() const noexcept { return loop ? first.outputs() - 1 : first.outputs(); }

  /// The most that a result can be; false where branches do not agree.
  bool result(std::size_t i, Planned& out) const noexcept {
    out = first.planned(first.output(loop ? i + 1 : i));
    if (!loop) {
      const Planned other = second.planned(second.output(i));
      if (other.dtype != out.dtype || other.shape.rank() != out.shape.rank()) return false;
      // The extents that hold both branches may be too large for any tensor.
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

inline bool is_scalar(const PlainTensor& t, DType dtype) noexcept { return t.dtype == dtype && t.count() == 1; }

template <class Body>
PlainRefusal check_if(const PlainNode& node, const Control<Body>& c) noexcept {
  const auto inputs = node.inputs();
  if (inputs.size() != 1 + c.first.given() + c.second.given() || !is_scalar(inputs[0], DType::kBool)) return kWrongShape;
  if (c.first.outputs() != c.second.outputs()) return kWrongArgument;
  std::size_t at = 1;
  for (const Body* body : {&c.first, &c.second})
    for (std::size_t i = 0; i < body->given(); ++i)
      if (body->in_arena(body->input(i)) || !is_planned(body->planned(body->input(i)), inputs[at++])) return kWrongShape;
  return nullptr;
}

template <class Body>
PlainRefusal check_loop(const PlainNode& node, const Control<Body>& c) noexcept {
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
template <class Body>
PlainRefusal read_control(const PlainNode& node, Control<Body>& c) noexcept {
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

enum TakeArgument : std::size_t { kNumber, kType, kAxes, kShape };

}  // namespace sluice::operators::generic::control
