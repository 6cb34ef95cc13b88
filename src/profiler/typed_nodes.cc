#include "src/profiler/typed_nodes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::profiler {
namespace {

using kernels::PanelStorage;
using model::OpKind;

TensorId add_tensor(const Shape& shape, model::Graph& graph) {
  graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), DType::kF32, shape, {}});
  return TensorId(graph.tensors.size() - 1);
}

TensorId add_bytes(const Shape& shape, model::Graph& graph) {
  const TensorId id = add_tensor(shape, graph);
  graph.tensors[id.index()].dtype = DType::kU8;
  graph.tensors[id.index()].quantisation = 0;
  return id;
}

WeightId add_plain(std::int64_t values, DType dtype, model::Graph& graph) {
  model::Weight weight;
  weight.name = "w" + std::to_string(graph.weights.size());
  weight.panel_layout.dtype = dtype;
  weight.shape = {values};
  weight.panels = 1;
  weight.panel_bytes = weight.bytes = Bytes(align_up(static_cast<std::uint64_t>(values) * size_of(dtype), 64));
  graph.weights.push_back(weight);
  return WeightId(graph.weights.size() - 1);
}

bool is_depthwise(const model::Node& node) noexcept {
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  return node.op == OpKind::kConv && conv != nullptr && conv->depthwise();
}

/// Values of all outputs, without what fills panels up.
std::int64_t values_of(const model::Weight& weight) noexcept { return weight.shape.element_count(); }

/// Is it the weight of a layer whose kernels take panels of fewer bits?
bool takes_narrow(const model::Graph& graph, const model::Node& node) noexcept {
  if (node.weights.empty()) return false;
  const model::WeightLayout layout = graph.weight(node.weights[0]).panel_layout.layout;
  return layout == model::WeightLayout::kPanels || layout == model::WeightLayout::kDepthwise;
}

/// Gives a weight of f32 panels of another storage.
void store(PanelStorage storage, model::Weight& weight) {
  const auto values = static_cast<std::int64_t>(model::values_of_lane(weight));
  if (storage == PanelStorage::kF32) return;
  if (weight.panel_layout.layout == model::WeightLayout::kDepthwise) weight.shape = {weight.shape[0], weight.shape[1], weight.shape[2], 1};
  weight.panel_layout = kernels::layout_of(storage);
  weight.panel_bytes = model::panel_bytes_of(weight.panel_layout, static_cast<std::uint64_t>(values)).value_or(Bytes());
  weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(weight.panels);
}

/// Stores the weight of a layer as `convert --weights` would: a small one stays f32, and so does one that would not become smaller.
void store_as_converted(PanelStorage storage, const model::Node& node, model::Graph& graph) {
  if (!takes_narrow(graph, node)) return;
  model::Weight& weight = graph.weights[node.weights[0].index()];
  if (static_cast<std::uint64_t>(values_of(weight)) * sizeof(float) < model::kAlwaysResidentBelow.count()) return;
  store(kernels::smallest_from(storage, static_cast<std::int64_t>(model::values_of_lane(weight))), weight);
}

bool is_layer(const model::Node& node) noexcept { return node.op == OpKind::kConv || node.op == OpKind::kDense; }

/// Does such a node, of f32, become integers in nets that are quantised?
bool becomes_integers(const model::Graph& graph, const model::Node& node) {
  if (node.numeric != model::NumericClass::kExact) return false;
  if (is_layer(node)) return graph.weight(node.weights[0]).panel_layout.dtype == DType::kF32;
  return node.op == OpKind::kPool || node.op == OpKind::kBinary || node.op == OpKind::kUnary;
}

/// Gives a layer weights of integers.
void store_integers(model::Node& node, model::Graph& graph) {
  const model::Weight real = graph.weight(node.weights[0]);
  model::Weight integers = real;
  integers.name += ":i8";
  integers.panel_layout.dtype = DType::kI8;
  integers.panel_layout.k_interleave = is_depthwise(node) ? 1 : 4;
  integers.panel_bytes = model::panel_bytes_of(integers.panel_layout, model::values_of_lane(integers)).value_or(Bytes());
  integers.bytes = integers.panel_bytes * static_cast<std::uint64_t>(integers.panels);
  graph.weights.push_back(integers);
  const WeightId weight(graph.weights.size() - 1);
  const std::int64_t lanes = real.panels * model::kPanelLanes;
  node.weights = {weight, add_plain(lanes, DType::kI32, graph), add_plain(lanes, DType::kF32, graph)};
}

/// The same node with bytes of activations.
model::Node over_bytes(model::Node node, model::Graph& graph) {
  node.name += ":u8";
  for (TensorId& input : node.inputs) input = add_bytes(Shape(graph.tensor(input).shape), graph);
  node.outputs[0] = add_bytes(Shape(graph.tensor(node.outputs[0]).shape), graph);
  return node;
}

/// The same node in integers. Bytes have a range at most behind a layer's sums: other functions are tables.
model::Node over_integers(const model::Node& real, model::Graph& graph) {
  model::Node node = over_bytes(real, graph);
  node.numeric = model::NumericClass::kInt8;
  if (node.op == OpKind::kUnary) {
    node.epilogue = {};
    node.weights = {add_plain(256, DType::kU8, graph)};
  }
  if (!is_layer(node)) return node;
  store_integers(node, graph);
  Function& function = node.epilogue.activation.function;
  if (function != Function::kNone) function = Function::kRelu;
  return node;
}

bool moves_values(const model::Node& node) noexcept {
  return node.op == OpKind::kConcat || node.op == OpKind::kSlice || node.op == OpKind::kPad || node.op == OpKind::kTranspose;
}

