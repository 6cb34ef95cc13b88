#include "src/importer/emit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "sluice/kernels/plain.h"
#include "sluice/kernels/sparse_packing.h"
#include "sluice/operators/parameters/integer.h"
#include "src/importer/quantised.h"
#include "src/importer/refusal.h"
#include "src/importer/rewrite/perm.h"

namespace sluice::importer {
namespace {

using kernels::PackSource;
using model::OpKind;

/// The distance between taps; the lowering has seen to it that there is one.
std::int64_t tap_stride(const Constant& w) noexcept { return w.shape[3] > 1 ? w.strides[3] : w.shape[2] > 1 ? w.strides[2] : 0; }

bool of_two_axes(OpKind op) noexcept { return op == OpKind::kDense || op == OpKind::kEmbedding || op == OpKind::kRecurrent; }

}  // namespace

PackSource pack_source_of(const DraftNode& node) {
  const PanelValues& panels = *node.panels;
  const Constant& w = panels.values;
  PackSource source;
  source.data = w.data;
  source.dtype = w.dtype;
  source.scale = panels.scale;
  if (of_two_axes(node.op)) {
    source.run_order = panels.run_order;
    source.run = panels.run;
    source.outputs = source.outputs_per_group = w.shape[0];
    source.depth = w.shape[1];
    source.output_stride = w.strides[0];
    source.k_inner = panels.k_inner;
    source.k_outer_stride = w.strides[1];
    source.k_inner_stride = w.strides[1] * panels.k_inner_stride;
    return source;
  }
  const auto& conv = std::get<model::ConvAttributes>(node.attributes);
  source.outputs = conv.out_channels;
  source.outputs_per_group = conv.out_channels / conv.groups;
  source.depth = conv.in_channels / conv.groups;
  source.taps = conv.window.taps();
  source.tap_stride = tap_stride(w);
  if (node.op == OpKind::kConv) {
    source.group_stride = source.outputs_per_group * w.strides[0];
    source.output_stride = w.strides[0];
    source.k_outer_stride = w.strides[1];
  } else {
    source.group_stride = source.depth * w.strides[0];
    source.output_stride = w.strides[1];
    source.k_outer_stride = w.strides[0];
  }
  return source;
}

namespace {

/// Have its kernels code for panels narrower than f32?
bool takes_narrow(const DraftNode& node) noexcept {
  if (of_two_axes(node.op)) return true;
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  return conv != nullptr && (node.op == OpKind::kConv || conv->groups == 1 || conv->out_channels / conv->groups >= model::kPanelLanes);
}

/// The quantised values that the node's panels can hold as they are; nothing where its kernels take floats only.
std::optional<kernels::QuantisedSource> quantised_of(const DraftNode& node, const PackSource& source) {
  const Constant& w = node.panels->values;
  if (w.quantised == nullptr || w.dtype != DType::kF32 || !takes_narrow(node)) return std::nullopt;
  const QuantisedValues& q = *w.quantised;
  kernels::QuantisedSource made;
  made.where = source;
  made.first = (w.data - q.base) / static_cast<std::int64_t>(sizeof(float));
  made.values = q.values.data() + made.first;
  // Two bits have kernels where language models have them; others read them as four.
  made.bits = q.bits == 2 && node.op != OpKind::kDense ? 4 : q.bits;
  made.scales = q.scales;
  made.zeros = q.zeros;
  made.order = q.order;
  return kernels::fit_groups(made) ? std::optional(made) : std::nullopt;
}

/// What an output pixel of a grouped convolution costs in vectors of 64 bytes: groups in panels that are full or nearly so, of which each
/// tap reads four inputs at once, or lane by lane, where inputs are put beside each other first and four taps are interleaved.
std::int64_t panel_work(std::int64_t groups, std::int64_t depth, std::int64_t outputs, std::int64_t taps) noexcept {
  return groups * ceil_div(outputs, std::int64_t{model::kPanelLanes}) * ceil_div(depth, std::int64_t{4}) * taps;
}
std::int64_t lane_work(std::int64_t groups, std::int64_t depth, std::int64_t outputs, std::int64_t taps) noexcept {
  constexpr std::int64_t kLanes = 64, kInterleaved = 5, kPutBeside = 32;
  return ceil_div(groups * outputs, kLanes) * depth * (kInterleaved * taps + kPutBeside);
}

/// How many groups become one, so that panels are full, which the fastest kernels want. 1: those of another layout, or where the zeros
/// between them would cost more than they gain.
std::int64_t groups_to_merge(const model::ConvAttributes& conv, bool has_residual) noexcept {
  constexpr std::int64_t kMostMultiplyAdds = 32;  // times the multiply-adds; the generic kernel takes about 50 times as long for each
  const std::int64_t outputs = conv.out_channels / conv.groups, depth = conv.in_channels / conv.groups, taps = conv.window.taps();
  if (conv.groups == 1 || conv.depthwise() || outputs >= model::kPanelLanes) return 1;
  for (std::int64_t merged = 2; merged <= conv.groups; ++merged) {
    if (conv.groups % merged != 0 || (merged < conv.groups && merged * outputs < model::kPanelLanes)) continue;
    const std::int64_t work = panel_work(conv.groups / merged, merged * depth, merged * outputs, taps);
    if (operators::runs_by_lanes(outputs, taps * depth) && !has_residual)
      return work <= lane_work(conv.groups, depth, outputs, taps) ? merged : 1;
    return work * 64 <= kMostMultiplyAdds * conv.out_channels * depth * taps ? merged : 1;
  }
  return 1;
}

/// What the emitters of a graph and of its subgraphs have in common: weights are stored once, whoever reads them.
struct Weights {
  std::vector<Recipe> recipes;
  std::map<const std::byte*, std::vector<std::size_t>> by_data;
  std::map<std::pair<float, std::int32_t>, std::size_t> quantisations;
};

class Emitter {
 public:
  /// Tensors and nodes go to `tensors` and `nodes`, which are the graph's or a subgraph's, all else to `graph`.
  Emitter(const Draft& draft, model::Graph& graph, std::vector<model::Tensor>& tensors, std::vector<model::Node>& nodes, Weights& weights,
          const Storage& storage)
      : draft_(draft),
        graph_(graph),
        tensors_(tensors),
        nodes_(nodes),
        recipes_(weights.recipes),
        weights_(weights),
        storage_(storage),
        tensor_of_(draft.values.size()) {}

