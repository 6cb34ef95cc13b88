#include <algorithm>

#include "src/importer/rewrite/perm.h"
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
      if (reshapes(node))
        add_reshape(std::move(node));
      else if (passes(node) || joins_dense(node))
        hoist(std::move(node));
      else if (works_on_planes(node))
        hoist_to_planes(std::move(node));
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

  /// A Transpose that moves axes of extent 1 only is a Reshape too; it becomes one.
  bool reshapes(DraftNode& node) const {
    if (node.op != OpKind::kTranspose) return node.op == OpKind::kReshape;
    const Perm& perm = std::get<model::TransposeAttributes>(node.attributes).perm;
    const std::vector<int> order = order_of(draft_.value(node.inputs[0]).shape, perm);
    if (!std::is_sorted(order.begin(), order.end())) return false;
    node.op = OpKind::kReshape;
    node.attributes = model::Attributes();
    return true;
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

  /// Is it x + y where x is a reshaped dense layer, perhaps with a bias, that could take y as its residual?
  bool joins_dense(DraftNode& node) const {
    if (node.op != OpKind::kBinary || node.as_binary() != model::BinaryFunction::kAdd) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId x = node.inputs[i], y = node.inputs[1 - i];
      const DraftNode* reshape = reshape_before(x);
      if (reshape == nullptr || !uses_.single_reader(x) || x == y || draft_.value(y).constant) continue;
      if (draft_.value(x).shape != draft_.value(y).shape || !is_dense(reshape->inputs[0])) continue;
      std::swap(node.inputs[0], node.inputs[i]);
      return true;
    }
    return false;
  }

  bool is_dense(ValueId value) const {
    const std::size_t maker = maker_[value.index()];
    // A value made here is read by the reshape that undoes it and by nothing else.
    const bool made_here = value.index() >= uses_.readers.size();
    if (maker == Uses::kNone || !(made_here || uses_.single_reader(value))) return false;
    const DraftNode& node = draft_.nodes[maker];
    if (node.op == OpKind::kDense) return true;
    if (node.op != OpKind::kBinary) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t before = maker_[node.inputs[i].index()];
      if (draft_.value(node.inputs[1 - i]).constant && before != Uses::kNone && draft_.nodes[before].op == OpKind::kDense) return true;
    }
    return false;
  }

  ValueId add_reshaped(const std::string& name, ValueId value, const Shape& shape) {
    DraftNode reshape;
    reshape.name = name;
    reshape.op = OpKind::kReshape;
    reshape.inputs = {value};
    reshape.output = add_value(name, shape);
    push(std::move(reshape));
    return draft_.nodes.back().output;
  }

  ValueId add_value(const std::string& name, const Shape& shape) {
    Value value;
    value.name = name;
    value.shape = shape;
    maker_.push_back(Uses::kNone);
    return draft_.add_value(std::move(value));
  }

  void hoist(DraftNode node) {
    const Shape before = draft_.value(reshape_before(node.inputs[0])->inputs[0]).shape;
    for (ValueId& input : node.inputs) {
      const DraftNode* reshape = reshape_before(input);
      const bool undone = reshape != nullptr && draft_.value(reshape->inputs[0]).shape == before;
      input = undone ? reshape->inputs[0] : add_reshaped(draft_.value(input).name + ":unshaped", input, before);
    }
    const ValueId inner = add_value(draft_.value(node.output).name + ":unshaped", before);
    DraftNode reshape;
    reshape.name = node.name + ":reshape";
    reshape.op = OpKind::kReshape;
    reshape.inputs = {inner};
    reshape.output = node.output;
    node.output = inner;
    push(std::move(node));
    push(std::move(reshape));
  }

  /// The planes [N * D, C, H, W] that a volume [N, C, D, H, W] was made of by a Reshape and a Transpose (lower_volume.cc); else invalid.
  ValueId planes_of(ValueId volume) const {
    const std::size_t maker = maker_[volume.index()];
    if (maker == Uses::kNone || draft_.nodes[maker].op != OpKind::kTranspose || draft_.value(volume).shape.rank() != 5) return {};
    const DraftNode& turn = draft_.nodes[maker];
    const auto& perm = std::get<model::TransposeAttributes>(turn.attributes).perm;
    const DraftNode* reshape = reshape_before(turn.inputs[0]);
    if (reshape == nullptr || !equal(perm, kPlanesOfVolume, 5)) return {};
    const Shape &planes = draft_.value(reshape->inputs[0]).shape, &to = draft_.value(volume).shape;
    const bool same = planes.rank() == 4 && planes[0] == to[0] * to[2] && planes[1] == to[1] && planes[2] == to[3];
    return same ? reshape->inputs[0] : ValueId();
  }

  /// May the node work on planes, so that the convolution that made them takes it?
  bool works_on_planes(const DraftNode& node) const {
    const bool one = node.op == OpKind::kUnary || node.op == OpKind::kAffine;
    if (!one && (node.op != OpKind::kBinary || node.inputs.size() != 2)) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return planes_of(input).valid() && draft_.value(input).shape == draft_.value(node.inputs[0]).shape;
    });
  }

  void hoist_to_planes(DraftNode node) {
    const Shape volume = draft_.value(node.output).shape;
    for (ValueId& input : node.inputs) input = planes_of(input);
    const Shape planes = draft_.value(node.inputs[0]).shape;
    const std::string name = node.name;
    const ValueId result = node.output, inner = add_value(draft_.value(result).name + ":planes", planes);
    node.output = inner;
    push(std::move(node));
    DraftNode turn;
    turn.name = name + ":volume";
    turn.op = OpKind::kTranspose;
    turn.attributes = model::TransposeAttributes{kPlanesOfVolume};
    turn.inputs = {add_reshaped(name + ":reshape", inner, Shape{volume[0], volume[2], volume[1], volume[3], volume[4]})};
    turn.output = result;
    push(std::move(turn));
  }

  Draft& draft_;
  Uses uses_;
  std::vector<std::size_t> maker_;  // into the nodes pushed so far
  std::vector<ValueId> alias_;
};

}  // namespace

void sink_reshapes(Draft& draft) { Sink(draft).run(); }

}  // namespace sluice::importer
