// If, Loop and Scan become the nodes of their bodies, or one node that runs them where values decide their course (body.h).
//
//   If     a constant condition chooses the branch; with one of the run time one node runs the branch that is taken. Branches with large
//          layers and equal results both run instead, by the fast kernels, and Where chooses
//   Loop   a constant number of iterations, or a condition that is constant in each of them: unrolled; else one node runs its body
//   Scan   unrolled over the extent of the axis that it scans
#include <algorithm>
#include <optional>

#include "src/importer/body.h"
#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

constexpr std::int64_t kMaxIterations = 1 << 14;

const OnnxGraph& body_of(const NodeContext& c, std::string_view attribute) {
  const OnnxAttribute* a = c.attribute(attribute);
  if (a == nullptr || !a->graph) c.malformed("attribute " + std::string(attribute) + " holds no graph");
  return *a->graph;
}

bool all_valid(const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [](ValueId value) { return value.valid(); });
}

/// The truth of a constant, or nothing.
std::optional<bool> constant_truth(const NodeContext& c, ValueId value) {
  const Constant* constant = c.constant(value);
  const auto truth = constant == nullptr ? std::nullopt : uniform_value(*constant);
  if (!truth) return std::nullopt;
  return *truth != 0;
}

void set_outputs(NodeContext& c, const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) c.set_output(i, values[i]);
}

/// Do the fast kernels make such a difference that both branches may as well run?
bool has_layers(const ApartBody& body) {
  constexpr std::string_view kLayers[] = {"Conv", "ConvTranspose", "MatMul", "LSTM", "GRU", "RNN", "Attention"};
  return std::any_of(body.draft.nodes.begin(), body.draft.nodes.end(), [&](const DraftNode& node) {
    const auto* attributes = std::get_if<model::PlainAttributes>(&node.attributes);
    const kernels::PlainOperator* op = attributes == nullptr ? nullptr : kernels::find_plain(attributes->op);
    return op != nullptr && std::find(std::begin(kLayers), std::end(kLayers), op->name) != std::end(kLayers);
  });
}

/// What a result of two branches is at the most.
struct Joined {
  DType dtype = DType::kF32;
  Shape most;
  std::uint8_t bounded = 0;
};

bool join(const Value& yes, const Value& no, Joined& out) {
  out.dtype = is_float(yes.dtype) ? DType::kF32 : yes.dtype;
  if ((is_float(no.dtype) ? DType::kF32 : no.dtype) != out.dtype || yes.shape.rank() != no.shape.rank()) return false;
  out.most = yes.shape;
  out.bounded = yes.bounded | no.bounded;
  for (int axis = 0; axis < out.most.rank(); ++axis) {
    if (yes.shape[axis] != no.shape[axis]) out.bounded = static_cast<std::uint8_t>(out.bounded | 1u << axis);
    out.most[axis] = std::max(yes.shape[axis], no.shape[axis]);
  }
  return true;
}

/// One node that runs the branch that is taken. False: a branch has no plain form, or both may as well run.
bool lower_if_apart(NodeContext& c, BodyLowering& bodies) {
  ApartBody yes, no;
  if (!bodies.lower_apart(body_of(c, "then_branch"), {}, yes) || !bodies.lower_apart(body_of(c, "else_branch"), {}, no)) return false;
  if (yes.outputs.size() != no.outputs.size()) c.malformed("its branches have different numbers of outputs");
  std::vector<Joined> results(yes.outputs.size());
  bool equal = true;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!join(yes.draft.value(yes.outputs[i]), no.draft.value(no.outputs[i]), results[i])) return false;
    equal = equal && results[i].bounded == 0;
  }
  if (equal && (has_layers(yes) || has_layers(no))) return false;
  const EncodedBody first = encode_body(c, std::move(yes), 0), second = encode_body(c, std::move(no), 0);
  std::vector<ValueId> inputs = {c.input(0)};
  inputs.insert(inputs.end(), first.given.begin(), first.given.end());
  inputs.insert(inputs.end(), second.given.begin(), second.given.end());
  if (inputs.size() > 32) c.refuse("its branches read more than 31 values from outside");
  const ValueId packed = add_plain(c, "Control", std::move(inputs), {{}, first.words, second.words});
  for (std::size_t i = 0; i < results.size(); ++i)
    c.set_output(i, add_result(c, packed, i, results[i].dtype, results[i].most, results[i].bounded));
  return true;
}