/// Makes the first `count` nodes those of a quantised net. Layers over rows, as transformers have them, mostly give floats, and
/// what stands between those, over no map, stays.
void make_integers(std::size_t count, model::Graph& graph) {
  constexpr std::size_t kEachBorder = 8;
  std::size_t layers = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const model::Node real = graph.nodes[n];
    const Shape in = graph.tensor(real.inputs[0]).shape, out = graph.tensor(real.outputs[0]).shape;
    if (is_layer(real) && becomes_integers(graph, real)) {
      graph.nodes[n] = over_integers(real, graph);
      if (real.op == OpKind::kDense && (out[0] == 1 || layers % 3 != 0)) {
        graph.nodes[n].outputs[0] = add_tensor(out, graph);
        graph.nodes[n].epilogue.activation = real.epilogue.activation;
      }
      const bool image = in.rank() == 4 && in[3] <= 4;
      if (layers++ % kEachBorder == 0 || image) add_borders_of_integers(in, graph);
    } else if (becomes_integers(graph, real) && out.rank() == 4) {
      graph.nodes[n] = over_integers(real, graph);
    } else if (moves_values(real)) {
      graph.nodes[n] = over_bytes(real, graph);
    }
  }
  const auto first = graph.nodes.begin(), last = first + static_cast<std::ptrdiff_t>(count);
  const auto kept = std::remove_if(first, last, [](const model::Node& node) { return node.numeric == model::NumericClass::kWinograd4; });
  graph.nodes.erase(kept, last);
}

void one_quantisation(model::Graph& graph) { graph.quantisations = {{-1, {0.02f}, {128}, {}, {}}}; }

}  // namespace

std::optional<PanelStorage> storage_of(NetType type) noexcept {
  switch (type) {
    case NetType::kF32:
      return PanelStorage::kF32;
    case NetType::kBf16:
      return PanelStorage::kBf16;
    case NetType::kF16:
      return PanelStorage::kF16;
    case NetType::kInt8:
      return PanelStorage::kInt8;
    case NetType::kInt4:
      return PanelStorage::kInt4;
    case NetType::kIntegers:
      break;
  }
  return std::nullopt;
}

NetType type_of(const model::Graph& graph, const model::Node& node) noexcept {
  if (node.numeric == model::NumericClass::kInt8) return NetType::kIntegers;
  if (node.weights.empty()) return NetType::kF32;
  const model::PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  if (!model::is_narrow(layout)) return NetType::kF32;
  if (layout.dtype == DType::kF16) return NetType::kF16;
  if (layout.dtype == DType::kBF16) return NetType::kBf16;
  return model::bits_of(layout) == 8 ? NetType::kInt8 : NetType::kInt4;
}

bool may_have(NetType nets, NetType node) noexcept {
  if (node == NetType::kF32 || node == nets) return true;
  const bool widens = (nets == NetType::kInt8 || nets == NetType::kInt4) && node == NetType::kBf16;
  return widens || (nets == NetType::kInt4 && node == NetType::kInt8);
}

void make_of(NetType type, std::size_t count, model::Graph& graph) {
  if (const auto storage = storage_of(type)) {
    for (std::size_t n = 0; n < count; ++n) store_as_converted(*storage, graph.nodes[n], graph);
    return;
  }
  one_quantisation(graph);
  make_integers(count, graph);
}

void add_stored(std::span<const PanelStorage> storages, model::Graph& graph) {
  const std::size_t count = graph.nodes.size();
  constexpr std::size_t kEach = 9;
  std::size_t turn = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const model::Node& real = graph.nodes[n];
    if (!is_layer(real) || is_depthwise(real) || turn++ % kEach != 0) continue;
    if (real.op == OpKind::kConv && real.as<model::ConvAttributes>().groups > 1) continue;
    for (const PanelStorage storage : storages) {
      model::Node node = graph.nodes[n];
      model::Weight stored = graph.weight(node.weights[0]);
      stored.name += ":stored";
      store(storage, stored);
      graph.weights.push_back(stored);
      node.weights[0] = WeightId(graph.weights.size() - 1);
      node.outputs = {add_tensor(Shape(graph.tensor(node.outputs[0]).shape), graph)};
      graph.nodes.push_back(std::move(node));
    }
  }
}

void add_integers(model::Graph& graph) {
  one_quantisation(graph);
  const std::size_t count = graph.nodes.size();
  constexpr std::size_t kFixedNodes = 200, kOfCorpus = 5;  // of the layers drawn, a part
  for (std::size_t n = 0; n < count; ++n) {
    if (n >= kFixedNodes && n % kOfCorpus != 0) continue;
    if (becomes_integers(graph, graph.nodes[n])) graph.nodes.push_back(over_integers(model::Node(graph.nodes[n]), graph));
  }
}

void add_borders_of_integers(const Shape& shape, model::Graph& graph) {
  const auto add = [&](OpKind op, TensorId from, TensorId to) {
    model::Node node;
    node.name = std::string(model::name_of(op)) + std::to_string(graph.nodes.size());
    node.op = op;
    node.numeric = model::NumericClass::kInt8;
    node.inputs = {from};
    node.outputs = {to};
    graph.nodes.push_back(std::move(node));
  };
  const TensorId real = add_tensor(shape, graph), bytes = add_bytes(shape, graph);
  add(OpKind::kQuantize, real, bytes);
  const TensorId from = add_bytes(shape, graph), to = add_tensor(shape, graph);
  add(OpKind::kDequantize, from, to);
}

}  // namespace sluice::profiler
