// Networks of real shapes without their values: what the planner sees of a model. Weights get a place in a file that is never written.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/operators/validate.h"
#include "src/model/layout.h"

namespace sluice::planner {

/// Adds nodes that read the tensors given and returns the tensor they make. Feature maps are [1, H, W, C].
class NetBuilder {
 public:
  explicit NetBuilder(std::string name) { graph_.name = std::move(name); }

  TensorId tensor(Shape shape, DType dtype = DType::kF32) {
    graph_.tensors.push_back({"t" + std::to_string(graph_.tensors.size()), dtype, shape, {}});
    return TensorId(graph_.tensors.size() - 1);
  }
  TensorId input(Shape shape) {
    const TensorId id = tensor(shape);
    graph_.inputs.push_back({graph_.tensor(id).name, id, shape, {0, 1, 2, 3, 4, 5, 6, 7}});
    return id;
  }
  TensorId constant(Shape shape) {
    const TensorId id = tensor(shape);
    graph_.tensors[id.index()].weight = plain(shape);
    return id;
  }
  void output(TensorId id) { graph_.outputs.push_back({graph_.tensor(id).name, id, graph_.tensor(id).shape, {0, 1, 2, 3, 4, 5, 6, 7}}); }
  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  struct Conv {
    std::int64_t channels = 0;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t groups = 1;
    TensorId residual;
    std::int64_t pad = -1;  // -1: as much as keeps the extent at stride 1
  };
  TensorId conv(TensorId in, Conv c) {
    const Shape from = shape(in);
    const std::int64_t pad = c.pad < 0 ? c.kernel / 2 : c.pad;
    const auto extent = [&](std::int64_t n) { return (n + 2 * pad - c.kernel) / c.stride + 1; };
    const TensorId out = tensor({from[0], extent(from[1]), extent(from[2]), c.channels});
    model::ConvAttributes a;
    a.window = {from[1], from[2], shape(out)[1], shape(out)[2], c.kernel, c.kernel, c.stride, c.stride, 1, 1, pad, pad, pad, pad};
    a.groups = c.groups;
    a.in_channels = from[3];
    a.out_channels = c.channels;
    model::Node& node = add(model::OpKind::kConv, {in}, out, a);
    const std::int64_t depth = a.depthwise() ? 1 : from[3] / c.groups;
    const auto layout = a.depthwise() ? model::WeightLayout::kDepthwise : model::WeightLayout::kPanels;
    const Shape logical = a.depthwise() ? Shape{c.channels, c.kernel, c.kernel} : Shape{c.channels, c.kernel, c.kernel, depth};
    finish_weighted(node, logical, c.channels, c.kernel * c.kernel, depth, layout);
    if (c.residual.valid()) {
      node.epilogue.has_residual = true;
      node.inputs.push_back(c.residual);
    }
    return out;
  }
  /// Twice as high and wide, as a decoder's.
  TensorId conv_transpose(TensorId in, std::int64_t channels) {
    const Shape from = shape(in);
    const TensorId out = tensor({from[0], 2 * from[1], 2 * from[2], channels});
    model::ConvAttributes a;
    a.window = {from[1], from[2], 2 * from[1], 2 * from[2], 2, 2, 2, 2, 1, 1, 0, 0, 0, 0};
    a.in_channels = from[3];
    a.out_channels = channels;
    model::Node& node = add(model::OpKind::kConvTranspose, {in}, out, a);
    finish_weighted(node, {channels, 2, 2, from[3]}, channels, 4, from[3], model::WeightLayout::kPanels);
    return out;
  }
  TensorId attention(TensorId q, TensorId k, TensorId v, std::int64_t heads) {
    const TensorId out = tensor(shape(q));
    add(model::OpKind::kAttention, {q, k, v}, out, model::AttentionAttributes{heads, 0.25f, false});
    return out;
  }
  TensorId dense(TensorId in, std::int64_t features) {
    Shape to = shape(in);
    const std::int64_t depth = to.back();
    to[to.rank() - 1] = features;
    const TensorId out = tensor(to);
    model::Node& node = add(model::OpKind::kDense, {in}, out, model::DenseAttributes{depth, features});
    finish_weighted(node, {features, depth}, features, 1, depth, model::WeightLayout::kPanels);
    return out;
  }
  TensorId pool(TensorId in, std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0) {
    const Shape from = shape(in);
    const auto extent = [&](std::int64_t n) { return (n + 2 * pad - kernel) / stride + 1; };
    const TensorId out = tensor({from[0], extent(from[1]), extent(from[2]), from[3]});
    model::PoolAttributes a;
    a.window = {from[1], from[2], shape(out)[1], shape(out)[2], kernel, kernel, stride, stride, 1, 1, pad, pad, pad, pad};
    add(model::OpKind::kPool, {in}, out, a);
    return out;
  }
  TensorId concat(std::vector<TensorId> parts, int axis) {
    Shape to = shape(parts[0]);
    to[axis] = 0;
    for (TensorId part : parts) to[axis] += shape(part)[axis];
    const TensorId out = tensor(to);
    add(model::OpKind::kConcat, std::move(parts), out, model::AxisAttributes{axis});
    return out;
  }
  TensorId slice(TensorId in, int axis, std::int64_t begin, std::int64_t extent) {
    Shape to = shape(in);
    to[axis] = extent;
    const TensorId out = tensor(to);
    model::SliceAttributes a;
    a.start[static_cast<std::size_t>(axis)] = begin;
    add(model::OpKind::kSlice, {in}, out, a);
    return out;
  }
  TensorId reshape(TensorId in, Shape to) {
    const TensorId out = tensor(to);
    add(model::OpKind::kReshape, {in}, out);
    return out;
  }
  TensorId relu(TensorId in) {
    const TensorId out = tensor(shape(in));
    add(model::OpKind::kUnary, {in}, out).epilogue.activation.function = model::Function::kRelu;
    return out;
  }
  TensorId binary(TensorId a, TensorId b, model::BinaryFunction function = model::BinaryFunction::kAdd) {
    const TensorId out = tensor(shape(a));
    add(model::OpKind::kBinary, {a, b}, out, model::BinaryAttributes{function});
    return out;
  }
  TensorId softmax(TensorId in) {
    const TensorId out = tensor(shape(in));
    add(model::OpKind::kSoftmax, {in}, out, model::SoftmaxAttributes{});
    return out;
  }
  TensorId layer_norm(TensorId in) {
    const TensorId out = tensor(shape(in));
    model::Node& node = add(model::OpKind::kLayerNorm, {in}, out, model::LayerNormAttributes{});
    for (int i = 0; i < 2; ++i) node.weights.push_back(plain({shape(in).back()}));
    return out;
  }

