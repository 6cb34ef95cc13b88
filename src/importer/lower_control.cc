// If, Loop and Scan become the nodes of their bodies, or one node that runs them as subgraphs where values decide their course.
//
//   If     a constant condition chooses the branch; with one of the run time the nodes of both become nodes of the graph, and a node Choose
//          for each result, from which it follows what runs (operators/guards.h); where that cannot be, one node runs the branch that is
//          taken
//   Loop   a constant number of iterations, or a condition that is constant in each of them: unrolled; else, and where that would be many
//          nodes, one node runs its body
//   Scan   one node runs its body; unrolled over the extent of the axis that it scans where the body cannot run apart, or holds
//          convolutions and the like and is short
#include "src/importer/lower_control.h"

#include "src/importer/lower_sequence.h"

namespace sluice::importer {
namespace {

/// What ONNX calls nodes that are not of the long tail, as far as a decision here asks.
struct OnnxName {
  model::OpKind op;
  std::string_view name;
};
constexpr OnnxName kOnnxNames[] = {{model::OpKind::kConv, "Conv"},      {model::OpKind::kConvTranspose, "ConvTranspose"},
                                   {model::OpKind::kDense, "MatMul"},   {model::OpKind::kMatMul, "MatMul"},
                                   {model::OpKind::kRecurrent, "LSTM"}, {model::OpKind::kEmbedding, "Gather"}};

std::string_view onnx_name(const DraftNode& node) {
  for (const OnnxName& known : kOnnxNames)
    if (known.op == node.op) return known.name;
  const auto* attributes = std::get_if<model::PlainAttributes>(&node.attributes);
  const kernels::PlainOperator* op = attributes == nullptr ? nullptr : kernels::find_plain(attributes->op);
  return op == nullptr ? std::string_view() : op->name;
}

/// The truth of a constant, or nothing.
std::optional<bool> constant_truth(const NodeContext& c, ValueId value) {
  const Constant* constant = c.constant(value);
  const auto truth = constant == nullptr ? std::nullopt : uniform_value(*constant);
  if (!truth) return std::nullopt;
  return *truth != 0;
}

bool join(const Value& yes, const Value& no, Joined& out) {
  out.dtype = run_type(yes);
  if (run_type(no) != out.dtype || yes.shape.rank() != no.shape.rank()) return false;
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
  yes.draft.fails_at_run = no.draft.fails_at_run = true;
  if (!bodies.lower_apart(body_of(c, "then_branch"), {}, yes) || !bodies.lower_apart(body_of(c, "else_branch"), {}, no)) return false;
  if (yes.outputs.size() != no.outputs.size()) c.malformed("its branches have different numbers of outputs");
  std::vector<Joined> results(yes.outputs.size());
  bool equal = true;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!join(yes.draft.value(yes.outputs[i]), no.draft.value(no.outputs[i]), results[i])) return false;
    equal = equal && results[i].bounded == 0;
  }
  const auto either = [&](std::span<const std::string_view> operators) { return has_any(yes, operators) || has_any(no, operators); };
  if (equal && either(kLayers) && !either(kFailing)) return false;  // both may as well run
  add_runner(c, "RunIf", {c.input(0)}, {}, {finish_body(std::move(yes)), finish_body(std::move(no))}, results);
  return true;
}

/// The same, where what cannot be is no problem yet: `why` says what it was.
bool try_if_apart(NodeContext& c, BodyLowering& bodies, std::string& why) {
  try {
    return lower_if_apart(c, bodies);
  } catch (const Refusal& refusal) {
    if (refusal.code() != ErrorCode::kUnsupported) throw;
    why = refusal.what();
    c.forget_outputs();
    return false;
  }
}

/// The condition where the executor can look at it (operators/guards.h): what a body captures lies outside of its plan, so it is copied.
ValueId condition_of(NodeContext& c) {
  const ValueId condition = c.input(0);
  const auto is_it = [&](const DraftPort& port) { return port.value == condition; };
  if (!c.draft().in_body || std::none_of(c.draft().inputs.begin(), c.draft().inputs.end(), is_it)) return condition;
  return add_plain(c, "Identity", {condition});
}

