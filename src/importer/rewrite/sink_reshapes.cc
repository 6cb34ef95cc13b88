#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

class Sink {
 public:
  explicit Sink(Draft& draft) : draft_(draft), uses_(draft), maker_(draft.values.size(), Uses::kNone), alias_(draft.values.size()) {}

  void run() {
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (DraftNode& node : nodes) {
      for (ValueId& input : node.inputs) input = resolve(input);
      if (node.op == OpKind::kReshape)
        add_reshape(std::move(node));
      else if (passes(node))
        hoist(std::move(node));
      else
        push(std::move(node));
    }
    for (DraftPort& port : draft_.outputs) port.value = resolve(port.value);
  }

 private:
  ValueId resolve(ValueId value) const {
    return value.index() < alias_.size() && alias_[value.index()].valid() ? alias_[value.index()] : value;
  }

  const DraftNode* reshape_before(ValueId value) const {
    const std::size_t maker = maker_[value.index()];
    return maker != Uses::kNone && draft_.nodes[maker].op == OpKind::kReshape ? &draft_.nodes[maker] : nullptr;
  }

  void push(DraftNode node) {
    maker_[node.output.index()] = draft_.nodes.size();
    draft_.nodes.push_back(std::move(node));
  }

  void add_reshape(DraftNode node) {
    if (const DraftNode* before = reshape_before(node.inputs[0])) node.inputs[0] = before->inputs[0];
    const bool same = draft_.value(node.inputs[0]).shape == draft_.value(node.output).shape;
    if (same && !uses_.is_output[node.output.index()]) {
      alias_[node.output.index()] = node.inputs[0];
      return;
    }
    push(std::move(node));
  }

  /// May the node work on the values before they are reshaped?
  bool passes(const DraftNode& node) const {
    if (node.inputs.empty()) return false;
    const DraftNode* first = reshape_before(node.inputs[0]);
    if (first == nullptr || !uses_.single_reader(first->output)) return false;
    const Shape& before = draft_.value(first->inputs[0]).shape;
    const Shape& after = draft_.value(first->output).shape;
    if (node.op == OpKind::kUnary) return true;
    if (node.op == OpKind::kAffine) return before.rank() > 2 && after.rank() > 2 && before[0] == after[0] && before[1] == after[1];
    if (node.op != OpKind::kBinary || node.inputs.size() != 2) return false;
    const DraftNode* second = reshape_before(node.inputs[1]);
    return second != nullptr && draft_.value(second->inputs[0]).shape == before && draft_.value(second->output).shape == after;
  }

  void hoist(DraftNode node) {
    const Shape before = draft_.value(reshape_before(node.inputs[0])->inputs[0]).shape;
    for (ValueId& input : node.inputs) input = reshape_before(input)->inputs[0];
    Value value;
    value.name = draft_.value(node.output).name + ":unshaped";
    value.shape = before;
    const ValueId inner = draft_.add_value(std::move(value));
    maker_.push_back(Uses::kNone);
    DraftNode reshape;
    reshape.name = node.name + ":reshape";
    reshape.op = OpKind::kReshape;
    reshape.inputs = {inner};
    reshape.output = node.output;
    node.output = inner;
    push(std::move(node));
    push(std::move(reshape));
  }

  Draft& draft_;
  Uses uses_;
  std::vector<std::size_t> maker_;  // into the nodes pushed so far
  std::vector<ValueId> alias_;
};

}  // namespace

void sink_reshapes(Draft& draft) { Sink(draft).run(); }

}  // namespace sluice::importer