void lower_if(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph &then_body = body_of(c, "then_branch"), &else_body = body_of(c, "else_branch");
  if (const auto truth = constant_truth(c, c.input(0))) return set_outputs(c, bodies.lower_body(*truth ? then_body : else_body, {}));
  std::string why;
  try {
    if (lower_if_apart(c, bodies)) return;
  } catch (const Refusal& refusal) {
    if (refusal.code() != ErrorCode::kUnsupported) throw;
    why = refusal.what();
  }
  const std::vector<ValueId> yes = bodies.lower_body(then_body, {}), no = bodies.lower_body(else_body, {});
  if (!all_valid(yes) || !all_valid(no)) return;
  if (yes.size() != no.size()) c.malformed("its branches have different numbers of outputs");
  for (std::size_t i = 0; i < yes.size(); ++i) {
    if (!(c.shape(yes[i]) == c.shape(no[i])) || c.run_time_type(yes[i]) != c.run_time_type(no[i]))
      c.refuse("the condition is computed at run time and the branches give " + c.shape(yes[i]).to_string() + " and " +
               c.shape(no[i]).to_string() + (why.empty() ? "" : "; " + why) +
               "; supported are a constant condition, branches that give equal shapes, or branches of plain operators");
    c.set_output(i, add_plain(c, "Where", {c.input(0), yes[i], no[i]}));
  }
}

/// How many iterations there is room for, where values are stacked: the constant count, or the stated bound of a stacked output.
std::int64_t room_for_iterations(NodeContext& c, std::size_t carried) {
  const Constant* count = c.has_input(0) ? c.input_constant(0) : nullptr;
  if (count != nullptr && count->elements() == 1) return std::max<std::int64_t>(read_integer(*count, 0), 0);
  for (std::size_t i = carried; i < c.output_count(); ++i) {
    if (!c.wants_output(i)) continue;
    const std::string name(c.node().outputs[i]);
    const auto stated = c.draft().bounds.find(name);
    if (stated != c.draft().bounds.end() && stated->second.rank() > 0) {
      for (std::size_t other = carried; other < c.output_count(); ++other)
        c.draft().used_bounds.insert(std::string(c.node().outputs[other]));
      return stated->second[0];
    }
    c.draft().wanted_bounds.insert(name);
  }
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i)) c.note_value_inputs(c.input(i));
  c.refuse("how often it runs is known at run only; supported is a number below the stated bound of a stacked output");
}

/// One node that runs the body as often as values say.
void lower_loop_apart(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph& onnx = body_of(c, "body");
  const std::size_t carried = c.input_count() > 2 ? c.input_count() - 2 : 0;
  Value number, condition;
  number.dtype = DType::kI64;
  condition.dtype = DType::kBool;
  std::vector<Value> inputs = {number, condition};
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < 2; ++i)
    if (c.has_input(i)) operands.push_back(c.input(i));
  for (std::size_t i = 0; i < carried; ++i) {
    Value value;
    value.dtype = c.run_time_type(c.input(i + 2));
    value.shape = c.shape(c.input(i + 2));
    if (c.bounded(c.input(i + 2))) c.refuse("a carried value has extents that are known at run only");
    inputs.push_back(value);
    operands.push_back(c.input(i + 2));
  }
  ApartBody body;
  if (!bodies.lower_apart(onnx, inputs, body))
    c.refuse("how often it runs is known at run only, and its body cannot run apart: " + body.problem);
  const auto value_of = [&](std::size_t output) { return body.draft.value(body.outputs[output]); };
  for (std::size_t i = 0; i < carried; ++i)
    if (value_of(i + 1).bounded != 0 || !(value_of(i + 1).shape == inputs[i + 2].shape))
      c.refuse("a carried value changes its shape from " + inputs[i + 2].shape.to_string() + " to " + value_of(i + 1).shape.to_string());
  std::vector<Joined> results;
  const bool stacks = body.outputs.size() > carried + 1;
  const std::int64_t most = stacks ? room_for_iterations(c, carried) : 0;
  for (std::size_t i = 0; i + 1 < body.outputs.size(); ++i) {
    const Value value = value_of(i + 1);
    Joined result{is_float(value.dtype) ? DType::kF32 : value.dtype, value.shape, 0};
    if (i >= carried) {
      std::vector<std::int64_t> dims = {most};
      dims.insert(dims.end(), value.shape.dims().begin(), value.shape.dims().end());
      result.most = c.make_shape(dims);
      result.bounded = 1;
      if (value.bounded != 0) c.refuse("a stacked value has extents that are known at run only");
    }
    results.push_back(result);
  }
  const EncodedBody first = encode_body(c, std::move(body), 2 + carried);
  operands.insert(operands.end(), first.given.begin(), first.given.end());
  if (operands.size() > 32) c.refuse("it reads more than 32 values from outside");
  const std::vector<std::int64_t> what = {static_cast<std::int64_t>(carried), c.has_input(0), c.has_input(1), most};
  const ValueId packed = add_plain(c, "Control", std::move(operands), {what, first.words, {}});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (c.wants_output(i)) c.set_output(i, add_result(c, packed, i, results[i].dtype, results[i].most, results[i].bounded));
}

