// Scan: one node that runs its body for each place of its sequences, or the nodes of its unrolled body (lower_control.cc says when).
#include "src/importer/lower_control.h"

namespace sluice::importer {
namespace {

/// One run of a scan over its sequence: the states that it ends with, and for each scan output its values in order. False: the body has a
/// problem, which has been reported.
struct ScanRun {
  std::vector<ValueId> states;                // before, then after
  std::vector<std::vector<ValueId>> scanned;  // by scan output
};

bool scan(NodeContext& c, BodyLowering& bodies, const std::vector<ValueId>& sequences, const std::vector<std::int64_t>& axes,
          const std::vector<std::int64_t>& directions, ScanRun& run) {
  const OnnxGraph& body = body_of(c, "body");
  const std::size_t states = run.states.size();
  const auto listed = [](const std::vector<std::int64_t>& values, std::size_t i) { return i < values.size() ? values[i] : 0; };
  std::int64_t length = -1;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const Shape& shape = c.shape(sequences[s]);
    const std::int64_t extent = shape[c.axis(listed(axes, s), shape.rank())];
    if (length >= 0 && extent != length) c.malformed("its scanned inputs have different lengths");
    length = extent;
  }
  if (length > kMaxIterations) c.refuse("more than " + std::to_string(kMaxIterations) + " iterations");
  run.scanned.resize(body.outputs.size() - states);
  for (std::int64_t i = 0; i < length; ++i) {
    std::vector<ValueId> inputs = run.states;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const std::int64_t place = listed(directions, s) != 0 ? length - 1 - i : i;
      inputs.push_back(c.add_row(sequences[s], c.axis(listed(axes, s), c.shape(sequences[s]).rank()), place));
    }
    const std::vector<ValueId> outputs = bodies.lower_body(body, inputs);
    if (!all_valid(outputs)) return false;
    run.states.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(states));
    for (std::size_t s = 0; s < run.scanned.size(); ++s) run.scanned[s].push_back(outputs[states + s]);
  }
  for (const auto& values : run.scanned)
    if (values.empty()) c.refuse("it never runs, so that the shapes of its scan outputs are not known");
  return true;
}

/// What a Scan scans, from opset 9 on.
struct ScanForm {
  std::vector<ValueId> states, sequences;
  std::vector<std::int64_t> input_axes, input_directions, output_axes, output_directions;

  static std::int64_t listed(const std::vector<std::int64_t>& values, std::size_t i) { return i < values.size() ? values[i] : 0; }
};

/// What the body sees of a sequence: one place of the axis that is scanned.
Value slice_of(NodeContext& c, ValueId sequence, int axis) {
  if ((c.draft().value(sequence).bounded & ~(1u << axis)) != 0) c.refuse("a sequence has slices whose extents are known at run only");
  Value slice = like(c, sequence);
  std::vector<std::int64_t> dims(c.shape(sequence).dims().begin(), c.shape(sequence).dims().end());
  dims.erase(dims.begin() + axis);
  slice.shape = c.make_shape(dims);
  return slice;
}

/// One node that runs the body for each place. False: the body cannot run apart, or is as well unrolled.
bool lower_scan_apart(NodeContext& c, BodyLowering& bodies, const ScanForm& form) {
  const OnnxGraph& onnx = body_of(c, "body");
  std::vector<Value> inputs;
  std::vector<ValueId> operands;
  bool constant = true, bounded = false;
  for (const ValueId state : form.states) {
    if (c.bounded(state)) return false;
    inputs.push_back(like(c, state));
    operands.push_back(state);
    constant = constant && c.constant(state) != nullptr;
  }
  std::vector<std::int64_t> courses, output_courses;
  std::int64_t most = 0;
  for (std::size_t s = 0; s < form.sequences.size(); ++s) {
    const ValueId sequence = form.sequences[s];
    const int axis = c.axis(ScanForm::listed(form.input_axes, s), c.shape(sequence).rank());
    bounded = bounded || c.bounded(sequence);
    most = std::max(most, c.shape(sequence)[axis]);
    inputs.push_back(slice_of(c, sequence, axis));
    operands.push_back(sequence);
    constant = constant && c.constant(sequence) != nullptr;
    courses.insert(courses.end(), {axis, ScanForm::listed(form.input_directions, s)});
  }
  if (constant) return false;  // what can be computed now is
  ApartBody body;
  if (!bodies.lower_apart(onnx, inputs, body)) {
    if (bounded) c.refuse("the length of its sequences is known at run only, and its body cannot run apart: " + body.problem);
    return false;
  }
  if (!bounded && most * static_cast<std::int64_t>(onnx.nodes.size()) <= kWorthUnrolling && has_any(body, kLayersButProducts)) return false;
  std::vector<Joined> results;
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const Value& value = body.draft.value(body.outputs[i]);
    Joined result{run_type(value), value.shape, 0};
    if (value.bounded != 0) c.refuse("a value of its body has extents that are known at run only");
    if (i < form.states.size()) {
      if (!(value.shape == inputs[i].shape) || result.dtype != inputs[i].dtype) return false;
    } else {
      const std::size_t o = i - form.states.size();
      const int axis = c.axis(ScanForm::listed(form.output_axes, o), value.shape.rank() + 1);
      std::vector<std::int64_t> dims(value.shape.dims().begin(), value.shape.dims().end());
      dims.insert(dims.begin() + axis, most);
      result.most = c.make_shape(dims);
      result.bounded = static_cast<std::uint8_t>(bounded ? 1u << axis : 0u);
      output_courses.insert(output_courses.end(), {axis, ScanForm::listed(form.output_directions, o)});
    }
    results.push_back(result);
  }
  const std::vector<std::int64_t> what = {static_cast<std::int64_t>(form.states.size()), most, bounded};
  add_runner(c, "RunScan", std::move(operands), {what, courses, output_courses}, {finish_body(std::move(body))}, results);
  return true;
}