  void run() {
    graph_.name = draft_.name;
    for (const DraftPort& port : draft_.inputs) graph_.inputs.push_back(make_port(port));
    for (const DraftNode& node : draft_.nodes) add_node(node);
    for (const DraftPort& port : draft_.outputs) graph_.outputs.push_back(make_port(port));
  }

 private:
  /// Ports of a subgraph lie in ONNX's order of axes (Draft::in_body).
  void run_body(std::size_t own, std::vector<TensorId>& inputs, std::vector<TensorId>& captured, std::vector<TensorId>& outputs) {
    for (std::size_t i = 0; i < draft_.inputs.size(); ++i) (i < own ? inputs : captured).push_back(make_port(draft_.inputs[i]).tensor);
    for (const DraftNode& node : draft_.nodes) add_node(node);
    for (const DraftPort& port : draft_.outputs) outputs.push_back(make_port(port).tensor);
  }

  /// The subgraphs that a node runs, whose inputs are known: a run of them, behind which those that they run follow.
  void add_bodies(const DraftNode& node, model::Node& made) {
    if (node.bodies.empty()) return;
    made.first_subgraph = static_cast<std::uint32_t>(graph_.subgraphs.size());
    made.subgraph_count = static_cast<std::uint32_t>(node.bodies.size());
    graph_.subgraphs.resize(graph_.subgraphs.size() + node.bodies.size());
    for (std::size_t b = 0; b < node.bodies.size(); ++b) {
      const DraftBody& body = node.bodies[b];
      model::Subgraph subgraph;
      subgraph.name = made.name + ":" + std::to_string(b);
      std::vector<TensorId> captured;
      Emitter inside(*body.draft, graph_, subgraph.tensors, subgraph.nodes, weights_, storage_);
      inside.run_body(body.draft->inputs.size() - body.captured.size(), subgraph.inputs, captured, subgraph.outputs);
      for (std::size_t i = 0; i < captured.size(); ++i) subgraph.captures.push_back({made.inputs[body.captured[i]], captured[i]});
      graph_.subgraphs[made.first_subgraph + b] = std::move(subgraph);
    }
  }