void lower_loop(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph& body = body_of(c, "body");
  std::int64_t most = kMaxIterations + 1;
  if (c.has_input(0) && c.input_constant(0) == nullptr) return lower_loop_apart(c, bodies);
  if (c.has_input(0)) {
    const std::vector<std::int64_t> count = c.constant_integers(0, "the number of iterations");
    if (count.size() != 1) c.malformed("the number of iterations must be one number");
    most = count[0];
  }
  ValueId condition = c.has_input(1) ? c.input(1) : ValueId();
  std::vector<ValueId> carried;
  for (std::size_t i = 2; i < c.input_count(); ++i) carried.push_back(c.input(i));
  if (body.inputs.size() != carried.size() + 2 || body.outputs.size() < carried.size() + 1)
    c.malformed("its body has not the inputs and outputs of a loop's");
  std::vector<std::vector<ValueId>> scanned(body.outputs.size() - 1 - carried.size());
  const std::int64_t yes = 1;
  const ValueId truth = c.add_constant(make_constant(Shape{}, std::span(&yes, 1), DType::kBool));
  for (std::int64_t i = 0; i < most; ++i) {
    const auto goes_on = condition.valid() ? constant_truth(c, condition) : std::optional<bool>(true);
    if (!goes_on || (*goes_on && i >= kMaxIterations && c.has_input(0))) return lower_loop_apart(c, bodies);
    if (!*goes_on) break;
    if (i >= kMaxIterations) c.refuse("it does not end");
    std::vector<ValueId> inputs = {c.add_constant(make_constant(Shape{}, std::span(&i, 1))), condition.valid() ? condition : truth};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<ValueId> outputs = bodies.lower_body(body, inputs);
    if (!all_valid(outputs)) return;
    condition = outputs[0];
    for (std::size_t v = 0; v < carried.size(); ++v) carried[v] = outputs[v + 1];
    for (std::size_t s = 0; s < scanned.size(); ++s) scanned[s].push_back(outputs[carried.size() + 1 + s]);
  }
  for (std::size_t s = 0; s < scanned.size(); ++s) {
    if (!c.wants_output(carried.size() + s)) continue;
    if (scanned[s].empty()) c.refuse("it never runs, so that the shape of its scan output is not known");
    c.set_output(carried.size() + s, c.add_stack(scanned[s], 0));
  }
  set_outputs(c, carried);
}

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
    ScanRun run{before, {}};
    if (!scan(c, bodies, sequences, c.integers("scan_input_axes"), c.integers("scan_input_directions"), run)) return;
    const std::vector<std::int64_t> axes = c.integers("scan_output_axes"), directions = c.integers("scan_output_directions");
    for (std::size_t s = 0; s < run.scanned.size(); ++s) {
      if (!c.wants_output(states + s)) continue;
      std::vector<ValueId>& values = run.scanned[s];
      if (s < directions.size() && directions[s] != 0) std::reverse(values.begin(), values.end());
      c.set_output(states + s, c.add_stack(values, c.axis(s < axes.size() ? axes[s] : 0, c.shape(values[0]).rank() + 1)));
    }
    return set_outputs(c, run.states);
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

}  // namespace

void lower_control(NodeContext& c, BodyLowering& bodies) {
  if (c.node().op_type == "If") return lower_if(c, bodies);
  if (c.node().op_type == "Loop") return lower_loop(c, bodies);
  lower_scan(c, bodies);
}

}  // namespace sluice::importer
