#include "src/profiler/sample_graph.h"

#include <string>
#include <utility>

namespace sluice::profiler {
namespace {

using model::OpKind;

/// A convolution of square maps: extent, channels in and out, kernel, stride, groups.
struct ConvShape {
  std::int64_t extent, in, out, kernel, stride, groups;
};

// VGG, ResNet, SqueezeNet and MobileNet, from wide and shallow to narrow and deep.
constexpr ConvShape kConvolutions[] = {
    {224, 3, 64, 3, 1, 1},     {224, 3, 64, 7, 2, 1},     {224, 3, 32, 3, 2, 1},     {224, 64, 64, 3, 1, 1},    {112, 64, 128, 3, 1, 1},
    {112, 128, 128, 3, 1, 1},  {56, 64, 64, 3, 1, 1},     {56, 256, 256, 3, 1, 1},   {56, 128, 128, 3, 2, 1},   {55, 16, 64, 3, 1, 1},
    {28, 128, 128, 3, 1, 1},   {28, 512, 512, 3, 1, 1},   {28, 256, 256, 3, 2, 1},   {27, 32, 128, 3, 1, 1},    {14, 256, 256, 3, 1, 1},
    {14, 512, 512, 3, 1, 1},   {14, 512, 512, 3, 2, 1},   {13, 64, 256, 3, 1, 1},    {7, 512, 512, 3, 1, 1},    {224, 3, 768, 16, 16, 1},
    {112, 32, 16, 1, 1, 1},    {112, 16, 96, 1, 1, 1},    {56, 64, 64, 1, 1, 1},     {56, 64, 256, 1, 1, 1},    {56, 256, 64, 1, 1, 1},
    {56, 24, 144, 1, 1, 1},    {56, 144, 24, 1, 1, 1},    {56, 256, 512, 1, 2, 1},   {55, 64, 16, 1, 1, 1},     {28, 512, 128, 1, 1, 1},
    {28, 128, 512, 1, 1, 1},   {28, 192, 32, 1, 1, 1},    {28, 512, 1024, 1, 2, 1},  {14, 1024, 256, 1, 1, 1},  {14, 256, 1024, 1, 1, 1},
    {14, 64, 384, 1, 1, 1},    {14, 576, 96, 1, 1, 1},    {13, 512, 1000, 1, 1, 1},  {7, 2048, 512, 1, 1, 1},   {7, 512, 2048, 1, 1, 1},
    {7, 160, 960, 1, 1, 1},    {7, 320, 1280, 1, 1, 1},   {112, 32, 32, 3, 1, 32},   {112, 96, 96, 3, 2, 96},   {56, 144, 144, 3, 1, 144},
    {56, 144, 144, 3, 2, 144}, {28, 192, 192, 3, 1, 192}, {14, 384, 384, 3, 1, 384}, {14, 576, 576, 3, 2, 576}, {7, 960, 960, 3, 1, 960},
    {56, 128, 128, 3, 1, 32},  {28, 256, 256, 3, 1, 32},  {14, 512, 512, 3, 1, 32},
};

struct DenseShape {
  std::int64_t rows, in, out;
};
constexpr DenseShape kDense[] = {{1, 25088, 4096}, {1, 4096, 4096}, {1, 4096, 1000},  {1, 2048, 1000},  {1, 1280, 1000},
                                 {1, 768, 3072},   {197, 768, 768}, {197, 768, 3072}, {197, 3072, 768}, {64, 768, 2304},
                                 {64, 768, 768},   {64, 768, 3072}, {64, 3072, 768},  {64, 768, 16384}, {16, 512, 512}};

/// Pools: extent, channels, kernel, stride.
constexpr std::int64_t kPools[][4] = {{224, 64, 2, 2}, {112, 64, 3, 2},   {56, 256, 2, 2}, {14, 512, 2, 2},
                                      {55, 128, 3, 2}, {13, 1000, 13, 1}, {7, 2048, 7, 1}, {7, 1280, 7, 1}};

/// Maps that elementwise kernels run over: extent, channels.
constexpr std::int64_t kMaps[][2] = {{112, 64}, {56, 256}, {28, 512}, {14, 1024}, {14, 96}, {7, 2048}};

/// Sequences: positions, features.
constexpr std::int64_t kSequences[][2] = {{197, 768}, {197, 3072}, {64, 768}, {64, 3072}, {1, 1000}};

class Builder {
 public:
  model::Graph build() {
    for (const ConvShape& shape : kConvolutions) convolution(shape);
    for (const DenseShape& shape : kDense) dense(shape);
    for (const auto& [extent, channels, kernel, stride] : kPools) pool(extent, channels, kernel, stride);
    for (const auto& [extent, channels] : kMaps) elementwise({1, extent, extent, channels});
    for (const auto& [positions, features] : kSequences) sequence({positions, features});
    for (const std::int64_t positions : {16, 64, 197, 384})
      for (const std::int64_t heads : {4, 12}) attention(positions, heads, positions != 197);
    over_integers();
    return std::move(graph_);
  }