  model::Graph finish() {
    const auto size = model::assign_layout(graph_, Bytes(4096));
    REQUIRE(size.has_value());
    const Status valid = model::validate(graph_, *size, operators::validate_node);
    INFO((valid ? std::string() : valid.error().to_string()));
    REQUIRE(valid.has_value());
    return graph_;
  }
  const model::Graph& unfinished() const { return graph_; }
  model::Node& last_node() { return graph_.nodes.back(); }

 private:
  model::Node& add(model::OpKind op, std::vector<TensorId> inputs, TensorId output, model::Attributes attributes = {}) {
    model::Node node;
    node.name = std::string(model::name_of(op)) + std::to_string(graph_.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = attributes;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }
  WeightId plain(Shape shape) {
    model::Weight weight;
    weight.name = "w" + std::to_string(graph_.weights.size());
    weight.shape = shape;
    weight.panel_bytes = Bytes(align_up(static_cast<std::uint64_t>(shape.element_count()) * 4, 64));
    graph_.weights.push_back(weight);
    return WeightId(graph_.weights.size() - 1);
  }
  void finish_weighted(model::Node& node, Shape logical, std::int64_t outputs, std::int64_t taps, std::int64_t depth,
                       model::WeightLayout layout) {
    model::Weight weight;
    weight.name = "w" + std::to_string(graph_.weights.size());
    weight.panel_layout.layout = layout;
    weight.shape = logical;
    weight.panels = model::panel_count(outputs, model::outputs_per_group(node));
    weight.panel_bytes = Bytes(static_cast<std::uint64_t>(taps * depth * 64));
    const std::int64_t lanes = weight.panels * model::kPanelLanes;
    graph_.weights.push_back(weight);
    node.weights = {WeightId(graph_.weights.size() - 1), WeightId::invalid()};
    node.weights[1] = plain({lanes});
    node.epilogue.has_bias = true;
    node.epilogue.activation.function = model::Function::kRelu;
  }

  model::Graph graph_;
};

/// Encoder layers with norms before attentions. `again`: queries have a norm of their own, as `convert` makes them.
inline model::Graph pre_norm_net(int layers, std::int64_t positions, std::int64_t width, bool again) {
  NetBuilder net("norms first");
  TensorId x = net.input({1, positions, width});
  for (int layer = 0; layer < layers; ++layer) {
    const TensorId normed = net.layer_norm(x);
    const TensorId k = net.dense(normed, width), v = net.dense(normed, width);
    const TensorId q = net.dense(again ? net.layer_norm(x) : normed, width);
    x = net.binary(net.dense(net.attention(q, k, v, 2), width), x);
    x = net.binary(net.dense(net.relu(net.dense(net.layer_norm(x), 4 * width)), width), x);
  }
  net.output(x);
  return net.finish();
}

inline model::Graph squeezenet1_1() {
  NetBuilder net("squeezenet1_1");
  const auto fire = [&](TensorId in, std::int64_t squeeze, std::int64_t expand) {
    const TensorId s = net.conv(in, {.channels = squeeze});
    return net.concat({net.conv(s, {.channels = expand}), net.conv(s, {.channels = expand, .kernel = 3})}, 3);
  };
  TensorId x = net.conv(net.input({1, 224, 224, 3}), {.channels = 64, .kernel = 3, .stride = 2, .pad = 0});
  x = net.pool(x, 3, 2);
  x = net.pool(fire(fire(x, 16, 64), 16, 64), 3, 2);
  x = net.pool(fire(fire(x, 32, 128), 32, 128), 3, 2);
  x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256);
  x = net.pool(net.conv(x, {.channels = 1000}), 13, 1);
  net.output(net.reshape(x, {1, 1000}));
  return net.finish();
}

inline model::Graph resnet(std::vector<int> blocks, const char* name) {
  NetBuilder net(name);
  TensorId x = net.conv(net.input({1, 224, 224, 3}), {.channels = 64, .kernel = 7, .stride = 2});
  x = net.pool(x, 3, 2, 1);
  std::int64_t width = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2) {
    for (int b = 0; b < blocks[stage]; ++b) {
      const std::int64_t stride = b == 0 && stage > 0 ? 2 : 1;
      TensorId y = net.conv(x, {.channels = width});
      y = net.conv(y, {.channels = width, .kernel = 3, .stride = stride});
      const TensorId shortcut = b == 0 ? net.conv(x, {.channels = 4 * width, .stride = stride}) : x;
      x = net.conv(y, {.channels = 4 * width, .residual = shortcut});
    }
  }
  x = net.reshape(net.pool(x, 7, 1), {1, 2048});
  net.output(net.dense(x, 1000));
  return net.finish();
}
inline model::Graph resnet50() { return resnet({3, 4, 6, 3}, "resnet50"); }
inline model::Graph resnet152() { return resnet({3, 8, 36, 3}, "resnet152"); }

