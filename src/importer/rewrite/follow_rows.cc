// What lets bands of positions run through an encoder's layers, and lets queries go without keys and values. On physical shapes.
//
//     lift      x [1,T,C] -> reshape [T,1,C] -> dense [T,1,N]       becomes    x -> dense [1,T,N] -> reshape [T,1,N]
//               The reshapes meet what undoes them, and drop_reshapes lets both go.
//
//     split     norm -> dense [1,T,3C] -> slices q, k, v -> attention          becomes, with the columns of each as a weight of its own,
//               norm -> dense k, dense v;   norm again -> dense q -> attention
//
// An attention reads keys and values whole, its queries row by row. While all three were one tensor, none could be a ring; and while one
// norm stood before all three, its rows had to wait for the last key. The norm is cheap beside the dense layers, and made once for each.
// The bits stay: each output is the same chain of the same products.
#include <algorithm>
#include <map>
#include <utility>

#include "sluice/core/panels.h"
#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/perm.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

Shape shape_of(const Draft& draft, ValueId value) { return physical(draft.value(value).shape, draft.value(value).layout); }

/// Values that the caller sees, themselves or by another name.
std::vector<bool> seen_by_caller(const Draft& draft) {
  std::vector<bool> seen(draft.values.size(), false);
  for (const auto* ports : {&draft.inputs, &draft.outputs})
    for (const DraftPort& port : *ports) {
      seen[port.value.index()] = true;
      if (const ValueId storage = draft.value(port.value).storage; storage.valid()) seen[storage.index()] = true;
    }
  return seen;
}

Value like(const Value& value, const std::string& name, const Shape& physical_shape) {
  Value made;
  made.name = name;
  made.dtype = value.dtype;
  made.bytes = value.bytes;
  made.shape = physical_shape;
  return made;
}

class Lift {
 public:
  explicit Lift(Draft& draft) : draft_(draft), seen_(seen_by_caller(draft)), reshape_(draft.values.size(), kNone) {}

  void run() {
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (DraftNode& node : nodes) {
      shorten(node);
      if (auto shape = shape_before(node)) lift(node, *shape);
      if (node.op == OpKind::kReshape && !draft_.value(node.inputs[0]).constant) reshape_of(node.output) = draft_.nodes.size();
      draft_.nodes.push_back(std::move(node));
      if (after_.op == OpKind::kReshape && after_.output.valid()) {
        reshape_of(after_.output) = draft_.nodes.size();
        draft_.nodes.push_back(std::exchange(after_, {}));
      }
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t& reshape_of(ValueId value) {
    if (reshape_.size() < draft_.values.size()) reshape_.resize(draft_.values.size(), kNone);
    return reshape_[value.index()];
  }
  const DraftNode* reshape_before(ValueId value) {
    const std::size_t at = reshape_of(value);
    return at == kNone ? nullptr : &draft_.nodes[at];
  }

  /// A reshape takes what was there before the one in front of it; others what two reshapes lead back to.
  void shorten(DraftNode& node) {
    for (ValueId& input : node.inputs) {
      const DraftNode* reshape = reshape_before(input);
      if (reshape == nullptr || !share_bytes(draft_.value(reshape->inputs[0]), draft_.value(input))) continue;
      if (node.op == OpKind::kReshape || shape_of(draft_, reshape->inputs[0]) == shape_of(draft_, input)) input = reshape->inputs[0];
    }
  }

  /// The shape that the node's first input has before it is reshaped, where the node works on rows and finds the same rows there.
  std::optional<Shape> shape_before(const DraftNode& node) {
    if ((node.op != OpKind::kDense && node.op != OpKind::kLayerNorm) || seen_[node.output.index()]) return std::nullopt;
    const DraftNode* reshape = reshape_before(node.inputs[0]);
    if (reshape == nullptr || draft_.value(node.inputs[0]).scramble_stride != 0) return std::nullopt;
    const Shape before = shape_of(draft_, reshape->inputs[0]), after = shape_of(draft_, node.inputs[0]);
    const Shape out = shape_of(draft_, node.output);
    const auto rows = [](const Shape& s) { return s.rank() == 2 || s.rank() == 3; };
    if (!rows(before) || !rows(after) || before.back() != after.back() || out.rank() != after.rank()) return std::nullopt;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)  // a residual; constants of other kinds stay as they are
      if (draft_.value(node.inputs[i]).constant || shape_of(draft_, node.inputs[i]) != out) return std::nullopt;
    return before;
  }

  void lift(DraftNode& node, Shape shape) {
    node.inputs[0] = reshape_before(node.inputs[0])->inputs[0];
    const Value out = draft_.value(node.output);
    shape[shape.rank() - 1] = shape_of(draft_, node.output).back();
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const Value& given = draft_.value(node.inputs[i]);
      draft_.nodes.push_back(
          reshape_to(given.name + ":lifted", node.inputs[i], draft_.add_value(like(given, given.name + ":lifted", shape))));
      reshape_of(draft_.nodes.back().output) = draft_.nodes.size() - 1;
      node.inputs[i] = draft_.nodes.back().output;
    }
    const ValueId lifted = draft_.add_value(like(out, out.name + ":lifted", shape));
    after_ = reshape_to(node.name + ":rows", lifted, node.output);
    node.output = lifted;
  }

  static DraftNode reshape_to(const std::string& name, ValueId from, ValueId to) {
    DraftNode reshape;
    reshape.name = name;
    reshape.op = OpKind::kReshape;
    reshape.inputs = {from};
    reshape.output = to;
    return reshape;
  }

  Draft& draft_;
  const std::vector<bool> seen_;
  std::vector<std::size_t> reshape_;  // by value: the node that makes it by a reshape
  DraftNode after_{};
};

