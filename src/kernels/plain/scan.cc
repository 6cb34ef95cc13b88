// Scan: one step that runs its body (body.h) for each place of an axis of its sequences.
//
//     sequence  [a b c d]      body: (state, b) -> (state, v)      result  [u v w x]        along the axis that each one states, from its
//                  ^ place                                                                  first place on or from its last
//
// The node's inputs: states, sequences, what the body captures. The body takes states and slices, which lie in its arena, then captured
// values; it gives states, then a slice of each stacked result. A sequence may be shorter in a run than planned, along that axis alone.
#include "sluice/kernels/turns.h"
#include "src/kernels/plain/body.h"
#include "src/kernels/plain/packed.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

enum Argument : std::size_t { kWhat, kInputs, kOutputs, kBody };

/// Which way a sequence or a stacked result runs.
struct Course {
  int axis = 0;
  bool backward = false;
};

/// A checked node.
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
bool is_slice(const Scan& scan, std::size_t i, const PlainTensor& sequence, std::int64_t& length) noexcept {
  const Planned slice = scan.body.planned(scan.body.input(scan.states + i));
  const int axis = Scan::course(scan.inputs, i).axis;
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
PlainRefusal read_scan(const PlainNode& node, Scan& scan, std::int64_t& length) noexcept {
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

std::int64_t scan_turns(const PlainNode& node, const PlainWeights& weights) noexcept {
  Scan scan;
  std::int64_t length = 0;
  const Body* const bodies[] = {&scan.body};
  return read_scan(node, scan, length) == nullptr && weights_fit(bodies, weights) ? std::max<std::int64_t>(scan.most, 1) : -1;
}

PlainRefusal infer_scan(const PlainNode& node, PlainTensor& out) noexcept {
  Scan scan;
  std::int64_t length = 0;
  if (const PlainRefusal refusal = read_scan(node, scan, length)) return refusal;
  return infer_packed(scan, out);
}

std::uint64_t scan_scratch(const PlainNode& node) noexcept {
  Scan scan;
  std::int64_t length = 0;
  return read_scan(node, scan, length) != nullptr ? 0 : scan.body.workspace();
}

/// Copies between a tensor's place on an axis and a dense slice.
enum class Copy : std::uint8_t { kOut, kIn };
void copy_slice(Copy way, const AxisView& view, std::int64_t place, std::byte* whole, std::byte* slice, DType dtype) noexcept {
  const auto size = static_cast<std::int64_t>(size_of(dtype)) * view.inner;
  for (std::int64_t o = 0; o < view.outer; ++o) {
    std::byte* const at = whole + (o * view.extent + place) * size;
    if (way == Copy::kOut)
      copy_elements(slice + o * size, at, view.inner, dtype);
    else
      copy_elements(at, slice + o * size, view.inner, dtype);
  }
}

PlainRefusal run_scan(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Scan scan;
  std::int64_t length = 0;
  if (const PlainRefusal refusal = read_scan(node, scan, length)) return refusal;
  const Body& body = scan.body;
  const auto inputs = node.inputs();
  const std::span<PlainTensor> tensors = body.begin(scratch);
  const BodyWeights weights(node.call(), 0, body.weights(), true);
  if (!weights.given()) return kWrongWeights;
  for (std::size_t i = 0; i < body.given(); ++i) {
    PlainTensor& to = tensors[body.input(i)];
    if (i < scan.states)
      copy_elements(to.data, inputs[i].data, to.count(), to.dtype);
    else if (i >= scan.states + scan.sequences())
      to = inputs[i];
  }
  const Packed packed(scan, out.data);
  for (std::size_t i = scan.states; i < scan.results(); ++i) {
    Planned planned;
    scan.result(i, planned);
    planned.shape[scan.of_result(i).axis] = length;
    packed.set_extents(i, planned.shape);
  }
  for (std::int64_t step = 0; step < length; ++step) {
    if (const PlainRefusal none = take_counted_turn()) return none;
    const auto place = [&](const Course& course) { return course.backward ? length - 1 - step : step; };
    for (std::size_t i = 0; i < scan.sequences(); ++i) {
      const PlainTensor &from = inputs[scan.states + i], &to = tensors[body.input(scan.states + i)];
      const Course course = Scan::course(scan.inputs, i);
      copy_slice(Copy::kOut, axis_view(from.shape, course.axis), place(course), from.data, to.data, to.dtype);
    }
    if (const PlainRefusal fault = body.run(tensors, scratch, weights)) return fault;
    for (std::size_t i = scan.states; i < scan.results(); ++i) {
      const PlainTensor& value = tensors[body.output(i)];
      const Course course = scan.of_result(i);
      const AxisView view{value.shape.count(0, course.axis), length, value.shape.count(course.axis, value.shape.rank())};
      copy_slice(Copy::kIn, view, place(course), packed.values(i), value.data, value.dtype);
    }
    for (std::size_t i = 0; i < scan.states; ++i) {
      const PlainTensor& value = tensors[body.output(i)];
      copy_elements(tensors[body.input(i)].data, value.data, value.count(), value.dtype);
    }
  }
  for (std::size_t i = 0; i < scan.states; ++i) packed.put(i, tensors[body.input(i)]);
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {570, "ScanControl", "what:I inputs:I outputs:I body:I", infer_scan, nullptr, 1, nullptr, false, true},
};

constexpr GenericKernel kKernels[] = {
    {"ScanControl", run_scan, scan_scratch, nullptr, scan_turns},
};

}  // namespace

std::span<const PlainOperator> scan_operators() noexcept { return kOperators; }
std::span<const GenericKernel> scan_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
