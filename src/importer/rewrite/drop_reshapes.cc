#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/perm.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

class Drop {
 public:
  explicit Drop(Draft& draft)
      : draft_(draft), uses_(draft), before_(draft.values.size()), same_(draft.values.size()), maker_(draft.values.size(), Uses::kNone) {}

  void run() {
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      DraftNode& node = nodes[n];
      for (ValueId& input : node.inputs)
        if (same_[input.index()].valid()) input = same_[input.index()];
      if (node.op == OpKind::kReshape && !draft_.value(node.inputs[0]).constant) place(node);
      maker_[node.output.index()] = draft_.nodes.size();
      draft_.nodes.push_back(std::move(node));
    }
  }

 private:
  Shape shape(ValueId value) const { return physical(draft_.value(value).shape, draft_.value(value).layout); }

  void place(DraftNode& node) {
    const ValueId before = before_[node.inputs[0].index()];
    const ValueId first = before.valid() ? before : node.inputs[0];
    before_[node.output.index()] = first;
    node.inputs[0] = first;
    // Ports name the value by which they are known.
    if (uses_.is_output[node.output.index()]) return;
    if (shape(first) == shape(node.output) && share_bytes(draft_.value(first), draft_.value(node.output))) {
      same_[node.output.index()] = first;
    } else {
      move_before_slice(node);
    }
  }

  /// A slice of channels that is reshaped is a slice of the reshaped whole, when both have the same channels: a view with gaps.
  void move_before_slice(DraftNode& node) {
    const std::size_t maker = maker_[node.inputs[0].index()];
    if (maker == Uses::kNone || draft_.nodes[maker].op != OpKind::kSlice) return;
    const DraftNode slice = draft_.nodes[maker];
    const Shape whole = shape(slice.inputs[0]), part = shape(slice.output), to = shape(node.output);
    const auto& attributes = std::get<model::SliceAttributes>(slice.attributes);
    const int last = whole.rank() - 1;
    for (int axis = 0; axis < last; ++axis)
      if (part[axis] != whole[axis] || attributes.step[static_cast<std::size_t>(axis)] != 1) return;
    if (to.rank() == 0 || to.back() != part.back() || draft_.value(slice.inputs[0]).constant) return;
    Shape reshaped = to;
    reshaped[to.rank() - 1] = whole.back();
    DraftNode reshape;
    reshape.name = node.name + ":whole";
    reshape.op = OpKind::kReshape;
    reshape.inputs = {slice.inputs[0]};
    reshape.output = add_value(reshape.name, reshaped, draft_.value(slice.inputs[0]).dtype);
    draft_.value(reshape.output).bytes = draft_.value(slice.inputs[0]).bytes;
    model::SliceAttributes moved;
    moved.start[static_cast<std::size_t>(to.rank() - 1)] = attributes.start[static_cast<std::size_t>(last)];
    moved.step[static_cast<std::size_t>(to.rank() - 1)] = attributes.step[static_cast<std::size_t>(last)];
    node.op = OpKind::kSlice;
    node.attributes = moved;
    node.inputs = {reshape.output};
    draft_.nodes.push_back(std::move(reshape));
  }

  ValueId add_value(const std::string& name, const Shape& extents, DType dtype) {
    Value value;
    value.name = name;
    value.dtype = dtype;
    value.shape = extents;
    before_.emplace_back();
    same_.emplace_back();
    maker_.push_back(Uses::kNone);
    return draft_.add_value(std::move(value));
  }

  Draft& draft_;
  const Uses uses_;
  std::vector<ValueId> before_;     // of a reshape's output: the value before it and all reshapes before that
  std::vector<ValueId> same_;       // the value that may be read instead
  std::vector<std::size_t> maker_;  // into the nodes kept so far
};

}  // namespace

void drop_reshapes(Draft& draft) { Drop(draft).run(); }

}  // namespace sluice::importer