class Split {
 public:
  explicit Split(Draft& draft) : draft_(draft), uses_(draft), seen_(seen_by_caller(draft)) {}

  void run() {
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].dead) continue;
      if (parts_in_order(nodes, n)) {
        split(nodes, n);
      } else {
        if (nodes[n].op == OpKind::kAttention) add_queries(nodes[n].inputs[0]);
        draft_.nodes.push_back(std::move(nodes[n]));
      }
    }
  }

 private:
  struct Waiting {  // what makes queries, until their attention comes
    std::vector<DraftNode> nodes;
  };

  /// Whether it is a dense layer of which attentions read slices of whole panels, and nothing else reads it.
  bool parts_in_order(const std::vector<DraftNode>& nodes, std::size_t n) const {
    const DraftNode& dense = nodes[n];
    if (dense.op != OpKind::kDense || dense.numeric == model::NumericClass::kInt8 || dense.epilogue.has_residual ||
        seen_[dense.output.index()] || !dense.panels || !dense.panels->run_order.empty() || dense.inputs.size() != 1)
      return false;
    const std::vector<std::size_t>& readers = uses_.readers[dense.output.index()];
    return readers.size() >= 2 && std::all_of(readers.begin(), readers.end(), [&](std::size_t r) { return is_part(nodes, nodes[r]); });
  }

  bool is_part(const std::vector<DraftNode>& nodes, const DraftNode& slice) const {
    if (slice.op != OpKind::kSlice || seen_[slice.output.index()]) return false;
    const auto& attributes = std::get<model::SliceAttributes>(slice.attributes);
    const Shape whole = shape_of(draft_, slice.inputs[0]), part = shape_of(draft_, slice.output);
    if (part.rank() != whole.rank() || part.back() % kPanelLanes != 0 || part.back() == 0) return false;
    for (int axis = 0; axis < part.rank(); ++axis)
      if (attributes.step[static_cast<std::size_t>(axis)] != 1 || (axis + 1 < part.rank() && part[axis] != whole[axis])) return false;
    const std::vector<std::size_t>& readers = uses_.readers[slice.output.index()];
    return readers.size() == 1 && nodes[readers[0]].op == OpKind::kAttention;
  }

  void split(std::vector<DraftNode>& nodes, std::size_t n) {
    const DraftNode dense = std::move(nodes[n]);
    for (const std::size_t r : uses_.readers[dense.output.index()]) {
      DraftNode part = part_of(dense, nodes[r]);
      nodes[r].dead = true;
      if (nodes[uses_.readers[part.output.index()][0]].inputs[0] == part.output)
        waiting_[part.output].nodes = {std::move(part)};
      else
        draft_.nodes.push_back(std::move(part));
    }
    norm_again(dense);
  }

  DraftNode part_of(const DraftNode& dense, const DraftNode& slice) const {
    const auto last = static_cast<std::size_t>(shape_of(draft_, slice.inputs[0]).rank() - 1);
    const std::int64_t begin = std::get<model::SliceAttributes>(slice.attributes).start[last];
    const std::int64_t count = shape_of(draft_, slice.output).back();
    DraftNode part = dense;
    part.name = slice.name;
    part.output = slice.output;
    auto& attributes = std::get<model::DenseAttributes>(part.attributes);
    attributes.out_features = count;
    PanelValues& panels = *part.panels;
    panels.name += ":" + std::to_string(begin);
    Constant& values = panels.values;
    if (values.absent) {
      values = make_absent(values.dtype, Shape{count, values.shape[1]});
    } else {
      values.data += begin * values.strides[0] * static_cast<std::int64_t>(size_of(values.dtype));
      values.shape[0] = count;
    }
    keep_range(panels.scale, begin, count);
    keep_range(part.bias, begin, count);
    return part;
  }

  static void keep_range(std::vector<float>& of_outputs, std::int64_t begin, std::int64_t count) {
    if (of_outputs.empty()) return;
    of_outputs = std::vector<float>(of_outputs.begin() + begin, of_outputs.begin() + begin + count);
  }

  /// A norm that only this dense layer read is made once more for the queries that wait.
  void norm_again(const DraftNode& dense) {
    const auto norm =
        std::find_if(draft_.nodes.begin(), draft_.nodes.end(), [&](const DraftNode& node) { return node.output == dense.inputs[0]; });
    if (norm == draft_.nodes.end() || norm->op != OpKind::kLayerNorm || !uses_.single_reader(norm->output) || seen_[norm->output.index()])
      return;
    const DraftNode first = *norm;
    for (auto& [output, waiting] : waiting_) {
      if (waiting.nodes.size() != 1 || waiting.nodes[0].inputs[0] != first.output) continue;
      DraftNode again = first;
      again.name += ":queries";
      const Value& of_first = draft_.value(first.output);
      Value made = of_first;
      made.name = of_first.name + ":queries";
      again.output = draft_.add_value(std::move(made));
      waiting.nodes[0].inputs[0] = again.output;
      waiting.nodes.insert(waiting.nodes.begin(), std::move(again));
    }
  }

  void add_queries(ValueId queries) {
    const auto waiting = waiting_.find(queries);
    if (waiting == waiting_.end()) return;
    for (DraftNode& node : waiting->second.nodes) draft_.nodes.push_back(std::move(node));
    waiting_.erase(waiting);
  }

  Draft& draft_;
  const Uses uses_;
  const std::vector<bool> seen_;
  std::map<ValueId, Waiting> waiting_;  // by what they make
};

}  // namespace

void lift_reshapes(Draft& draft) { Lift(draft).run(); }
void split_queries(Draft& draft) { Split(draft).run(); }

}  // namespace sluice::importer
