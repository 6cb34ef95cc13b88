// How it works: one walk over the nodes gives each value an order of axes. A Transpose is only another order for the same bytes, a Reshape
// translates orders; a reader that needs a certain order asks `require`, which inserts a Transpose when the bytes lie otherwise. So
// transposes cancel by never coming into being.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "sluice/operators/generic.h"
#include "src/importer/rewrite/movement.h"
#include "src/importer/rewrite/perm.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

constexpr std::string_view kByPlaces[] = {"Abs",        "Neg",     "Sign",   "Relu",        "Not",
                                          "BitwiseNot", "IsNaN",   "IsInf",  "Acos",        "Acosh",
                                          "Asin",       "Asinh",   "Atan",   "Atanh",       "Cos",
                                          "Cosh",       "Sin",     "Sinh",   "Tan",         "Round",
                                          "Selu",       "Celu",    "Shrink", "Softsign",    "Mish",
                                          "Swish",      "Pow",     "Cast",   "Where",       "ThresholdedRelu",
                                          "Equal",      "Greater", "Less",   "LessOrEqual", "GreaterOrEqual",
                                          "And",        "Or",      "Xor",    "GeluTanh"};

class Layout {
 public:
  explicit Layout(Draft& draft) : draft_(draft), wants_last_(draft.values.size(), false), features_only_(draft.values.size(), false) {
    note_wishes();
    note_feature_readers();
  }

  void run() {
    for (const DraftPort& port : draft_.inputs) {
      if (draft_.in_body) break;  // they are handed in as they lie outside
      Value& value = draft_.value(port.value);
      if (wants_last_[port.value.index()]) value.layout = channels_last(value.shape.rank());
    }
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (DraftNode& node : nodes) place(std::move(node));
    if (draft_.in_body)
      for (DraftPort& port : draft_.outputs) port.value = require(port.value, kIdentityPerm);
    finish();
  }

 private:
  static constexpr int kImageRank = 4;

  /// What an operator asks of the order of its axes.
  struct Rule {
    OpKind op = OpKind::kReshape;
    void (Layout::*place)(DraftNode) = &Layout::place_in_order;
    int image_above = Shape::kMaxRank;  // inputs of more axes than this are images, channels last
    bool any_order = false;             // it passes on what its reader would like
  };
  /// Of operators that are not listed: ONNX's order.
  static const Rule kRules[];
  static const Rule& rule_of(OpKind op);