  model::Port make_port(const DraftPort& port) {
    const Value& value = draft_.value(port.value);
    model::Port made;
    made.name = port.name;
    made.tensor = tensor(value.storage.valid() ? value.storage : port.value);
    made.onnx_shape = value.shape;
    if (port.dtype && is_float(*port.dtype) && *port.dtype != tensors_[made.tensor.index()].dtype && is_float(value.dtype))
      made.dtype = port.dtype;
    for (int axis = 0; axis < value.shape.rank(); ++axis)
      made.perm[static_cast<std::size_t>(axis)] = value.layout[static_cast<std::size_t>(axis)];
    return made;
  }

  TensorId tensor(ValueId id) {
    TensorId& made = tensor_of_[id.index()];
    if (made.valid()) return made;
    const Value& value = draft_.value(id);
    model::Tensor out;
    if (!draft_.in_body) out.name = value.name;  // nobody asks for those of a subgraph, and budgets count them
    out.dtype = is_float(value.dtype) ? DType::kF32 : value.dtype;
    out.shape = physical(value.shape, value.layout);
    out.bounded = value.bounded;
    out.quantisation = quantisation(value.bytes);
    if (value.constant && value.shape.element_count() > 0) out.weight = add_constant(value);
    tensors_.push_back(std::move(out));
    made = TensorId(tensors_.size() - 1);
    return made;
  }

  /// A constant as an input of the node that is being made. One that is large and all one value is stored as that value, and written out
  /// by a step of its own for each reader, as late as may be.
  TensorId operand(ValueId id) {
    const Value& value = draft_.value(id);
    const DType dtype = is_float(value.dtype) ? DType::kF32 : value.dtype;
    const std::uint64_t most = model::kAlwaysResidentBelow.count() / size_of(dtype);
    if (!value.constant || !uniform_value(*value.constant) || static_cast<std::uint64_t>(value.shape.element_count()) <= most)
      return tensor(id);
    Value one = value;
    one.shape = one.constant->shape = Shape{1};
    one.layout = kIdentityPerm;
    model::Tensor single, whole;
    single.name = value.name;
    single.dtype = whole.dtype = dtype;
    single.shape = one.shape;
    single.quantisation = whole.quantisation = quantisation(value.bytes);
    single.weight = add_constant(one);
    whole.name = value.name + ":whole";
    whole.shape = physical(value.shape, value.layout);
    model::PlainAttributes fill;
    fill.op = kernels::find_plain("Expand")->number;
    fill.present = 1;
    fill.arguments = {whole.shape.rank()};
    fill.arguments.insert(fill.arguments.end(), whole.shape.dims().begin(), whole.shape.dims().end());
    model::Node made;
    made.name = value.name + ":fill";
    made.op = OpKind::kPlain;
    made.attributes = std::move(fill);
    tensors_.push_back(std::move(single));
    made.inputs.push_back(TensorId(tensors_.size() - 1));
    tensors_.push_back(std::move(whole));
    made.outputs.push_back(TensorId(tensors_.size() - 1));
    nodes_.push_back(std::move(made));
    return nodes_.back().outputs[0];
  }

  WeightId add_constant(const Value& value) {
    Recipe recipe;
    recipe.kind = Recipe::Kind::kConstant;
    recipe.constant = permuted(*value.constant, value.layout);
    model::Weight weight;
    weight.name = value.name;
    weight.shape = recipe.constant.shape;
    weight.panel_layout.dtype = is_float(value.dtype) ? DType::kF32 : value.dtype;
    weight.panel_bytes = Bytes(static_cast<std::uint64_t>(weight.shape.element_count()) * size_of(weight.panel_layout.dtype));
    return add_weight(std::move(weight), std::move(recipe));
  }