/// One of the two, as the condition says: with the extents that the branch gave.
ValueId add_choice(NodeContext& c, ValueId condition, ValueId yes, ValueId no, const std::string& why) {
  if (c.run_time_type(yes) != c.run_time_type(no) || c.shape(yes).rank() != c.shape(no).rank()) {
    c.note_value_inputs(c.input(0));
    c.refuse("the condition is computed at run time and the branches give " + c.shape(yes).to_string() + " and " + c.shape(no).to_string() +
             (why.empty() ? "" : "; " + why) + "; supported are a constant condition, or branches that give one type and number of axes");
  }
  const auto bounded = static_cast<std::uint8_t>(c.draft().value(yes).bounded | c.draft().value(no).bounded);
  const ValueId chosen = add_plain(c, "Choose", {condition, yes, no});
  c.draft().value(chosen).bounded |= bounded;
  return chosen;
}

/// The same of sequences, item by item.
ValueId add_choice_of_lists(NodeContext& c, ValueId condition, ValueId yes, ValueId no, const std::string& why) {
  const Value &first = c.draft().value(yes), &second = c.draft().value(no);
  if (first.items == nullptr || second.items == nullptr || first.items->size() != second.items->size()) {
    c.note_value_inputs(c.input(0));
    c.refuse("the condition is computed at run time and its branches give sequences of other lengths, or an optional without a value");
  }
  const std::vector<ValueId> of_yes = *first.items, of_no = *second.items;
  std::vector<ValueId> chosen;
  for (std::size_t i = 0; i < of_yes.size(); ++i) chosen.push_back(add_choice(c, condition, of_yes[i], of_no[i], why));
  return add_sequence(c, std::move(chosen));
}

/// The nodes of both branches, and what chooses between their results. False: a branch has a problem, which has been reported.
bool lower_if_in_place(NodeContext& c, BodyLowering& bodies, const std::string& why) {
  const ValueId condition = condition_of(c);
  const std::vector<ValueId> yes = bodies.lower_body(body_of(c, "then_branch"), {});
  const std::vector<ValueId> no = bodies.lower_body(body_of(c, "else_branch"), {});
  if (!all_valid(yes) || !all_valid(no)) return false;
  if (yes.size() != no.size()) c.malformed("its branches have different numbers of outputs");
  for (std::size_t i = 0; i < yes.size(); ++i) {
    if (!c.wants_output(i)) continue;
    if (is_list(c.draft().value(yes[i])) || is_list(c.draft().value(no[i]))) {
      c.set_output(i, add_choice_of_lists(c, condition, yes[i], no[i], why));
      continue;
    }
    if (c.shape(yes[i]).element_count() == 0 || c.shape(no[i]).element_count() == 0) c.refuse("a branch gives a tensor without elements");
    c.set_output(i, add_choice(c, condition, yes[i], no[i], why));
  }
  return true;
}