bool try_scan_apart(NodeContext& c, BodyLowering& bodies, const ScanForm& form) {
  const auto bounded = [&](ValueId sequence) { return c.bounded(sequence); };
  try {
    return lower_scan_apart(c, bodies, form);
  } catch (const Refusal& refusal) {
    if (refusal.code() != ErrorCode::kUnsupported || std::any_of(form.sequences.begin(), form.sequences.end(), bounded)) throw;
    c.forget_outputs();
    return false;
  }
}

void unroll_scan(NodeContext& c, BodyLowering& bodies, const ScanForm& form) {
  ScanRun run{form.states, {}};
  if (!scan(c, bodies, form.sequences, form.input_axes, form.input_directions, run)) return;
  for (std::size_t s = 0; s < run.scanned.size(); ++s) {
    const std::size_t output = form.states.size() + s;
    if (!c.wants_output(output)) continue;
    std::vector<ValueId>& values = run.scanned[s];
    if (ScanForm::listed(form.output_directions, s) != 0) std::reverse(values.begin(), values.end());
    c.set_output(output, c.add_stack(values, c.axis(ScanForm::listed(form.output_axes, s), c.shape(values[0]).rank() + 1)));
  }
  set_outputs(c, run.states);
}

}  // namespace

void lower_scan(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph& body = body_of(c, "body");
  // Opset 8: the lengths come first, and every input and output has a batch axis in front.
  const bool batched = c.opset() < 9;
  if (batched && c.has_input(0)) c.refuse("lengths of its sequences");
  const std::size_t first = batched ? 1 : 0;
  const std::int64_t scans = c.integer("num_scan_inputs", 0);
  if (c.input_count() < first || scans < 1 || scans > static_cast<std::int64_t>(c.input_count() - first))
    c.malformed("attribute num_scan_inputs is out of range");
  const std::size_t states = c.input_count() - first - static_cast<std::size_t>(scans);
  if (body.inputs.size() != c.input_count() - first || body.outputs.size() < states)
    c.malformed("its body has not the inputs and outputs of a scan's");
  std::vector<ValueId> before, sequences;
  for (std::size_t i = first; i < c.input_count(); ++i) (i < first + states ? before : sequences).push_back(c.input(i));
  if (!batched) {
    const ScanForm form{before,
                        sequences,
                        c.integers("scan_input_axes"),
                        c.integers("scan_input_directions"),
                        c.integers("scan_output_axes"),
                        c.integers("scan_output_directions")};
    if (!try_scan_apart(c, bodies, form)) unroll_scan(c, bodies, form);
    return;
  }
  if (c.shape(sequences[0]).rank() < 2) c.malformed("its sequences have no batch axis");
  const std::int64_t batches = c.shape(sequences[0])[0];
  if (batches > kMaxIterations) c.refuse("more than " + std::to_string(kMaxIterations) + " sequences");
  std::vector<std::vector<ValueId>> outputs(body.outputs.size());  // by output, one for each entry of the batch
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto entry = [&](const std::vector<ValueId>& values) {
      std::vector<ValueId> rows;
      for (const ValueId value : values) {
        if (c.shape(value).rank() < 1 || c.shape(value)[0] != batches) c.malformed("its inputs differ in their batch axis");
        rows.push_back(c.add_row(value, 0, b));
      }
      return rows;
    };
    ScanRun run{entry(before), {}};
    if (!scan(c, bodies, entry(sequences), {}, c.integers("directions"), run)) return;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      outputs[o].push_back(o < states ? run.states[o] : c.add_stack(run.scanned[o - states], 0));
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (c.wants_output(o)) c.set_output(o, c.add_stack(outputs[o], 0));
}

}  // namespace sluice::importer