  /// The index of a scale, one for all that are alike.
  std::uint32_t quantisation(const std::optional<ByteScale>& bytes) {
    if (!bytes) return model::kNoQuantisation;
    const auto [found, is_new] = weights_.quantisations.try_emplace({bytes->scale, bytes->zero}, graph_.quantisations.size());
    if (is_new) graph_.quantisations.push_back({-1, {bytes->scale}, {bytes->zero}, {}, {}});
    return static_cast<std::uint32_t>(found->second);
  }

  template <class T>
  WeightId add_values(const std::string& name, const std::vector<T>& values, std::int64_t count, DType dtype = DType::kF32) {
    Recipe recipe;
    recipe.values = std::as_bytes(std::span(values));
    model::Weight weight;
    weight.name = name;
    weight.shape = Shape{count};
    weight.panel_layout.dtype = dtype;
    weight.panel_bytes = Bytes(static_cast<std::uint64_t>(count) * size_of(dtype));
    graph_.weights.push_back(std::move(weight));
    recipes_.push_back(std::move(recipe));
    return WeightId(graph_.weights.size() - 1);
  }

  /// A norm that is made twice (split_queries) has its weights once.
  void add_scale_and_shift(const DraftNode& node, std::vector<WeightId>& weights) {
    const bool norm = node.op == OpKind::kLayerNorm;
    if (const auto before = norm ? norm_of_.find(node.inputs[0]) : norm_of_.end();
        before != norm_of_.end() && before->second.node->scale == node.scale && before->second.node->bias == node.bias) {
      weights.insert(weights.end(), {before->second.scale, before->second.shift});
      return;
    }
    const auto channels = static_cast<std::int64_t>(node.scale.size());
    weights.push_back(add_values(node.name + ":scale", node.scale, channels));
    weights.push_back(add_values(node.name + ":shift", node.bias, channels));
    if (norm) norm_of_[node.inputs[0]] = {&node, weights.end()[-2], weights.back()};
  }

  WeightId add_panels(const DraftNode& node) {
    Recipe recipe;
    recipe.source = pack_source_of(node);
    if (node.op == OpKind::kConvTranspose) {
      recipe.tap_order = kernels::transposed_tap_order(std::get<model::ConvAttributes>(node.attributes).window);
      recipe.source.tap_order = recipe.tap_order;
    }
    recipe.kind = Recipe::Kind::kPanels;
    const PackSource& source = recipe.source;
    model::Weight weight;
    weight.name = node.panels->name;
    if (node.integers) {
      recipe.kind = Recipe::Kind::kIntegers;
      return add_integers(node, std::move(weight), std::move(recipe));
    }
    if (auto quantised = quantised_of(node, source)) {
      const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
      if (conv == nullptr)
        kernels::describe_quantised(*quantised, std::array{source.outputs, source.depth}, weight);
      else
        kernels::describe_quantised(*quantised, std::array{source.outputs, conv->window.kernel_h, conv->window.kernel_w, source.depth},
                                    weight);
      // Scales and zeros of short groups may take more than the floats would.
      if (weight.panel_bytes.count() < model::values_of_lane(weight) * model::kPanelLanes * sizeof(float)) {
        recipe.kind = Recipe::Kind::kQuantised;
        recipe.quantised = *quantised;
        return add_weight(std::move(weight), std::move(recipe));
      }
    }
    recipe.may_round = may_round(node, source);
    recipe.source.storage = storage_of(node, source);
    if (of_two_axes(node.op)) {
      kernels::describe_panels(source, std::array{source.outputs, source.depth}, weight);
      return add_weight(std::move(weight), std::move(recipe));
    }
    const auto& conv = std::get<model::ConvAttributes>(node.attributes);
    if (conv.depthwise() && source.storage == kernels::PanelStorage::kF32) {
      recipe.kind = Recipe::Kind::kDepthwise;
      kernels::describe_depthwise(source, std::array{source.outputs, conv.window.kernel_h, conv.window.kernel_w}, weight);
    } else {
      kernels::describe_panels(source, std::array{source.outputs, conv.window.kernel_h, conv.window.kernel_w, source.depth}, weight);
    }
    return add_weight(std::move(weight), std::move(recipe));
  }