  /// Is it a plain operator each of whose results comes of the values at its place, or of single ones?
  bool by_places(const DraftNode& node) const {
    if (node.op != OpKind::kPlain || draft_.value(node.output).bounded != 0) return false;
    const auto* plain = operators::find_plain(std::get<model::PlainAttributes>(node.attributes).op);
    if (plain == nullptr || std::find(std::begin(kByPlaces), std::end(kByPlaces), plain->name) == std::end(kByPlaces)) return false;
    const Shape& out = draft_.value(node.output).shape;
    return out.rank() > 2 && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
             const Value& value = draft_.value(input);
             return value.bounded == 0 && (value.shape == out || (value.shape.element_count() == 1 && value.shape.rank() <= out.rank()));
           });
  }

  /// Is it a plain operator that gives the greatest or least values along stated axes? Their order means nothing to it.
  bool finds_extremes(const DraftNode& node) const {
    if (node.op != OpKind::kPlain || node.inputs.size() != 1 || draft_.value(node.inputs[0]).bounded != 0) return false;
    const auto& attributes = std::get<model::PlainAttributes>(node.attributes);
    const auto* plain = operators::find_plain(attributes.op);
    return plain != nullptr && (plain->name == "ReduceMax" || plain->name == "ReduceMin") && attributes.arguments[0] > 0;
  }

  bool works_on_images(const DraftNode& node) const { return rank(node.inputs[0]) > rule_of(node.op).image_above; }

  bool wants_last(ValueId value) const { return value.index() < wants_last_.size() && wants_last_[value.index()]; }

  /// Which values are best NHWC: those that reach an image operator through nodes that take any order.
  void note_wishes() {
    for (auto node = draft_.nodes.rbegin(); node != draft_.nodes.rend(); ++node) {
      const int rank = draft_.value(node->output).shape.rank();
      for (const ValueId input : node->inputs) {
        const Shape& in = draft_.value(input).shape;
        const bool image = works_on_images(*node);
        const bool passed = (rule_of(node->op).any_order || by_places(*node)) && wants_last_[node->output.index()] && in.rank() == rank;
        const Shape& out = draft_.value(node->output).shape;
        const bool reshaped =
            node->op == OpKind::kReshape && wants_last_[node->output.index()] && in.rank() > 2 && in[0] == out[0] && in[1] == out[1];
        if (in.rank() > 2 && (image || passed || reshaped || feeds_planes(*node))) wants_last_[input.index()] = true;
        if (node->op == OpKind::kReshape && wants_last_[node->output.index()] && is_planes_of(out, in)) planes_.insert(input);
      }
    }
  }

  /// Is it [N * D, C, H, W] of [N, D, C, H, W]?
  static bool is_planes_of(const Shape& planes, const Shape& turned) {
    return planes.rank() == 4 && turned.rank() == 5 && turned[1] > 1 && planes[0] == turned[0] * turned[1] && planes[1] == turned[2] &&
           planes[2] == turned[3];
  }
  /// Does it turn a volume, for it to become planes (lower_volume.cc)? These are best if the volume has its channels last.
  bool feeds_planes(const DraftNode& node) const {
    return node.op == OpKind::kTranspose && planes_.contains(node.output) &&
           equal(std::get<model::TransposeAttributes>(node.attributes).perm, kPlanesOfVolume, 5);
  }

  /// Which values are read by dense layers only, perhaps through functions of one value: the order of their features is free.
  void note_feature_readers() {
    const Uses uses(draft_);
    for (auto node = draft_.nodes.rbegin(); node != draft_.nodes.rend(); ++node) {
      const std::size_t value = node->output.index();
      bool only = !uses.is_output[value];
      for (const std::size_t reader : uses.readers[value]) {
        const DraftNode& next = draft_.nodes[reader];
        const bool dense =
            next.op == OpKind::kDense && next.inputs[0] == node->output && (next.inputs.size() == 1 || next.inputs[1] != node->output);
        const bool one_by_one = next.op == OpKind::kUnary || next.op == OpKind::kQuantize || next.op == OpKind::kDequantize;
        only = only && (dense || (one_by_one && features_only_[next.output.index()]));
      }
      features_only_[value] = only;
    }
  }

  /// The value whose bytes `value` is.
  ValueId root(ValueId value) const { return draft_.value(value).storage.valid() ? draft_.value(value).storage : value; }

  /// `value` with its axes in `layout`: itself, or a transposed copy (one for each order), or for constants another view.
  ValueId require(ValueId value, const Perm& layout) {
    const Value from = draft_.value(value);
    const int rank = from.shape.rank();
    if (equal(from.layout, layout, rank)) return value;
    std::array<std::int8_t, Shape::kMaxRank> key = layout;
    if (const auto made = copies_.find({value, key}); made != copies_.end()) return made->second;
    Value to = from;
    to.layout = layout;
    to.storage = {};
    to.name += ":ordered";
    const ValueId id = draft_.add_value(std::move(to));
    copies_[{value, key}] = id;
    if (from.constant) return id;
    DraftNode node;
    node.name = draft_.value(id).name;
    node.inputs = {value};
    node.output = id;
    if (order_of(from.shape, from.layout) == order_of(from.shape, layout)) {
      node.op = OpKind::kReshape;
      if (physical(from.shape, from.layout) == physical(from.shape, layout)) {
        draft_.value(id).storage = root(value);
        return id;
      }
    } else {
      node.op = OpKind::kTranspose;
      model::TransposeAttributes move;
      for (int axis = 0; axis < rank; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        move.perm[a] = static_cast<std::int8_t>(position_of(from.layout, layout[a]));
      }
      node.attributes = move;
    }
    push(std::move(node));
    return id;
  }

  /// `value` with leading axes of 1 up to `rank`, for broadcasting in another order than ONNX's.
  ValueId with_rank(ValueId value, int rank) {
    const Value from = draft_.value(value);
    const int lead = rank - from.shape.rank();
    if (lead == 0) return value;
    std::vector<std::int64_t> dims(static_cast<std::size_t>(lead), 1);
    dims.insert(dims.end(), from.shape.dims().begin(), from.shape.dims().end());
    Value to = from;
    to.name += ":ranked";
    to.shape = *Shape::make(dims);
    to.storage = {};
    to.layout = kIdentityPerm;
    for (int axis = 0; axis < from.shape.rank(); ++axis)
      to.layout[static_cast<std::size_t>(axis + lead)] = static_cast<std::int8_t>(from.layout[static_cast<std::size_t>(axis)] + lead);
    if (to.constant) to.constant = reshaped(*to.constant, to.shape);
    const ValueId id = draft_.add_value(std::move(to));
    if (from.constant) return id;
    DraftNode node;
    node.name = draft_.value(id).name;
    node.op = OpKind::kReshape;
    node.inputs = {value};
    node.output = id;
    push(std::move(node));
    return id;
  }

  void push(DraftNode node) { draft_.nodes.push_back(std::move(node)); }
  Value& out(const DraftNode& node) { return draft_.value(node.output); }
  const Perm& layout(ValueId value) const { return draft_.value(value).layout; }
  int rank(ValueId value) const { return draft_.value(value).shape.rank(); }

  void place(DraftNode node) {
    if (by_places(node)) return place_several(std::move(node));
    if (finds_extremes(node)) return place_extremes(std::move(node));
    if (works_on_images(node)) return place_image(std::move(node));
    (this->*rule_of(node.op).place)(std::move(node));
  }

  void place_in_order(DraftNode node) {
    for (ValueId& input : node.inputs) input = require(input, kIdentityPerm);
    push(std::move(node));
  }

  void place_image(DraftNode node) {
    const Perm last = channels_last(rank(node.inputs[0]));
    for (ValueId& input : node.inputs)
      if (rank(input) == rank(node.inputs[0])) input = require(input, last);  // others are of the run time, one value or one a channel
    out(node).layout = last;
    if (node.op == OpKind::kResize) permute_axes(node, last);
    push(std::move(node));
  }

  void place_unary(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    out(node).layout = in.layout;
    out(node).scramble_inner = in.scramble_inner;
    out(node).scramble_stride = in.scramble_stride;
    push(std::move(node));
  }

  /// The features must be the last axis; the order of the others is free and stays.
  void place_dense(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    const int features = in.shape.rank() - 1;
    Perm wanted = kIdentityPerm;
    std::size_t at = 0;
    for (int axis = 0; axis <= features; ++axis)
      if (in.layout[static_cast<std::size_t>(axis)] != features) wanted[at++] = in.layout[static_cast<std::size_t>(axis)];
    wanted[at] = static_cast<std::int8_t>(features);
    if (in.scramble_stride != 0) {
      node.panels->k_inner = in.scramble_inner;
      node.panels->k_inner_stride = in.scramble_stride;
    }
    node.inputs[0] = require(node.inputs[0], wanted);
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (rank(node.inputs[i]) > 1) node.inputs[i] = require(node.inputs[i], wanted);  // a residual; others as for images
    out(node).layout = wanted;
    push(std::move(node));
  }

  void place_transpose(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    const auto& perm = std::get<model::TransposeAttributes>(node.attributes).perm;
    // Output axis i is input axis perm[i], so what lies at a place is the output axis that names the input axis there.
    Value& to = out(node);
    for (int axis = 0; axis < in.shape.rank(); ++axis)
      to.layout[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(position_of(perm, in.layout[static_cast<std::size_t>(axis)]));
    if (draft_.value(node.inputs[0]).constant) {
      to.constant = permuted(*draft_.value(node.inputs[0]).constant, perm);
      return;
    }
    place_view(std::move(node));
  }

  /// The output is the input's bytes, seen along other axes. Where they stand for different reals, or the caller sees both, they are
  /// copied.
  void place_view(DraftNode node) {
    const ValueId source = root(node.inputs[0]);
    if (!both_are_seen(source, node.output) && share_bytes(draft_.value(source), out(node))) {
      out(node).storage = source;
      return;
    }
    node.op = OpKind::kReshape;
    node.attributes = model::Attributes();
    push(std::move(node));
  }

  /// The graph's outputs must not share the bytes of its inputs, nor of each other.
  bool both_are_seen(ValueId source, ValueId view) const {
    const auto is_view = [&](const DraftPort& port) { return port.value == view; };
    if (std::none_of(draft_.outputs.begin(), draft_.outputs.end(), is_view)) return false;
    const auto is_source = [&](const DraftPort& port) { return port.value == source; };
    const auto shares = [&](const DraftPort& port) { return port.value != view && root(port.value) == source; };
    return std::any_of(draft_.inputs.begin(), draft_.inputs.end(), is_source) ||
           std::any_of(draft_.outputs.begin(), draft_.outputs.end(), shares);
  }

  void place_reshape(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    const Shape out_shape = out(node).shape;
    const bool last = wants_last(node.output);
    const ReshapeMap map(in.shape, out_shape);
    if (const auto order = map.forward(order_of(in.shape, in.layout))) {
      out(node).layout = usual_layout(out_shape, *order, last);
    } else if (scramble(node, map)) {
      push(std::move(node));
      return;
    } else {
      // The bytes must move; move them to where the readers want them.
      const Perm wish = last ? channels_last(out_shape.rank()) : kIdentityPerm;
      const auto before = map.backward(order_of(out_shape, wish));
      out(node).layout = before ? wish : kIdentityPerm;
      node.inputs[0] = require(node.inputs[0], before ? usual_layout(in.shape, *before, false) : kIdentityPerm);
    }
    const Value& from = draft_.value(node.inputs[0]);
    if (physical(from.shape, from.layout) == physical(out_shape, out(node).layout) && !from.constant) return place_view(std::move(node));
    push(std::move(node));
  }

  /// A feature map flattened for dense layers: they take its features in the order they lie in.
  bool scramble(DraftNode& node, const ReshapeMap& map) {
    const Value in = draft_.value(node.inputs[0]);
    Value& to = out(node);
    if (!features_only_[node.output.index()] || to.shape.rank() < 1 || map.runs().empty()) return false;
    const ReshapeMap::Run run = map.runs().back();
    if (run.out_end - run.out_begin < 1 || to.shape.back() == 1) return false;
    for (int axis = run.out_begin; axis < run.out_end - 1; ++axis)
      if (to.shape[axis] != 1) return false;
    // The other axes must lie in order, in front; those of the run must be its second part, then its first.
    const std::vector<int> order = order_of(in.shape, in.layout);
    std::vector<int> front, features;
    for (const int axis : order) {
      if (axis >= run.in_begin)
        features.push_back(axis);
      else if (!features.empty())
        return false;
      else
        front.push_back(axis);
    }
    if (!std::is_sorted(front.begin(), front.end())) return false;
    const auto turn = std::is_sorted_until(features.begin(), features.end());
    if (turn == features.end() || !std::is_sorted(turn, features.end()) || features.back() > features.front()) return false;
    std::int64_t inner = 1;
    for (auto axis = turn; axis != features.end(); ++axis) inner *= in.shape[*axis];
    to.scramble_inner = inner;
    to.scramble_stride = to.shape.back() / inner;
    return true;
  }

  /// What works along node.axis wants it last; the order of the others is free and stays.
  void place_along_axis(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    Perm wanted = kIdentityPerm;
    std::size_t at = 0;
    for (int axis = 0; axis < in.shape.rank(); ++axis)
      if (in.layout[static_cast<std::size_t>(axis)] != node.axis) wanted[at++] = in.layout[static_cast<std::size_t>(axis)];
    wanted[at] = static_cast<std::int8_t>(node.axis);
    node.inputs[0] = require(node.inputs[0], wanted);
    out(node).layout = wanted;
    push(std::move(node));
  }

  /// Binary and Concat: all inputs in one order, that of the first whole one (NHWC if any has it).
  void place_several(DraftNode node) {
    const int out_rank = rank(node.output);
    const Perm last = channels_last(out_rank);
    std::optional<Perm> chosen;
    for (const ValueId input : node.inputs) {
      const Value& value = draft_.value(input);
      if (value.constant || value.shape.rank() != out_rank) continue;
      if (!chosen && value.shape == draft_.value(node.output).shape) chosen = value.layout;
      if (wants_last(node.output) && equal(value.layout, last, out_rank)) chosen = last;
    }
    if (!chosen)
      for (const ValueId input : node.inputs)
        if (!chosen && !draft_.value(input).constant && rank(input) == out_rank) chosen = layout(input);
    if (!chosen) chosen = wants_last(node.output) && out_rank > 2 ? last : kIdentityPerm;
    for (ValueId& input : node.inputs) {
      // In ONNX's own order numpy broadcasting needs no help; but the kernels that walk over images want each axis to have its place.
      const Shape& shape = draft_.value(input).shape;
      const bool one_row = shape.rank() == 0 || shape.element_count() == shape.back();
      if (rank(input) < out_rank && equal(*chosen, kIdentityPerm, out_rank) && (one_row || out_rank != kImageRank)) {
        input = require(input, kIdentityPerm);
        continue;
      }
      input = require(with_rank(input, out_rank), *chosen);
    }
    out(node).layout = *chosen;
    if (node.op == OpKind::kConcat) node.attributes = model::AxisAttributes{position_of(*chosen, node.axis)};
    push(std::move(node));
  }

  /// Arguments: the number of axes, the axes, one value that says whether they are kept as 1. The order of the others is free and stays.
  void place_extremes(DraftNode node) {
    const Value in = draft_.value(node.inputs[0]);
    auto& arguments = std::get<model::PlainAttributes>(node.attributes).arguments;
    const int rank = in.shape.rank();
    const auto axes = static_cast<std::size_t>(arguments[0]);
    std::array<bool, Shape::kMaxRank> folded{};
    for (std::size_t i = 1; i <= axes; ++i) {
      const std::int64_t axis = arguments[i] + (arguments[i] < 0 ? rank : 0);
      folded[static_cast<std::size_t>(axis)] = true;
      arguments[i] = position_of(in.layout, static_cast<int>(axis));
    }
    Perm order = in.layout;
    if (arguments[axes + 2] == 0) {
      order = kIdentityPerm;
      std::size_t to = 0;
      for (int place = 0; place < rank; ++place) {
        const auto axis = static_cast<std::size_t>(in.layout[static_cast<std::size_t>(place)]);
        if (folded[axis]) continue;
        const auto before = std::count(folded.begin(), folded.begin() + static_cast<std::ptrdiff_t>(axis), true);
        order[to++] = static_cast<std::int8_t>(static_cast<std::ptrdiff_t>(axis) - before);
      }
    }
    out(node).layout = order;
    push(std::move(node));
  }

  /// One input, attributes that count axes.
  void place_axes(DraftNode node) {
    if (rank(node.output) == 5 && wants_last(node.output)) node.inputs[0] = require(node.inputs[0], channels_last(5));
    const Perm order = layout(node.inputs[0]);
    out(node).layout = order;
    permute_axes(node, order);
    push(std::move(node));
  }

  template <class Array>
  static void permute(Array& array, const Perm& order) {
    const Array before = array;
    for (std::size_t axis = 0; axis < order.size(); ++axis) array[axis] = before[static_cast<std::size_t>(order[axis])];
  }

  static void permute_axes(DraftNode& node, const Perm& order) {
    if (auto* slice = std::get_if<model::SliceAttributes>(&node.attributes)) {
      permute(slice->start, order);
      permute(slice->step, order);
    } else if (auto* pad = std::get_if<model::PadAttributes>(&node.attributes)) {
      permute(pad->before, order);
      permute(pad->after, order);
    } else if (auto* resize = std::get_if<model::ResizeAttributes>(&node.attributes)) {
      permute(resize->scale, order);
    }
  }

  /// Every mention of a value becomes one of the value whose bytes it is.
  void finish() {
    for (DraftNode& node : draft_.nodes)
      for (ValueId& input : node.inputs) input = root(input);
  }

  Draft& draft_;
  std::vector<bool> wants_last_;
  std::vector<bool> features_only_;
  std::set<ValueId> planes_;  // turned volumes that become planes
  std::map<std::pair<ValueId, Perm>, ValueId> copies_;
};