 private:
  TensorId tensor(const Shape& shape) {
    graph_.tensors.push_back({"t" + std::to_string(graph_.tensors.size()), DType::kF32, shape, {}});
    return TensorId(graph_.tensors.size() - 1);
  }

  WeightId weight(model::WeightLayout layout, const Shape& shape, std::int64_t panels, std::int64_t panel_floats) {
    model::Weight weight;
    weight.name = "w" + std::to_string(graph_.weights.size());
    weight.panel_layout.layout = layout;
    weight.shape = shape;
    weight.panels = panels;
    weight.panel_bytes = Bytes(align_up(static_cast<std::uint64_t>(panel_floats) * sizeof(float), 64));
    weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(panels);
    graph_.weights.push_back(weight);
    return WeightId(graph_.weights.size() - 1);
  }
  WeightId plain(std::int64_t values) { return weight(model::WeightLayout::kPlain, {values}, 1, values); }

  model::Node& add(OpKind op, std::vector<TensorId> inputs, const Shape& output, model::Attributes attributes = {}) {
    model::Node node;
    node.name = std::string(model::name_of(op)) + std::to_string(graph_.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {tensor(output)};
    node.attributes = attributes;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }

  /// With a bias and, as in most networks, an activation.
  void add_weighted(model::Node& node, model::WeightLayout layout, const Shape& shape, std::int64_t outputs, std::int64_t depth) {
    const std::int64_t panels = model::panel_count(outputs, model::outputs_per_group(node));
    node.weights = {weight(layout, shape, panels, depth * model::kPanelLanes), plain(panels * model::kPanelLanes)};
    node.epilogue.has_bias = true;
    node.epilogue.activation.function = model::Function::kRelu;
  }

  void convolution(const ConvShape& s) {
    const std::int64_t pad = s.kernel == s.stride ? 0 : s.kernel / 2;
    const std::int64_t out = (s.extent + 2 * pad - s.kernel) / s.stride + 1;
    model::ConvAttributes a;
    a.window = {s.extent, s.extent, out, out, s.kernel, s.kernel, s.stride, s.stride, 1, 1, pad, pad, pad, pad};
    a.groups = s.groups;
    a.in_channels = s.in;
    a.out_channels = s.out;
    const std::int64_t depth = s.in / s.groups;
    const auto layout = a.depthwise() ? model::WeightLayout::kDepthwise : model::WeightLayout::kPanels;
    const Shape logical = a.depthwise() ? Shape{s.out, s.kernel, s.kernel} : Shape{s.out, s.kernel, s.kernel, depth};
    for (const model::NumericClass numeric : {model::NumericClass::kExact, model::NumericClass::kWinograd4}) {
      if (numeric == model::NumericClass::kWinograd4 && (s.kernel != 3 || s.stride != 1 || s.groups != 1)) continue;
      model::Node& node = add(OpKind::kConv, {tensor({1, s.extent, s.extent, s.in})}, {1, out, out, s.out}, a);
      node.numeric = numeric;
      add_weighted(node, layout, logical, s.out, s.kernel * s.kernel * depth);
    }
  }

  void dense(const DenseShape& s) {
    model::Node& node = add(OpKind::kDense, {tensor({s.rows, s.in})}, {s.rows, s.out}, model::DenseAttributes{s.in, s.out});
    add_weighted(node, model::WeightLayout::kPanels, {s.out, s.in}, s.out, s.in);
  }

  void pool(std::int64_t extent, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    const std::int64_t out = (extent - kernel) / stride + 1;
    model::PoolAttributes a;
    a.kind = kernel == extent ? model::PoolKind::kAverage : model::PoolKind::kMax;
    a.window = {extent, extent, out, out, kernel, kernel, stride, stride};
    add(OpKind::kPool, {tensor({1, extent, extent, channels})}, {1, out, out, channels}, a);
  }

  void elementwise(const Shape& shape) {
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kRelu;
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kSigmoid;
    add(OpKind::kBinary, {tensor(shape), tensor(shape)}, shape, model::BinaryAttributes{});
    model::Node& affine = add(OpKind::kAffine, {tensor(shape)}, shape);
    affine.weights = {plain(shape.back()), plain(shape.back())};
  }

  void sequence(const Shape& shape) {
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kGelu;
    add(OpKind::kBinary, {tensor(shape), tensor(shape)}, shape, model::BinaryAttributes{});
    add(OpKind::kSoftmax, {tensor(shape)}, shape, model::SoftmaxAttributes{});
    model::Node& norm = add(OpKind::kLayerNorm, {tensor(shape)}, shape, model::LayerNormAttributes{});
    norm.weights = {plain(shape.back()), plain(shape.back())};
  }

  void attention(std::int64_t positions, std::int64_t heads, bool causal) {
    constexpr std::int64_t kFeaturesOfHead = 64;
    const Shape shape{positions, heads * kFeaturesOfHead};
    add(OpKind::kAttention, {tensor(shape), tensor(shape), tensor(shape)}, shape,
        model::AttentionAttributes{.heads = heads, .scale = 0.125f, .causal = causal});
  }

  /// Layers, pools and elementwise nodes once more over bytes, and where those begin and end.
  void over_integers() {
    graph_.quantisations = {{-1, {0.02f}, {128}, {}, {}}};
    const std::size_t count = graph_.nodes.size();
    for (std::size_t n = 0; n < count; ++n) {
      const model::Node& real = graph_.nodes[n];
      const bool layer = real.op == OpKind::kConv || real.op == OpKind::kDense;
      const bool taken = layer || real.op == OpKind::kPool || real.op == OpKind::kBinary || real.op == OpKind::kUnary;
      if (taken && real.numeric == model::NumericClass::kExact) over_integers(real, layer);
    }
    for (const auto& [extent, channels] : kMaps) {
      const Shape shape{1, extent, extent, channels};
      model::Node& begin = add(OpKind::kQuantize, {tensor(shape)}, shape);
      begin.numeric = model::NumericClass::kInt8;
      make_bytes(begin.outputs[0]);
      model::Node& end = add(OpKind::kDequantize, {tensor(shape)}, shape);
      end.numeric = model::NumericClass::kInt8;
      make_bytes(end.inputs[0]);
    }
  }

  void over_integers(model::Node node, bool layer) {
    node.name += ":u8";
    node.numeric = model::NumericClass::kInt8;
    const std::vector<TensorId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) make_bytes(node.inputs[i] = tensor(graph_.tensor(inputs[i]).shape));
    make_bytes(node.outputs[0] = tensor(graph_.tensor(node.outputs[0]).shape));
    if (node.op == OpKind::kUnary) {
      node.epilogue = {};
      node.weights = {plain(256)};
      of_type(node.weights[0], DType::kU8);
    }
    if (layer) {
      const model::Weight real = graph_.weight(node.weights[0]);
      const bool depthwise = real.panel_layout.layout == model::WeightLayout::kDepthwise;
      model::Weight integers = real;
      integers.name += ":i8";
      integers.panel_layout.dtype = DType::kI8;
      integers.panel_layout.k_interleave = depthwise ? 1 : 4;
      integers.panel_bytes = model::panel_bytes_of(integers.panel_layout, model::values_of_lane(integers)).value_or(Bytes());
      integers.bytes = integers.panel_bytes * static_cast<std::uint64_t>(integers.panels);
      graph_.weights.push_back(integers);
      const std::int64_t lanes = real.panels * model::kPanelLanes;
      node.weights = {WeightId(graph_.weights.size() - 1), plain(lanes), plain(lanes)};
      of_type(node.weights[1], DType::kI32);
    }
    graph_.nodes.push_back(std::move(node));
  }

  void make_bytes(TensorId id) {
    graph_.tensors[id.index()].dtype = DType::kU8;
    graph_.tensors[id.index()].quantisation = 0;
  }
  void of_type(WeightId id, DType dtype) {
    model::Weight& weight = graph_.weights[id.index()];
    weight.panel_layout.dtype = dtype;
    weight.panel_bytes = weight.bytes = Bytes(align_up(static_cast<std::uint64_t>(weight.shape[0]) * size_of(dtype), 64));
  }

  model::Graph graph_;
};

}  // namespace

model::Graph sample_graph() { return Builder().build(); }

}  // namespace sluice::profiler