  /// Small ones are kept for good, and nothing is gained by rounding them.
  static bool may_round(const DraftNode& node, const PackSource& source) noexcept {
    const auto values = static_cast<std::uint64_t>(source.outputs * source.taps * source.depth);
    return takes_narrow(node) && values * sizeof(float) >= model::kAlwaysResidentBelow.count();
  }

  /// What the node's panels hold.
  kernels::PanelStorage storage_of(const DraftNode& node, const PackSource& source) const {
    using kernels::PanelStorage;
    if (!may_round(node, source)) return PanelStorage::kF32;
    if (const auto named = storage_.by_name.find(node.panels->name); named != storage_.by_name.end()) return named->second;
    if (!storage_.all && source.scale.empty() && source.dtype == DType::kF16) return PanelStorage::kF16;
    if (!storage_.all) return source.scale.empty() && source.dtype == DType::kBF16 ? PanelStorage::kBf16 : PanelStorage::kF32;
    return can_hold(*storage_.all, source) ? kernels::smallest_from(*storage_.all, source.taps * source.depth) : PanelStorage::kF32;
  }

  WeightId add_integers(const DraftNode& node, model::Weight weight, Recipe recipe) {
    const Constant& w = node.panels->values;
    const PackSource& source = recipe.source;
    const std::int64_t first = (w.data - w.quantised->base) / static_cast<std::int64_t>(sizeof(float));
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    recipe.integers = {source, node.integers->values->data() + first, conv != nullptr && conv->depthwise(), merged_groups(node)};
    if (conv == nullptr)
      kernels::describe_integers(recipe.integers, std::array{source.outputs, source.depth}, weight);
    else if (conv->depthwise())
      kernels::describe_integers(recipe.integers, std::array{source.outputs, conv->window.kernel_h, conv->window.kernel_w}, weight);
    else
      kernels::describe_integers(
          recipe.integers, std::array{source.outputs, conv->window.kernel_h, conv->window.kernel_w, source.depth * recipe.integers.merged},
          weight);
    return add_weight(std::move(weight), std::move(recipe));
  }

  /// How many of the node's groups are one in the graph.
  std::int64_t merged_groups(const DraftNode& node) const noexcept {
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    return storage_.merge_groups && node.integers && conv != nullptr && node.op == OpKind::kConv
               ? groups_to_merge(*conv, node.epilogue.has_residual)
               : 1;
  }

  /// Weights that several nodes share are stored once.
  WeightId add_weight(model::Weight weight, Recipe recipe) {
    auto& candidates = weights_.by_data[recipe.kind == Recipe::Kind::kConstant ? recipe.constant.data : recipe.source.data];
    for (const std::size_t i : candidates)
      if (same(recipes_[i], recipe)) return WeightId(i);
    candidates.push_back(recipes_.size());
    graph_.weights.push_back(std::move(weight));
    recipes_.push_back(std::move(recipe));
    return WeightId(graph_.weights.size() - 1);
  }

  void add_node(const DraftNode& node) {
    model::Node made;
    made.name = node.name;
    made.op = node.op;
    made.attributes = node.attributes;
    if (auto* conv = std::get_if<model::ConvAttributes>(&made.attributes)) conv->groups /= merged_groups(node);
    made.epilogue = node.epilogue;
    made.numeric = node.numeric;
    made.quantisation = quantisation(node.sums);
    if (node.panels) {
      made.weights.push_back(add_panels(node));
      const std::int64_t lanes = graph_.weight(made.weights[0]).panels * model::kPanelLanes;
      if (node.integers) {
        made.weights.push_back(add_values(node.name + ":bias", node.integers->bias, lanes, DType::kI32));
        if (draft_.value(node.output).dtype != DType::kI32)
          made.weights.push_back(add_values(node.name + ":multipliers", node.integers->multipliers, lanes));
      } else if (node.epilogue.has_bias) {
        made.weights.push_back(add_values(node.name + ":bias", node.bias, lanes));
      }
    }
    if (node.op == OpKind::kAffine || node.op == OpKind::kLayerNorm) add_scale_and_shift(node, made.weights);
    if (node.op == OpKind::kSoftmax && !node.scale.empty())
      made.weights.push_back(add_values(node.name + ":exponentials", node.scale, static_cast<std::int64_t>(node.scale.size())));
    if (node.op == OpKind::kRecurrent && !node.scale.empty())
      made.weights.push_back(add_values(node.name + ":peepholes", node.scale, static_cast<std::int64_t>(node.scale.size())));
    if (!node.table.empty()) made.weights.push_back(add_values(node.name + ":table", node.table, 256, DType::kU8));
    for (const ValueId input : node.inputs) made.inputs.push_back(operand(input));
    add_bodies(node, made);
    made.outputs.push_back(tensor(node.output));
    nodes_.push_back(std::move(made));
  }

