// Subgraphs of a draft: bodies of If, Loop and Scan made complete, and the nodes that run them.
#include <algorithm>

#include "sluice/kernels/kernel.h"
#include "src/importer/lower_control.h"

namespace sluice::importer {
namespace {

model::PlainAttributes plain(std::string_view name) {
  model::PlainAttributes attributes;
  attributes.op = kernels::find_plain(name)->number;
  attributes.present = 1;
  return attributes;
}

/// An output that is an input, a constant or another output as well is copied; one without elements is made by nobody.
void give_own_bytes(ApartBody& body) {
  Draft& draft = body.draft;
  std::set<ValueId> taken;
  for (const DraftPort& port : draft.inputs) taken.insert(port.value);
  for (ValueId& output : body.outputs) {
    const bool empty = draft.value(output).shape.element_count() == 0;
    if (!empty && !draft.value(output).constant && taken.insert(output).second) continue;
    Value copy = draft.value(output);
    copy.constant.reset();
    copy.dtype = run_type(copy);
    const ValueId from = output;
    output = draft.add_value(std::move(copy));
    if (empty) continue;
    DraftNode node;
    node.name = draft.value(output).name + ":given";
    node.op = model::OpKind::kPlain;
    node.attributes = plain("Identity");
    node.inputs = {from};
    node.output = output;
    draft.nodes.push_back(std::move(node));
  }
}

/// As an argument has them (operators/generic/control.h).
std::vector<std::int64_t> words_of(const std::vector<Joined>& results) {
  std::vector<std::int64_t> words;
  for (const Joined& result : results) {
    words.insert(words.end(), {static_cast<std::int64_t>(result.dtype), result.bounded, result.most.rank()});
    words.insert(words.end(), result.most.dims().begin(), result.most.dims().end());
  }
  return words;
}

/// Where among `inputs` the value is, which it is behind them at the latest.
std::size_t place_of(std::vector<ValueId>& inputs, ValueId value) {
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  const auto place = static_cast<std::size_t>(found - inputs.begin());
  if (found == inputs.end()) inputs.push_back(value);
  return place;
}

}  // namespace

MadeBody finish_body(ApartBody body) {
  give_own_bytes(body);
  Draft& draft = body.draft;
  for (const ValueId output : body.outputs) draft.outputs.push_back({draft.value(output).name, output});
  compact(draft);
  std::set<ValueId> read;
  for (const DraftNode& node : draft.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  MadeBody made;
  const std::size_t own = draft.inputs.size() - body.captured.size();
  std::vector<DraftPort> inputs(draft.inputs.begin(), draft.inputs.begin() + static_cast<std::ptrdiff_t>(own));
  for (std::size_t i = 0; i < body.captured.size(); ++i) {
    if (!read.contains(draft.inputs[own + i].value)) continue;
    inputs.push_back(draft.inputs[own + i]);
    made.captured.push_back(body.captured[i]);
  }
  draft.inputs = std::move(inputs);
  made.draft = std::make_shared<Draft>(std::move(draft));
  return made;
}

void add_runner(NodeContext& c, std::string_view op, std::vector<ValueId> own, std::vector<std::vector<std::int64_t>> arguments,
                const std::vector<MadeBody>& bodies, const std::vector<Joined>& results) {
  constexpr std::size_t kMostInputs = 32;
  std::vector<ValueId> inputs = std::move(own);
  DraftNode node;
  for (const MadeBody& body : bodies) {
    DraftBody made{body.draft, {}};
    for (const ValueId value : body.captured) made.captured.push_back(place_of(inputs, value));
    node.bodies.push_back(std::move(made));
  }
  if (inputs.size() > kMostInputs) c.refuse("it reads more than 32 values from outside");
  if (inputs.empty()) c.refuse("it reads nothing, so that it is the same in each run");
  for (const ValueId input : inputs)
    if (c.shape(input).element_count() == 0) c.refuse("an input is empty");
  arguments.push_back(words_of(results));
  model::PlainAttributes attributes = plain(op);
  attributes.present = static_cast<std::uint32_t>((std::uint64_t{1} << inputs.size()) - 1);
  for (const std::vector<std::int64_t>& list : arguments) {
    attributes.arguments.push_back(static_cast<std::int64_t>(list.size()));
    attributes.arguments.insert(attributes.arguments.end(), list.begin(), list.end());
  }
  std::vector<kernels::PlainTensor> tensors;
  for (const ValueId input : inputs) tensors.push_back({c.run_time_type(input), c.shape(input)});
  kernels::PlainTensor packed;
  const kernels::PlainNode asked(*kernels::find_plain(op), kernels::form_of(attributes), tensors);
  if (const kernels::PlainRefusal refusal = kernels::infer_plain(asked, packed)) c.refuse(refusal);
  const ValueId value = c.add(model::OpKind::kPlain, std::move(inputs), packed.shape, std::move(attributes));
  c.draft().value(value).dtype = packed.dtype;
  c.last_node().bodies = std::move(node.bodies);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!c.wants_output(i)) continue;
    const Joined& result = results[i];
    const std::vector<std::int64_t> shape(result.most.dims().begin(), result.most.dims().end());
    c.set_output(i, add_plain(c, "TakeResult", {value},
                              {{static_cast<std::int64_t>(i)}, {static_cast<std::int64_t>(result.dtype)}, {result.bounded}, shape}));
  }
}

}  // namespace sluice::importer
