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
#include "src/importer/rewrite/dense_part.h"
#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

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
      if (node.op == OpKind::kReshape || physical_shape_of(draft_, reshape->inputs[0]) == physical_shape_of(draft_, input))
        input = reshape->inputs[0];
    }
  }

  /// The shape that the node's first input has before it is reshaped, where the node works on rows and finds the same rows there.
  std::optional<Shape> shape_before(const DraftNode& node) {
    if ((node.op != OpKind::kDense && node.op != OpKind::kLayerNorm) || seen_[node.output.index()]) return std::nullopt;
    const DraftNode* reshape = reshape_before(node.inputs[0]);
    if (reshape == nullptr || draft_.value(node.inputs[0]).scramble_stride != 0) return std::nullopt;
    const Shape before = physical_shape_of(draft_, reshape->inputs[0]), after = physical_shape_of(draft_, node.inputs[0]);
    const Shape out = physical_shape_of(draft_, node.output);
    const auto rows = [](const Shape& s) { return s.rank() == 2 || s.rank() == 3; };
    if (!rows(before) || !rows(after) || before.back() != after.back() || out.rank() != after.rank()) return std::nullopt;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)  // a residual; constants of other kinds stay as they are
      if (draft_.value(node.inputs[i]).constant || physical_shape_of(draft_, node.inputs[i]) != out) return std::nullopt;
    return before;
  }

  void lift(DraftNode& node, Shape shape) {
    node.inputs[0] = reshape_before(node.inputs[0])->inputs[0];
    const Value out = draft_.value(node.output);
    shape[shape.rank() - 1] = physical_shape_of(draft_, node.output).back();
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const Value& given = draft_.value(node.inputs[i]);
      draft_.nodes.push_back(
          reshape_to(given.name + ":lifted", node.inputs[i], draft_.add_value(value_like(given, given.name + ":lifted", shape))));
      reshape_of(draft_.nodes.back().output) = draft_.nodes.size() - 1;
      node.inputs[i] = draft_.nodes.back().output;
    }
    const ValueId lifted = draft_.add_value(value_like(out, out.name + ":lifted", shape));
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
    if (!has_parts(dense) || seen_[dense.output.index()]) return false;
    const std::vector<std::size_t>& readers = uses_.readers[dense.output.index()];
    return readers.size() >= 2 && std::all_of(readers.begin(), readers.end(), [&](std::size_t r) { return is_part(nodes, nodes[r]); });
  }

  bool is_part(const std::vector<DraftNode>& nodes, const DraftNode& slice) const {
    if (slice.op != OpKind::kSlice || seen_[slice.output.index()]) return false;
    const auto& attributes = std::get<model::SliceAttributes>(slice.attributes);
    const Shape whole = physical_shape_of(draft_, slice.inputs[0]), part = physical_shape_of(draft_, slice.output);
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
    const auto last = static_cast<std::size_t>(physical_shape_of(draft_, slice.inputs[0]).rank() - 1);
    const std::int64_t begin = std::get<model::SliceAttributes>(slice.attributes).start[last];
    DraftNode part = dense_part(dense, begin, physical_shape_of(draft_, slice.output).back());
    part.name = slice.name;
    part.output = slice.output;
    return part;
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
      DraftNode again = made_again(draft_, first, ":queries");
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