inline model::Graph mobilenet_v2() {
  NetBuilder net("mobilenet_v2");
  TensorId x = net.conv(net.input({1, 224, 224, 3}), {.channels = 32, .kernel = 3, .stride = 2});
  const std::int64_t settings[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                       {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const auto& [expand, channels, repeats, first_stride] : settings) {
    for (std::int64_t i = 0; i < repeats; ++i) {
      const std::int64_t stride = i == 0 ? first_stride : 1;
      const std::int64_t in = net.shape(x)[3];
      TensorId y = expand == 1 ? x : net.conv(x, {.channels = in * expand});
      y = net.conv(y, {.channels = in * expand, .kernel = 3, .stride = stride, .groups = in * expand});
      const bool residual = stride == 1 && in == channels;
      x = net.conv(y, {.channels = channels, .residual = residual ? x : TensorId::invalid()});
    }
  }
  x = net.conv(x, {.channels = 1280});
  net.output(net.dense(net.reshape(net.pool(x, 7, 1), {1, 1280}), 1000));
  return net.finish();
}

inline model::Graph vgg19() {
  NetBuilder net("vgg19");
  TensorId x = net.input({1, 224, 224, 3});
  for (const auto& [channels, repeats] : {std::pair{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}}) {
    for (int i = 0; i < repeats; ++i) x = net.conv(x, {.channels = channels, .kernel = 3});
    x = net.pool(x, 2, 2);
  }
  x = net.reshape(x, {1, 25088});
  net.output(net.dense(net.dense(net.dense(x, 4096), 4096), 1000));
  return net.finish();
}

}  // namespace sluice::planner
