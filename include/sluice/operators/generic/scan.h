// Scan: one step that runs its body (body.h) for each place of an axis of its sequences.
//
//     sequence  [a b c d]      body: (state, b) -> (state, v)      result  [u v w x]        along the axis that each one states, from its
//                  ^ place                                                                  first place on or from its last
//
// The node's inputs: states, sequences, what the body captures. The body takes states and slices, which lie in its arena, then captured
// values; it gives states, then a slice of each stacked result. A sequence may be shorter in a run than planned, along that axis alone.
//
// Read by the definition (src/operators/generic/scan.cc), which refuses what does not fit, and by the generic kernel
// (src/kernels/plain/scan.cc), which runs it.
#pragma once

#include "sluice/operators/generic/body.h"
#include "sluice/operators/generic/packed.h"

namespace sluice::operators::generic::scan {

enum Argument : std::size_t { kWhat, kInputs, kOutputs, kBody };

/// Which way a sequence or a stacked result runs.
struct Course {
  int axis = 0;
  bool backward = false;
};

/// A checked node. `Body` is a BodyForm, or what can run one.
template <class Body>
struct Scan {
  Body body{{}};
  std::span<const std::int64_t> inputs, outputs;  // axis and direction of each
  std::size_t states = 0;
  std::int64_t most = 0;  // places of a sequence
  bool bounded = false;   // may it be shorter?

  std::size_t sequences() const noexcept { return inputs.size() / 2; }
  std::size_t results() const noexcept { return body.outputs(); }
  static Course course(std::span<const std::int64_t> list, std::size_t i) noexcept {
    return {static_cast<int>(list[2 * i]), list[2 * i + 1] != 0};
  }
  Course of_result(std::size_t i) const noexcept { return course(outputs, i - states); }

  bool result(std::size_t i, Planned& out) const noexcept {
    out = body.planned(body.output(i));
    if (i < states) return true;
    const int axis = of_result(i).axis;
    if (out.bounded != 0 || axis < 0 || axis > out.shape.rank()) return false;
    Dims dims;
    dims.add(out.shape, 0, axis);
    dims.add(most);
    dims.add(out.shape, axis, out.shape.rank());
    return make_shape(dims.span(), out.shape);
  }
};

/// Is the slice a sequence without the axis? `length`: the sequence's, which is that of the others.
template <class Body>
bool is_slice(const Scan<Body>& scan, std::size_t i, const PlainTensor& sequence, std::int64_t& length) noexcept {
  const Planned slice = scan.body.planned(scan.body.input(scan.states + i));
  const int axis = Scan<Body>::course(scan.inputs, i).axis;
  if (slice.dtype != sequence.dtype || slice.bounded != 0 || sequence.shape.rank() != slice.shape.rank() + 1) return false;
  if (axis < 0 || axis > slice.shape.rank()) return false;
  for (int a = 0; a < slice.shape.rank(); ++a)
    if (sequence.shape[a < axis ? a : a + 1] != slice.shape[a]) return false;
  const std::int64_t extent = sequence.shape[axis];
  if (extent > scan.most || (extent < scan.most && !scan.bounded) || (i > 0 && extent != length)) return false;
  length = extent;
  return true;
}

/// Checks the node against its body. `length`: of its sequences, as they are.
template <class Body>
PlainRefusal read_scan(const PlainNode& node, Scan<Body>& scan, std::int64_t& length) noexcept {
  const auto what = node.list(kWhat), inputs = node.list(kInputs), outputs = node.list(kOutputs);
  scan.body = Body(node.list(kBody), node.bodies());
  if (const PlainRefusal refusal = scan.body.check()) return refusal;
  const Body& body = scan.body;
  if (what.size() != 3 || what[0] < 0 || what[0] > 32 || what[1] < 0 || what[1] > (std::int64_t{1} << 32)) return kWrongArgument;
  scan.states = static_cast<std::size_t>(what[0]);
  scan.most = what[1];
  scan.bounded = what[2] != 0;
  scan.inputs = inputs;
  scan.outputs = outputs;
  for (const auto list : {inputs, outputs})
    for (std::size_t i = 0; i + 1 < list.size(); i += 2)
      if (list[i] < 0 || list[i] >= Shape::kMaxRank) return kWrongAxis;
  const std::size_t own = scan.states + scan.sequences();
  if (inputs.empty() || inputs.size() % 2 != 0 || outputs.size() % 2 != 0) return kWrongArgument;
  if (body.given() < own || body.outputs() != scan.states + outputs.size() / 2 || node.inputs().size() != body.given())
    return kWrongArgument;
  for (std::size_t i = 0; i < body.given(); ++i) {
    if (body.in_arena(body.input(i)) != (i < own)) return kWrongArgument;
    const PlainTensor& given = node.inputs()[i];
    if (i >= scan.states && i < own) {
      if (!is_slice(scan, i - scan.states, given, length)) return kWrongShape;
      continue;
    }
    const Planned taken = body.planned(body.input(i));
    if (!is_planned(taken, given)) return kWrongShape;
    if (i >= scan.states) continue;
    const Planned next = body.planned(body.output(i));
    if (taken.bounded != 0 || next.bounded != 0 || next.dtype != taken.dtype || !(next.shape == taken.shape)) return kWrongShape;
  }
  return nullptr;
}

}  // namespace sluice::operators::generic::scan
