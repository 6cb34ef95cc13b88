// A small graph with every operator and every kind of weight, and bytes for its weights: what the tests of model files write and break.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "sluice/model/graph.h"
#include "sluice/model/model_writer.h"

namespace sluice::model {

/// Adds tensors, weights and nodes; keeps the arithmetic of panels in one place.
class GraphBuilder {
 public:
  TensorId tensor(std::string name, Shape shape, DType dtype = DType::kF32) {
    graph.tensors.push_back({std::move(name), dtype, shape, {}});
    return TensorId(graph.tensors.size() - 1);
  }

  TensorId constant(std::string name, Shape shape, DType dtype = DType::kF32) {
    const TensorId id = tensor(name, shape, dtype);
    graph.tensors[id.index()].weight = plain(name + ".values", shape, dtype);
    return id;
  }

  WeightId plain(std::string name, Shape shape, DType dtype = DType::kF32) {
    const auto bytes = static_cast<std::uint64_t>(shape.element_count()) * size_of(dtype);
    Weight weight;
    weight.name = std::move(name);
    weight.panel_layout.dtype = dtype;
    weight.shape = shape;
    weight.panel_bytes = Bytes(align_up(bytes, 64));
    graph.weights.push_back(weight);
    return WeightId(graph.weights.size() - 1);
  }

  /// Panels of `taps` x `depth` x 16 floats.
  WeightId panels(std::string name, Shape shape, std::int64_t count, std::int64_t taps, std::int64_t depth,
                  WeightLayout layout = WeightLayout::kPanels) {
    Weight weight;
    weight.name = std::move(name);
    weight.panel_layout.layout = layout;
    weight.shape = shape;
    weight.panels = count;
    weight.panel_bytes = Bytes(static_cast<std::uint64_t>(taps * depth * 64));
    graph.weights.push_back(weight);
    return WeightId(graph.weights.size() - 1);
  }