void lower_if(NodeContext& c, BodyLowering& bodies) {
  if (const auto truth = constant_truth(c, c.input(0)))
    return set_outputs(c, bodies.lower_body(body_of(c, *truth ? "then_branch" : "else_branch"), {}));
  if (bodies.try_in_place([&] { return lower_if_in_place(c, bodies, ""); })) return;
  std::string why;
  if (!try_if_apart(c, bodies, why) && !lower_if_in_place(c, bodies, why)) c.forget_outputs();
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

/// Does a loop go on until its count says so, whatever it computes?
bool always_goes_on(const NodeContext& c, const ApartBody& body) {
  const Value& next = body.draft.value(body.outputs[0]);
  const auto truth = next.constant ? uniform_value(*next.constant) : std::nullopt;
  const bool begins = !c.has_input(1) || constant_truth(c, c.input(1)).value_or(false);
  return begins && (body.outputs[0] == body.draft.inputs[1].value || (truth && *truth != 0));
}

/// One node that runs the body as often as values say; or `as_counted`, refused where anything but a constant count says how often.
void lower_loop_apart(NodeContext& c, BodyLowering& bodies, bool as_counted = false) {
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
    if (is_list(c.draft().value(c.input(i + 2)))) {
      for (const std::size_t decides : {0, 1})
        if (c.has_input(decides)) c.note_value_inputs(c.input(decides));
      c.refuse("it carries a sequence, and how often it runs is known at run only");
    }
    if (c.bounded(c.input(i + 2))) c.refuse("a carried value has extents that are known at run only");
    inputs.push_back(like(c, c.input(i + 2)));
    operands.push_back(c.input(i + 2));
  }
  ApartBody body;
  if (!bodies.lower_apart(onnx, inputs, body))
    c.refuse("how often it runs is known at run only, and its body cannot run apart: " + body.problem);
  if (as_counted && (!always_goes_on(c, body) || has_any(body, kLayersButProducts))) c.refuse("it unrolls as well");
  const auto value_of = [&](std::size_t output) { return body.draft.value(body.outputs[output]); };
  for (std::size_t i = 0; i < carried; ++i)
    if (value_of(i + 1).bounded != 0 || !(value_of(i + 1).shape == inputs[i + 2].shape))
      c.refuse("a carried value changes its shape from " + inputs[i + 2].shape.to_string() + " to " + value_of(i + 1).shape.to_string());
  std::vector<Joined> results;
  const bool stacks = body.outputs.size() > carried + 1;
  const bool counted = c.has_input(0) && c.input_constant(0) != nullptr;
  std::int64_t most = stacks || counted ? room_for_iterations(c, carried) : 0;
  if (!stacks && most > kMaxIterations) most = 0;  // exporters write the largest number for "no limit"
  for (std::size_t i = 0; i + 1 < body.outputs.size(); ++i) {
    const Value value = value_of(i + 1);
    Joined result{run_type(value), value.shape, 0};
    if (i >= carried) {
      std::vector<std::int64_t> dims = {most};
      dims.insert(dims.end(), value.shape.dims().begin(), value.shape.dims().end());
      result.most = c.make_shape(dims);
      result.bounded = as_counted ? 0 : 1;
      if (value.bounded != 0) c.refuse("a stacked value has extents that are known at run only");
    }
    results.push_back(result);
  }
  const std::vector<std::int64_t> what = {static_cast<std::int64_t>(carried), c.has_input(0), c.has_input(1), most};
  add_runner(c, "RunLoop", std::move(operands), {what}, {finish_body(std::move(body))}, results);
}

/// A loop that would unroll to many nodes. False: its body cannot run apart.
bool try_loop_apart(NodeContext& c, BodyLowering& bodies) {
  try {
    lower_loop_apart(c, bodies, true);
    return true;
  } catch (const Refusal& refusal) {
    if (refusal.code() != ErrorCode::kUnsupported) throw;
    c.forget_outputs();
    return false;
  }
}

void lower_loop(NodeContext& c, BodyLowering& bodies) {
  const OnnxGraph& body = body_of(c, "body");
  std::int64_t most = kMaxIterations + 1;
  if (c.has_input(0) && c.input_constant(0) == nullptr) return lower_loop_apart(c, bodies);
  if (c.has_input(0)) {
    const std::vector<std::int64_t> count = c.constant_integers(0, "the number of iterations");
    if (count.size() != 1) c.malformed("the number of iterations must be one number");
    most = count[0];
    bool computed = false;
    for (std::size_t i = 2; i < c.input_count(); ++i) computed = computed || c.constant(c.input(i)) == nullptr;
    const auto nodes = std::max<std::int64_t>(1, static_cast<std::int64_t>(body.nodes.size()));
    if (computed && most > kWorthUnrolling / nodes && try_loop_apart(c, bodies)) return;
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
    for (const ValueId value : scanned[s])
      if (is_list(c.draft().value(value))) c.malformed("it stacks sequences, which are no tensors");
    if (scanned[s].empty()) c.refuse("it never runs, so that the shape of its scan output is not known");
    c.set_output(carried.size() + s, c.add_stack(scanned[s], 0));
  }
  set_outputs(c, carried);
}

}  // namespace

bool has_any(const ApartBody& body, std::span<const std::string_view> operators) {
  return std::any_of(body.draft.nodes.begin(), body.draft.nodes.end(), [&](const DraftNode& node) {
    return std::find(operators.begin(), operators.end(), onnx_name(node)) != operators.end();
  });
}

void lower_control(NodeContext& c, BodyLowering& bodies) {
  if (c.node().op_type == "If") return lower_if(c, bodies);
  if (c.node().op_type == "Loop") return lower_loop(c, bodies);
  lower_scan(c, bodies);
}

}  // namespace sluice::importer