const Layout::Rule Layout::kRules[] = {
    {OpKind::kConv, &Layout::place_image, -1},
    {OpKind::kConvTranspose, &Layout::place_image, -1},
    {OpKind::kPool, &Layout::place_image, -1},
    {OpKind::kLrn, &Layout::place_image, -1},
    {OpKind::kAffine, &Layout::place_in_order, 2},
    {OpKind::kResize, &Layout::place_axes, 2},
    {OpKind::kSlice, &Layout::place_axes, Shape::kMaxRank, true},
    {OpKind::kPad, &Layout::place_axes, Shape::kMaxRank, true},
    {OpKind::kUnary, &Layout::place_unary, Shape::kMaxRank, true},
    {OpKind::kQuantize, &Layout::place_unary, Shape::kMaxRank, true},
    {OpKind::kDequantize, &Layout::place_unary, Shape::kMaxRank, true},
    {OpKind::kBinary, &Layout::place_several, Shape::kMaxRank, true},
    {OpKind::kConcat, &Layout::place_several, Shape::kMaxRank, true},
    {OpKind::kDense, &Layout::place_dense},
    {OpKind::kTranspose, &Layout::place_transpose},
    {OpKind::kReshape, &Layout::place_reshape},
    {OpKind::kSoftmax, &Layout::place_along_axis},
    {OpKind::kLayerNorm, &Layout::place_along_axis},
};

const Layout::Rule& Layout::rule_of(OpKind op) {
  static constexpr Rule kInOrder;
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [op](const Rule& r) { return r.op == op; });
  return rule == std::end(kRules) ? kInOrder : *rule;
}

}  // namespace

void lay_out(Draft& draft) { Layout(draft).run(); }

}  // namespace sluice::importer