  Node& node(OpKind op, std::vector<TensorId> inputs, TensorId output, Attributes attributes = {}) {
    Node node;
    node.name = std::string(name_of(op)) + std::to_string(graph.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = attributes;
    graph.nodes.push_back(node);
    return graph.nodes.back();
  }

  void input(TensorId id, Shape onnx_shape, std::array<std::int8_t, Shape::kMaxRank> perm) {
    graph.inputs.push_back({graph.tensor(id).name, id, onnx_shape, perm});
  }
  void output(TensorId id) { graph.outputs.push_back({graph.tensor(id).name, id, graph.tensor(id).shape, {0, 1, 2, 3, 4, 5, 6, 7}}); }

  Graph graph;
};

inline ConvAttributes conv_attributes(const Shape& in, const Shape& out, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                                      std::int64_t groups = 1) {
  ConvAttributes a;
  a.window = {in[1], in[2], out[1], out[2], kernel, kernel, stride, stride, 1, 1, pad, pad, pad, pad};
  a.groups = groups;
  a.in_channels = in[3];
  a.out_channels = out[3];
  return a;
}

/// Indices of the sample's nodes, for the tests that break one.
enum SampleNode : std::size_t {
  kStem,
  kDepthwise,
  kWinograd,
  kGrouped,
  kMaxPool,
  kTransposedConv,
  kAffineNode,
  kUnaryNode,
  kLrnNode,
  kPadNode,
  kSliceNode,
  kConcatNode,
  kResizeNode,
  kMeanPool,
  kFlatten,
  kDenseNode,
  kMulNode,
  kFold,
  kTransposeNode,
  kMatMulNode,
  kSoftmaxNode,
  kEmbeddingNode,
  kLayerNormNode,
  kAttentionNode,
  kRecurrentNode,
  kPlainNode,
  kQuantizeNode,
  kIntegerDense,
  kTableNode,
  kIntegerMul,
  kDequantizeNode,
};

inline void add_convolutions(GraphBuilder& b, TensorId image, TensorId out) {
  const Shape wide{1, 8, 8, 32};
  const TensorId stem = b.tensor("stem", wide);
  const TensorId depthwise = b.tensor("depthwise", wide);
  const TensorId winograd = b.tensor("winograd", wide);
  const TensorId grouped = b.tensor("grouped", {1, 8, 8, 48});
  const TensorId pooled = b.tensor("pooled", {1, 4, 4, 48});

  Node& n0 = b.node(OpKind::kConv, {image}, stem, conv_attributes({1, 8, 8, 3}, wide, 3, 1, 1));
  n0.epilogue = {.has_bias = true, .activation = {Function::kRelu, 0, 0}};
  n0.weights = {b.panels("stem.weight", {32, 3, 3, 3}, 2, 9, 3), b.plain("stem.bias", {32})};

  Node& n1 = b.node(OpKind::kConv, {stem}, depthwise, conv_attributes(wide, wide, 3, 1, 1, 32));
  n1.weights = {b.panels("depthwise.weight", {32, 3, 3}, 2, 9, 1, WeightLayout::kDepthwise)};

  Node& n2 = b.node(OpKind::kConv, {depthwise, stem}, winograd, conv_attributes(wide, wide, 3, 1, 1));
  n2.numeric = NumericClass::kWinograd4;
  n2.epilogue.has_residual = true;
  n2.weights = {b.panels("winograd.weight", {32, 3, 3, 32}, 2, 9, 32)};

  Node& n3 = b.node(OpKind::kConv, {winograd}, grouped, conv_attributes(wide, {1, 8, 8, 48}, 1, 1, 0, 2));
  n3.epilogue = {.has_bias = true, .activation = {Function::kClip, 0, 6}};
  n3.weights = {b.panels("grouped.weight", {48, 1, 1, 16}, 4, 1, 16), b.plain("grouped.bias", {64})};

  PoolAttributes pool;
  pool.window = {8, 8, 4, 4, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0};
  b.node(OpKind::kPool, {grouped}, pooled, pool);

  Node& n5 = b.node(OpKind::kConvTranspose, {pooled}, out, conv_attributes({1, 4, 4, 48}, {1, 8, 8, 16}, 2, 2, 0));
  n5.weights = {b.panels("up.weight", {16, 2, 2, 48}, 1, 4, 48)};
}

inline void add_plumbing(GraphBuilder& b, TensorId in, TensorId out) {
  const Shape shape{1, 8, 8, 16};
  const TensorId affine = b.tensor("affine", shape);
  const TensorId tanh = b.tensor("tanh", shape);
  const TensorId lrn = b.tensor("lrn", shape);
  const TensorId padded = b.tensor("padded", {1, 10, 10, 16});
  const TensorId sliced = b.tensor("sliced", {1, 8, 8, 8});
  const TensorId joined = b.tensor("joined", {1, 8, 8, 24});
  const TensorId resized = b.tensor("resized", {1, 16, 16, 24});
  const TensorId mean = b.tensor("mean", {1, 2, 2, 24});

  b.node(OpKind::kAffine, {in}, affine).weights = {b.plain("affine.scale", {16}), b.plain("affine.shift", {16})};
  b.node(OpKind::kUnary, {affine}, tanh).epilogue.activation.function = Function::kTanh;
  b.node(OpKind::kLrn, {tanh}, lrn, LrnAttributes{});
  PadAttributes pad;
  pad.mode = PadMode::kReflect;
  pad.before = {0, 1, 2, 0};
  pad.after = {0, 1, 0, 0};
  b.node(OpKind::kPad, {lrn}, padded, pad);
  SliceAttributes slice;
  slice.start = {0, 1, 9, 0};
  slice.step = {1, 1, -1, 2, 1, 1, 1, 1};
  b.node(OpKind::kSlice, {padded}, sliced, slice);
  b.node(OpKind::kConcat, {sliced, tanh}, joined, AxisAttributes{3});
  ResizeAttributes resize;
  resize.scale = {1, 2, 2, 1, 1, 1, 1, 1};
  b.node(OpKind::kResize, {joined}, resized, resize);
  PoolAttributes pool;
  pool.kind = PoolKind::kAverage;
  pool.window = {16, 16, 2, 2, 8, 8, 8, 8, 1, 1, 0, 0, 0, 0};
  pool.count_include_pad = true;
  b.node(OpKind::kPool, {resized}, mean, pool);
  b.node(OpKind::kReshape, {mean}, out);
}

inline void add_head(GraphBuilder& b, TensorId in, TensorId out) {
  const TensorId dense = b.tensor("dense", {1, 320});
  const TensorId scaled = b.tensor("scaled", {1, 320});
  const TensorId folded = b.tensor("folded", {2, 16, 10});
  const TensorId turned = b.tensor("turned", {2, 10, 16});
  const TensorId product = b.tensor("product", {2, 16, 16});
  Node& n = b.node(OpKind::kDense, {in}, dense, DenseAttributes{96, 320});
  n.epilogue.has_bias = true;
  n.weights = {b.panels("dense.weight", {320, 96}, 20, 1, 96), b.plain("dense.bias", {320})};
  b.node(OpKind::kBinary, {dense, b.constant("gain", {320})}, scaled, BinaryAttributes{BinaryFunction::kMul});
  b.node(OpKind::kReshape, {scaled}, folded);
  b.node(OpKind::kTranspose, {folded}, turned, TransposeAttributes{{0, 2, 1, 3, 4, 5, 6, 7}});
  b.node(OpKind::kMatMul, {folded, turned}, product);
  b.node(OpKind::kSoftmax, {product}, out, SoftmaxAttributes{true});
}

inline void add_transformer(GraphBuilder& b, TensorId tokens, TensorId out) {
  const Shape shape{2, 6, 48};
  const TensorId embedded = b.tensor("embedded", shape);
  const TensorId normed = b.tensor("normed", shape);
  Node& table = b.node(OpKind::kEmbedding, {tokens}, embedded, EmbeddingAttributes{60, 48});
  table.weights = {b.panels("table", {60, 48}, 4, 1, 48)};
  Node& norm = b.node(OpKind::kLayerNorm, {embedded}, normed, LayerNormAttributes{1e-6f});
  norm.weights = {b.plain("norm.scale", {48}), b.plain("norm.shift", {48})};
  const TensorId attended = b.tensor("attended", shape);
  b.node(OpKind::kAttention, {normed, normed, embedded}, attended, AttentionAttributes{4, 0.25f, true});
  const TensorId states = b.tensor("states", shape);
  RecurrentAttributes lstm{.cell = Cell::kLstm, .hidden = 12, .reverse = true, .peepholes = true};
  lstm.functions[1] = {Function::kLeakyRelu, 0.25f, 0};
  Node& recurrent = b.node(OpKind::kRecurrent, {attended}, states, lstm);
  recurrent.epilogue.has_bias = true;
  recurrent.weights = {b.panels("recurrent", {48, 12}, 3, 1, 12), b.plain("recurrent.bias", {48}), b.plain("recurrent.peepholes", {36})};
  // Operator 21 of kernels/plain.h, Selu: two arguments, each a list of one real.
  const std::int64_t half = std::bit_cast<std::int64_t>(0.5);
  b.node(OpKind::kPlain, {states}, out, PlainAttributes{21, 0, 1, {1, half, 1, half}});
}

inline void add_integers(GraphBuilder& b, TensorId in, TensorId out) {
  const auto first = static_cast<std::uint32_t>(b.graph.quantisations.size());
  b.graph.quantisations.insert(b.graph.quantisations.end(), {{-1, {0.5f}, {128}, {}, {}}, {-1, {0.25f}, {}, {}, {}}});
  const auto integers = [&](std::string name, Shape shape, std::uint32_t q) {
    const TensorId id = b.tensor(std::move(name), shape, DType::kU8);
    b.graph.tensors[id.index()].quantisation = first + q;
    return id;
  };
  const Shape wide{2, 6, 50}, narrow{2, 6, 20};
  const TensorId quantized = integers("quantized", wide, 0), sums = integers("sums", narrow, 1), looked = integers("looked", narrow, 0),
                 product = integers("product8", narrow, 1);
  b.node(OpKind::kQuantize, {in}, quantized).numeric = NumericClass::kInt8;
  Node& dense = b.node(OpKind::kDense, {quantized}, sums, DenseAttributes{50, 20});
  dense.numeric = NumericClass::kInt8;
  dense.epilogue = {.has_bias = true, .activation = {Function::kRelu, 0, 0}};
  dense.weights = {b.panels("dense8", {20, 50}, 2, 1, 13), b.plain("dense8.bias", {32}, DType::kI32), b.plain("dense8.multipliers", {32})};
  b.graph.weights[dense.weights[0].index()].panel_layout = {.layout = WeightLayout::kPanels, .dtype = DType::kI8, .k_interleave = 4};
  Node& table = b.node(OpKind::kUnary, {sums}, looked);
  table.numeric = NumericClass::kInt8;
  table.weights = {b.plain("table8", {256}, DType::kU8)};
  Node& added = b.node(OpKind::kBinary, {looked, sums}, product, BinaryAttributes{BinaryFunction::kAdd});
  added.numeric = NumericClass::kInt8;
  added.epilogue.of_i8 = true;
  b.node(OpKind::kDequantize, {product}, out).numeric = NumericClass::kInt8;
}

/// The sample: an image network and a piece of a language network, 31 nodes, 24 KiB of resident and 170 KiB of streamed weights.
inline Graph sample_graph() {
  GraphBuilder b;
  b.graph.name = "sample";
  const TensorId image = b.tensor("image", {1, 8, 8, 3});
  const TensorId features = b.tensor("features", {1, 8, 8, 16});
  const TensorId vector = b.tensor("vector", {1, 96});
  const TensorId scores = b.tensor("scores", {2, 16, 16});
  b.input(image, {1, 3, 8, 8}, {0, 2, 3, 1, 4, 5, 6, 7});
  add_convolutions(b, image, features);
  add_plumbing(b, features, vector);
  add_head(b, vector, scores);
  b.output(scores);
  const TensorId tokens = b.tensor("tokens", {2, 6}, DType::kI64);
  const TensorId context = b.tensor("context", {2, 6, 48});
  b.input(tokens, {2, 6}, {0, 1, 2, 3, 4, 5, 6, 7});
  add_transformer(b, tokens, context);
  b.output(context);
  const TensorId reals = b.tensor("reals", {2, 6, 50}), codes = b.tensor("codes", {2, 6, 20});
  b.input(reals, {2, 6, 50}, {0, 1, 2, 3, 4, 5, 6, 7});
  add_integers(b, reals, codes);
  b.output(codes);
  b.graph.preprocess = {true, 256, 224, true, 1 / 255.0f, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  b.graph.labels = {"tabby", "espresso", ""};
  const TensorId mean = b.graph.nodes[kMeanPool].outputs[0];
  b.graph.units = {{"features", kStem, kFlatten, {image}, {mean}},
                   {"head", kFlatten, kEmbeddingNode - kFlatten, {mean}, {scores}},
                   {"language", kEmbeddingNode, kQuantizeNode - kEmbeddingNode, {tokens}, {context}},
                   {"integers", kQuantizeNode, kDequantizeNode + 1 - kQuantizeNode, {reals}, {codes}}};
  return b.graph;
}

/// Gives a weight these panels; what they hold stays as large as its shape says.
inline void repack(Weight& weight, const PanelLayout& layout) {
  weight.panel_layout = layout;
  weight.panel_bytes = panel_bytes_of(layout, values_of_lane(weight)).value_or(Bytes());
}

/// A branch of one node that runs in place of the sample's Tanh: the first reads what it captures; the second runs the third.
inline void add_subgraphs(Graph& graph) {
  Node& runner = graph.nodes[kUnaryNode];
  runner.first_subgraph = 0;
  runner.subgraph_count = 2;
  const Tensor& outer = graph.tensor(runner.inputs[0]);
  Tensor own{"own", outer.dtype, outer.shape, {}};
  Tensor made = own;
  made.name = "made";
  Node node;
  node.name = "inside";
  node.op = OpKind::kUnary;
  node.epilogue.activation.function = Function::kExp;
  node.inputs = {TensorId(0)};
  node.outputs = {TensorId(1)};
  graph.subgraphs = {{"then", {own, made}, {node}, {{runner.inputs[0], TensorId(0)}}, {}, {TensorId(1)}}};
  graph.subgraphs.push_back(graph.subgraphs[0]);
  graph.subgraphs[1].name = "else";
  graph.subgraphs[1].nodes[0].first_subgraph = 2;
  graph.subgraphs[1].nodes[0].subgraph_count = 1;
  graph.subgraphs.push_back({"body", {own, made}, {node}, {}, {TensorId(0)}, {TensorId(1)}});
}

/// A graph in sound form with all that the format has and this build does not run. `add_stored_forms` completes it after the layout.
inline Graph every_feature() {
  Graph graph = sample_graph();
  const auto weight = [&](SampleNode node) -> Weight& { return graph.weights[graph.nodes[node].weights[0].index()]; };
  graph.quantisations[0].zero_points = {3};
  graph.quantisations.push_back({0, {}, {}, graph.nodes[kStem].weights[1], {}});
  Tensor& stem = graph.tensors[graph.nodes[kStem].outputs[0].index()];
  stem.dtype = DType::kU8;
  stem.quantisation = 0;
  graph.nodes[kStem].numeric = NumericClass::kInt8;
  repack(weight(kStem), {.layout = WeightLayout::kPanels, .dtype = DType::kI8, .k_interleave = 4});
  weight(kStem).quantisation = 2;
  repack(weight(kWinograd), {.layout = WeightLayout::kSparse});
  weight(kWinograd).panel_ends = {5, 40};
  repack(weight(kGrouped), {.layout = WeightLayout::kPanels, .dtype = DType::kF16});
  repack(weight(kDenseNode),
         {.layout = WeightLayout::kPanels, .dtype = DType::kU8, .k_block = 2, .k_group = 32, .scale = PanelScale::kF16});
  repack(weight(kEmbeddingNode), {.layout = WeightLayout::kPanels, .side = PanelSide::kInputs});
  graph.tensors[graph.nodes[kLayerNormNode].outputs[0].index()].dtype = DType::kBF16;
  graph.codes = {{CodePlane::kBytes, 254, {4000, 96}}, {CodePlane::kRotated32, 0, {0, 4095, 1}}};
  for (std::size_t w = 0; w < graph.weights.size(); ++w) graph.weights[w].code = w % 2 == 0 ? 0 : 1;
  add_subgraphs(graph);
  return graph;
}

/// Stores each stretch smaller than it is, and encrypted.
inline void add_stored_forms(Graph& graph) {
  for (const Weight& weight : graph.weights) {
    Bytes offset = weight.offset;
    for (std::uint32_t s = weight.first_stretch; s < weight.first_stretch + weight.stretch_count; ++s) {
      Stretch& stretch = graph.stretches[s];
      stretch.form = static_cast<StretchForm>(kKnownStretchForms);
      stretch.offset = offset;
      stretch.stored_size = Bytes(stretch.raw_size.count() - 13);
      offset += stretch.stored_size;
      graph.tags.push_back({std::byte{1}, static_cast<std::byte>(s), std::byte{0xff}});
    }
  }
  // In the order of the stretches, which is that of the file.
  for (std::size_t s = 0; s < graph.tags.size(); ++s) graph.tags[s][1] = static_cast<std::byte>(s);
}

/// Bytes that depend on the weight and on their place in it, however the writer cuts it.
class PatternProducer final : public WeightProducer {
 public:
  explicit PatternProducer(const Graph& graph) : graph_(graph) {}

  static std::byte byte_at(WeightId id, std::uint64_t offset) {
    const std::uint64_t mixed = (offset + 1) * 0x9e3779b97f4a7c15u + id.raw() * 0xbf58476d1ce4e5b9u;
    return static_cast<std::byte>(mixed >> 56);
  }

  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override {
    const std::uint64_t begin = static_cast<std::uint64_t>(p.begin) * graph_.weight(id).panel_bytes.count();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(id, begin + i);
    return {};
  }

 private:
  const Graph& graph_;
};

/// One thing that is broken in a sample: what it is called, how it is done, and what the refusal says.
struct Break {
  const char* name;
  void (*apply)(Graph&);
  const char* reason;
};

}  // namespace sluice::model