  const Draft& draft_;
  model::Graph& graph_;
  std::vector<model::Tensor>& tensors_;
  std::vector<model::Node>& nodes_;
  std::vector<Recipe>& recipes_;
  Weights& weights_;
  const Storage& storage_;
  std::vector<TensorId> tensor_of_;
  struct Norm {
    const DraftNode* node = nullptr;
    WeightId scale, shift;
  };
  std::map<ValueId, Norm> norm_of_;  // by what they read
};

}  // namespace

bool same(const Recipe& a, const Recipe& b) {
  const PackSource &x = a.source, &y = b.source;
  return a.kind == b.kind && x.data == y.data && x.dtype == y.dtype && x.storage == y.storage && x.outputs == y.outputs &&
         x.taps == y.taps && x.depth == y.depth && x.outputs_per_group == y.outputs_per_group && x.group_stride == y.group_stride &&
         x.output_stride == y.output_stride && x.tap_stride == y.tap_stride && x.k_inner == y.k_inner &&
         x.k_outer_stride == y.k_outer_stride && x.k_inner_stride == y.k_inner_stride && std::ranges::equal(x.scale, y.scale) &&
         std::ranges::equal(x.run_order, y.run_order) && a.tap_order == b.tap_order && a.quantised.bits == b.quantised.bits &&
         a.largest_left_out == b.largest_left_out && a.integers.values == b.integers.values && a.constant.data == b.constant.data &&
         a.constant.dtype == b.constant.dtype && a.constant.shape == b.constant.shape && a.constant.strides == b.constant.strides;
}

std::vector<Recipe> emit(const Draft& draft, model::Graph& graph, const Storage& storage) {
  Weights weights;
  Emitter(draft, graph, graph.tensors, graph.nodes, weights, storage).run();
  return std::move(weights.recipes);
}

Status Packer::produce(WeightId id, PanelRange p, std::span<std::byte> out) {
  Recipe& recipe = recipes_[id.index()];
  recipe.source.tap_order = recipe.quantised.where.tap_order = recipe.tap_order;
  switch (recipe.kind) {
    case Recipe::Kind::kPanels:
      kernels::pack_panels(recipe.source, p, out);
      break;
    case Recipe::Kind::kSparse:
      kernels::pack_sparse(recipe.source, p, out, recipe.largest_left_out);
      break;
    case Recipe::Kind::kDepthwise:
      kernels::pack_depthwise(recipe.source, p, out);
      break;
    case Recipe::Kind::kQuantised:
      kernels::pack_quantised(recipe.quantised, p, out);
      break;
    case Recipe::Kind::kIntegers:
      kernels::pack_integers(recipe.integers, p, out);
      break;
    case Recipe::Kind::kValues:
      std::memset(out.data(), 0, out.size());
      if (!recipe.values.empty()) std::memcpy(out.data(), recipe.values.data(), recipe.values.size());
      break;
    case Recipe::Kind::kConstant: {
      std::memset(out.data(), 0, out.size());
      if (!is_float(recipe.constant.dtype)) {
        write_elements(recipe.constant, out.data());
        break;
      }
      // `out` is 64-byte aligned or at least a vector's storage; the values are f32.
      write_floats(recipe.constant, {reinterpret_cast<float*>(out.data()), static_cast<std::size_t>(recipe.constant.elements())});
      break;
    }
  }
  return {};
}

}  // namespace sluice::importer
