#include "sluice/model/graph.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "sluice/operators/validate.h"
#include "src/model/layout.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Bytes kHeaderEnd{1 << 16};
constexpr PanelLayout kI8Panels{.layout = WeightLayout::kPanels, .dtype = DType::kI8, .scale = PanelScale::kF32};

/// One way to break the sample, and words of the reason it is refused for.
template <class T>
T& attributes(Graph& g, SampleNode node) {
  return std::get<T>(g.nodes[node].attributes);
}
Window& window(Graph& g, SampleNode node) { return attributes<ConvAttributes>(g, node).window; }
Window& pool_window(Graph& g, SampleNode node) { return attributes<PoolAttributes>(g, node).window; }
Shape& shape_of_output(Graph& g, SampleNode node) { return g.tensors[g.nodes[node].outputs[0].index()].shape; }
Weight& weight(Graph& g, SampleNode node, std::size_t i = 0) { return g.weights[g.nodes[node].weights[i].index()]; }

void check_refused(const Break& broken, bool with_file) {
  INFO(broken.name);
  Graph graph = sample_graph();
  const auto size = assign_layout(graph, kHeaderEnd);
  REQUIRE(size);
  REQUIRE(validate(graph, *size, operators::validate_node));
  broken.apply(graph);
  const Status status = validate(graph, with_file ? *size : Bytes(0), operators::validate_node);
  REQUIRE_FALSE(status);
  const std::string text = status.error().to_string();
  INFO(text);
  CHECK(text.find(broken.reason) != std::string::npos);
}

}  // namespace

TEST_CASE("the sample is valid, and its weights are read in order") {
  Graph graph = sample_graph();
  const Status status = validate(graph, Bytes(0), operators::validate_node);
  INFO((status ? "" : status.error().to_string()));
  REQUIRE(status);
  std::vector<WeightId> read;
  weights_read_by(graph, graph.nodes[kDenseNode], read);
  weights_read_by(graph, graph.nodes[kMulNode], read);
  REQUIRE(read.size() == 3);
  CHECK(graph.weight(read[0]).name == "dense.weight");
  CHECK(graph.weight(read[1]).name == "dense.bias");
  CHECK(graph.weight(read[2]).name == "gain.values");
  CHECK(outputs_per_group(graph.nodes[kGrouped]) == 24);
  CHECK(outputs_per_group(graph.nodes[kDepthwise]) == 32);
  CHECK(outputs_per_group(graph.nodes[kDenseNode]) == 320);
  CHECK(outputs_per_group(graph.nodes[kTransposedConv]) == 16);
}

TEST_CASE("G1: ids, order and makers") {
  const Break breaks[] = {
      {"input id out of range", [](Graph& g) { g.nodes[kUnaryNode].inputs[0] = TensorId(1000); }, "G1: an input tensor does not exist"},
      {"input id is none", [](Graph& g) { g.nodes[kUnaryNode].inputs[0] = {}; }, "G1: an input tensor does not exist"},
      {"output id out of range", [](Graph& g) { g.nodes[kUnaryNode].outputs[0] = TensorId(0x7fffffff); },
       "G1: the output tensor does not exist"},
      {"input is output", [](Graph& g) { g.nodes[kUnaryNode].inputs = g.nodes[kUnaryNode].outputs; }, "G1: an input is used before"},
      {"a cycle", [](Graph& g) { g.nodes[kUnaryNode].inputs = g.nodes[kSoftmaxNode].outputs; }, "G1: an input is used before"},
      {"made twice", [](Graph& g) { g.nodes[kLrnNode].outputs = g.nodes[kUnaryNode].outputs; }, "G1: the output tensor is"},
      {"writes a graph input", [](Graph& g) { g.nodes[kUnaryNode].outputs = {g.inputs[0].tensor}; }, "G1: the output tensor is"},
      {"writes a constant", [](Graph& g) { g.nodes[kUnaryNode].outputs = {g.nodes[kMulNode].inputs[1]}; }, "G1: the output tensor is"},
      {"made by nothing", [](Graph& g) { g.tensors.push_back(g.tensor(g.inputs[0].tensor)); }, "G1: nothing makes this tensor"},
      {"no output", [](Graph& g) { g.nodes[kUnaryNode].outputs.clear(); }, "G1: a node has one output"},
      {"two outputs", [](Graph& g) { g.nodes[kUnaryNode].outputs.push_back(TensorId(0)); }, "G1: a node has one output"},
      {"weight id out of range", [](Graph& g) { g.nodes[kStem].weights[0] = WeightId(1000); }, "G1: a weight does not exist"},
      {"constant without a weight", [](Graph& g) { g.tensors[g.nodes[kMulNode].inputs[1].index()].weight = WeightId(1000); },
       "G1: a constant's"},
      {"constant of panels", [](Graph& g) { g.tensors[g.nodes[kMulNode].inputs[1].index()].weight = g.nodes[kDenseNode].weights[0]; },
       "G1: a constant's weight is not stored as plain"},
      {"constant larger than its weight",
       [](Graph& g) { g.tensors[g.nodes[kMulNode].inputs[1].index()].weight = g.nodes[kStem].weights[1]; },
       "G1: a constant's weight is smaller"},
      {"graph output that nobody makes", [](Graph& g) { g.nodes.pop_back(); }, "G1: nothing makes this tensor"},
      {"graph output is an input", [](Graph& g) { g.outputs[0] = g.inputs[0]; }, "G1: no node makes this graph output"},
      {"graph input twice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }, "G1: two graph inputs are one tensor"},
      {"graph input is a constant",
       [](Graph& g) {
         const TensorId id = g.nodes[kMulNode].inputs[1];
         g.inputs[0] = {"gain", id, g.tensor(id).shape, {0, 1, 2, 3, 4, 5, 6, 7}};
       },
       "G1: a graph input is a constant"},
      {"port id out of range", [](Graph& g) { g.outputs[0].tensor = TensorId(1000); }, "G1: a port's tensor does not exist"},
      {"no outputs", [](Graph& g) { g.outputs.clear(); }, "without outputs"},
      {"two outputs of one name", [](Graph& g) { g.outputs.push_back(g.outputs[0]); }, "have this name"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
}

TEST_CASE("G3: shapes") {
  const Break breaks[] = {
      {"negative extent", [](Graph& g) { g.tensors[3].shape[1] = -1; }, "G3"},
      {"no elements", [](Graph& g) { g.tensors[3].shape[1] = 0; }, "G3"},
      {"product overflows",
       [](Graph& g) {
         g.tensors[3].shape = {kHuge, 2, 2, 2};
       },
       "G3"},
      {"2^31 extents",
       [](Graph& g) {
         g.tensors[3].shape = {1ll << 31, 1ll << 31};
       },
       "G3"},
      {"larger than any tensor", [](Graph& g) { g.tensors[3].shape = {1ll << 40}; }, "G3"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
  // The limit and what was found are counted in the same unit: the second is the larger one.
  Graph graph = sample_graph();
  graph.tensors[3].shape = {1ll << 40};
  const Status status = validate(graph, Bytes(0), operators::validate_node);
  REQUIRE_FALSE(status);
  CHECK(status.error().needed == (1ull << 40) / size_of(graph.tensors[3].dtype));
  CHECK(status.error().available == 1ull << 40);
}

TEST_CASE("G2: windows, groups and channels") {
  const Break breaks[] = {
      {"stride 0", [](Graph& g) { window(g, kStem).stride_h = 0; }, "not positive"},
      {"dilation 0", [](Graph& g) { window(g, kStem).dilation_w = 0; }, "not positive"},
      {"kernel 0", [](Graph& g) { window(g, kStem).kernel_h = 0; }, "not positive"},
      {"negative stride", [](Graph& g) { window(g, kStem).stride_w = -1; }, "not positive"},
      {"huge pad", [](Graph& g) { window(g, kStem).pad_top = kHuge; }, "out of range"},
      {"huge dilation", [](Graph& g) { window(g, kStem).dilation_h = 1ll << 31; }, "does not follow"},
      {"kernel beyond the image", [](Graph& g) { window(g, kStem).kernel_h = 100; }, "does not follow"},
      {"pad too small", [](Graph& g) { window(g, kStem).pad_top = 0; }, "does not follow"},
      {"window of another input", [](Graph& g) { window(g, kStem).in_h = 9; }, "the input is not as"},
      {"window of another output", [](Graph& g) { window(g, kStem).out_w = 9; }, "the output is not as"},
      {"pads that cancel",
       [](Graph& g) {
         window(g, kStem).pad_left += 1 << 20;
         window(g, kStem).pad_right -= 1 << 20;
       },
       "negative pad"},
      // A padded image of 2^31 x 2^31 has 2^64 bytes: in 64 bits, none.
      {"a padded input that wraps to nothing",
       [](Graph& g) {
         constexpr std::int64_t kPad = std::int64_t{1} << 30;
         Window& w = window(g, kStem);
         w.pad_top = w.pad_left = w.pad_bottom = w.pad_right = kPad;
         w.stride_h = (w.in_h + 2 * kPad - w.kernel_h) / (w.out_h - 1);
         w.stride_w = (w.in_w + 2 * kPad - w.kernel_w) / (w.out_w - 1);
       },
       "larger than any machine"},
      {"groups 0", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).groups = 0; }, "positive"},
      {"groups do not divide", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).groups = 5; }, "divide"},
      {"negative groups", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).groups = -2; }, "positive"},
      {"channels 0", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).in_channels = 0; }, "positive"},
      {"other channels", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).in_channels = 64; }, "the input is not as"},
      {"other groups", [](Graph& g) { attributes<ConvAttributes>(g, kGrouped).groups = 4; }, "G4: the weight"},
      {"transposed: stride", [](Graph& g) { window(g, kTransposedConv).stride_h = 1ll << 31; }, "out of range"},
      {"transposed: kernel", [](Graph& g) { window(g, kTransposedConv).kernel_h = 9; }, "does not follow"},
      {"transposed: phases", [](Graph& g) { window(g, kTransposedConv).stride_h = window(g, kTransposedConv).stride_w = 1 << 20; }, "G2"},
      {"pool: kernel 0", [](Graph& g) { pool_window(g, kMaxPool).kernel_h = 0; }, "not positive"},
      {"pool: stride 0", [](Graph& g) { pool_window(g, kMaxPool).stride_h = 0; }, "not positive"},
      {"pool: negative pad", [](Graph& g) { pool_window(g, kMaxPool).pad_left = -1; }, "padding is negative"},
      {"pool: pad as wide as the window", [](Graph& g) { pool_window(g, kMaxPool).pad_top = 2; }, "as wide as its window"},
      {"pool: taps", [](Graph& g) { pool_window(g, kMaxPool).kernel_h = pool_window(g, kMaxPool).kernel_w = 1 << 30; }, "more taps"},
      {"pool: last window outside",
       [](Graph& g) {
         pool_window(g, kMaxPool) = {8, 8, 5, 4, 2, 2, 2, 2, 1, 1, 0, 0, 1, 0};
         shape_of_output(g, kMaxPool) = {1, 5, 4, 48};
       },
       "last window lies beyond"},
      {"pool of other channels", [](Graph& g) { g.nodes[kMaxPool].inputs[0] = g.nodes[kStem].inputs[0]; }, "the output is not as"},
      {"winograd of a 1x1", [](Graph& g) { g.nodes[kGrouped].numeric = NumericClass::kWinograd4; }, "winograd4 is for"},
      {"winograd of a pool", [](Graph& g) { g.nodes[kMaxPool].numeric = NumericClass::kWinograd4; }, "only convolutions"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
}

TEST_CASE("G2: other operators") {
  const Break breaks[] = {
      {"attributes of another operator", [](Graph& g) { g.nodes[kStem].attributes = DenseAttributes{}; }, "has its attributes"},
      {"no attributes", [](Graph& g) { g.nodes[kConcatNode].attributes = Attributes(); }, "has an axis"},
      {"too many inputs", [](Graph& g) { g.nodes[kUnaryNode].inputs.push_back(TensorId(0)); }, "number of inputs"},
      {"no inputs", [](Graph& g) { g.nodes[kSliceNode].inputs.clear(); }, "number of inputs"},
      {"residual is missing", [](Graph& g) { g.nodes[kStem].epilogue.has_residual = true; }, "number of inputs"},
      {"weights of an operator without", [](Graph& g) { g.nodes[kUnaryNode].weights = g.nodes[kStem].weights; }, "number of weights"},
      {"bias is missing", [](Graph& g) { g.nodes[kStem].weights.pop_back(); }, "number of weights"},
      {"bias where none is", [](Graph& g) { g.nodes[kConcatNode].epilogue.has_bias = true; }, "neither bias nor residual"},
      {"an order where integers are not added", [](Graph& g) { g.nodes[kStem].epilogue.residual_first = true; }, "added in an order"},
      {"floats of i8", [](Graph& g) { g.nodes[kMulNode].epilogue.of_i8 = true; }, "added in an order"},
      {"activation where none is", [](Graph& g) { g.nodes[kPadNode].epilogue.activation.function = Function::kRelu; }, "no activation"},
      {"activation of NaN", [](Graph& g) { g.nodes[kGrouped].epilogue.activation.b = kNan; }, "not numbers"},
      {"u8 into a convolution", [](Graph& g) { g.tensors[g.inputs[0].tensor.index()].dtype = DType::kU8; }, "not f32"},
      {"reshape changes the type", [](Graph& g) { g.tensors[g.nodes[kFlatten].outputs[0].index()].dtype = DType::kI32; }, "differ in type"},
      {"dense: features in", [](Graph& g) { attributes<DenseAttributes>(g, kDenseNode).in_features = 95; }, "features"},
      {"dense: features out", [](Graph& g) { attributes<DenseAttributes>(g, kDenseNode).out_features = -1; }, "features"},
      {"concat: axis beyond", [](Graph& g) { attributes<AxisAttributes>(g, kConcatNode).axis = 4; }, "axis"},
      {"concat: negative axis", [](Graph& g) { attributes<AxisAttributes>(g, kConcatNode).axis = -1; }, "axis"},
      {"concat: other axis", [](Graph& g) { attributes<AxisAttributes>(g, kConcatNode).axis = 0; }, "differ beside"},
      {"concat: sum", [](Graph& g) { g.nodes[kConcatNode].inputs.pop_back(); }, "add up"},
      {"slice: step 0", [](Graph& g) { attributes<SliceAttributes>(g, kSliceNode).step[1] = 0; }, "beside its input"},
      {"slice: start below", [](Graph& g) { attributes<SliceAttributes>(g, kSliceNode).start[1] = -1; }, "beside its input"},
      {"slice: end beyond", [](Graph& g) { attributes<SliceAttributes>(g, kSliceNode).start[1] = 3; }, "beside its input"},
      {"slice: end overflows", [](Graph& g) { attributes<SliceAttributes>(g, kSliceNode).step[3] = kHuge; }, "beside its input"},
      {"pad: overflow", [](Graph& g) { attributes<PadAttributes>(g, kPadNode).before[1] = kHuge; }, "out of range"},
      {"pad: amount", [](Graph& g) { attributes<PadAttributes>(g, kPadNode).before[1] = 2; }, "does not follow"},
      {"pad: reflects more than there is",
       [](Graph& g) {
         attributes<PadAttributes>(g, kPadNode).before[1] = 8;
         attributes<PadAttributes>(g, kPadNode).after[1] = -6;
       },
       "more than there is"},
      {"resize: scale 0", [](Graph& g) { attributes<ResizeAttributes>(g, kResizeNode).scale[1] = 0; }, "not positive"},
      {"resize: NaN", [](Graph& g) { attributes<ResizeAttributes>(g, kResizeNode).scale[1] = kNan; }, "not positive"},
      {"resize: infinite", [](Graph& g) { attributes<ResizeAttributes>(g, kResizeNode).scale[1] = INFINITY; }, "finite"},
      {"resize: other extent", [](Graph& g) { attributes<ResizeAttributes>(g, kResizeNode).scale[1] = 4; }, "does not follow"},
      {"transpose: not a permutation", [](Graph& g) { attributes<TransposeAttributes>(g, kTransposeNode).perm[1] = 1; }, "permutation"},
      {"transpose: negative axis", [](Graph& g) { attributes<TransposeAttributes>(g, kTransposeNode).perm[1] = -128; }, "permutation"},
      {"transpose: other axes",
       [](Graph& g) {
         attributes<TransposeAttributes>(g, kTransposeNode).perm = {0, 1, 2};
       },
       "transposed"},
      {"reshape: elements", [](Graph& g) { g.nodes[kFlatten].inputs = {g.inputs[0].tensor}; }, "number of elements"},
      {"lrn: size 0", [](Graph& g) { attributes<LrnAttributes>(g, kLrnNode).size = 0; }, "out of range"},
      {"lrn: NaN", [](Graph& g) { attributes<LrnAttributes>(g, kLrnNode).beta = kNan; }, "finite"},
      {"softmax: shape", [](Graph& g) { g.nodes[kSoftmaxNode].inputs = {g.inputs[0].tensor}; }, "differ in shape"},
      {"binary: broadcast", [](Graph& g) { g.nodes[kMulNode].inputs[0] = g.nodes[kFlatten].outputs[0]; }, "do not broadcast"},
      {"matmul: fit", [](Graph& g) { g.nodes[kMatMulNode].inputs[1] = g.nodes[kMatMulNode].inputs[0]; }, "do not fit"},
      {"layer norm: epsilon", [](Graph& g) { attributes<LayerNormAttributes>(g, kLayerNormNode).epsilon = -1.0f; }, "epsilon"},
      {"layer norm: scale", [](Graph& g) { weight(g, kLayerNormNode).panel_bytes = Bytes(64); }, "one value for each lane"},
      {"attention: heads 0", [](Graph& g) { attributes<AttentionAttributes>(g, kAttentionNode).heads = 0; }, "heads"},
      {"attention: heads do not divide", [](Graph& g) { attributes<AttentionAttributes>(g, kAttentionNode).heads = 5; }, "heads"},
      {"attention: NaN", [](Graph& g) { attributes<AttentionAttributes>(g, kAttentionNode).scale = kNan; }, "finite"},
      {"plain: no attributes", [](Graph& g) { g.nodes[kPlainNode].attributes = std::monostate(); }, "has its attributes"},
      {"plain: an input that is not there", [](Graph& g) { attributes<PlainAttributes>(g, kPlainNode).present = 3; },
       "inputs that it names"},
      {"plain: cut arguments", [](Graph& g) { attributes<PlainAttributes>(g, kPlainNode).arguments.pop_back(); }, "cut short"},
      {"plain: a length of -1", [](Graph& g) { attributes<PlainAttributes>(g, kPlainNode).arguments[0] = -1; }, "cut short"},
      {"plain: an endless length", [](Graph& g) { attributes<PlainAttributes>(g, kPlainNode).arguments[0] = kHuge; }, "cut short"},
      {"attention: other keys", [](Graph& g) { g.nodes[kAttentionNode].inputs[1] = g.nodes[kMatMulNode].outputs[0]; }, "do not fit"},
      {"embedding: float indices", [](Graph& g) { g.tensors[g.inputs[1].tensor.index()].dtype = DType::kF32; }, "i32 or i64"},
      {"embedding: table", [](Graph& g) { attributes<EmbeddingAttributes>(g, kEmbeddingNode).table_rows = 65; },
       "one lane for each output"},
      {"embedding: features", [](Graph& g) { attributes<EmbeddingAttributes>(g, kEmbeddingNode).features = 47; }, "a row for each index"},
      {"recurrent: hidden", [](Graph& g) { attributes<RecurrentAttributes>(g, kRecurrentNode).hidden = 13; }, "gates * hidden"},
      {"recurrent: cell", [](Graph& g) { attributes<RecurrentAttributes>(g, kRecurrentNode).cell = Cell::kGru; }, "only an LSTM"},
      {"recurrent: quantised panels of another size", [](Graph& g) { weight(g, kRecurrentNode).panel_layout = kI8Panels; },
       "panels are not as large"},
      {"residual: shape", [](Graph& g) { g.nodes[kWinograd].inputs[1] = g.inputs[0].tensor; }, "residual"},
      {"port: permutation", [](Graph& g) { g.inputs[0].perm[0] = 1; }, "permutation"},
      {"port: shape", [](Graph& g) { g.inputs[0].onnx_shape[1] = 4; }, "permuted"},
      {"preprocess: divides by zero", [](Graph& g) { g.preprocess.stddev[1] = 0; }, "zero"},
      {"preprocess: size", [](Graph& g) { g.preprocess.crop = kHuge; }, "out of range"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
}

TEST_CASE("G4: the weights of a node") {
  const Break breaks[] = {
      {"too few panels", [](Graph& g) { weight(g, kStem).panels = 1; }, "one lane for each output"},
      {"panels of other taps", [](Graph& g) { weight(g, kStem).panel_bytes = Bytes(64); }, "as large as taps"},
      {"depthwise in panels", [](Graph& g) { weight(g, kDepthwise).panel_layout.layout = WeightLayout::kPanels; }, "layout"},
      {"panels as depthwise", [](Graph& g) { weight(g, kStem).panel_layout.layout = WeightLayout::kDepthwise; }, "layout"},
      {"bias too short", [](Graph& g) { weight(g, kStem, 1).panel_bytes = Bytes(64); }, "one value for each lane"},
      {"bias of panels", [](Graph& g) { g.nodes[kStem].weights[1] = g.nodes[kStem].weights[0]; }, "plain values"},
      {"scale of another type", [](Graph& g) { weight(g, kAffineNode).panel_layout.dtype = DType::kF64; }, "plain values"},
      {"shift too long", [](Graph& g) { weight(g, kAffineNode, 1).panel_bytes = Bytes(640); }, "one value for each lane"},
      {"8 lanes", [](Graph& g) { weight(g, kStem).panel_layout.lanes = 8; }, "does not know"},
      {"int8 panels", [](Graph& g) { weight(g, kStem).panel_layout = kI8Panels; }, "G4: the weight's panels are not as large"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
}

TEST_CASE("G2, G4: integers") {
  const Break breaks[] = {
      {"floats in the class int8", [](Graph& g) { g.nodes[kStem].numeric = NumericClass::kInt8; }, "number of weights"},
      {"an operator that is none of integers", [](Graph& g) { g.nodes[kSoftmaxNode].numeric = NumericClass::kInt8; },
       "a softmax of integers has its attributes"},
      {"a border of another class", [](Graph& g) { g.nodes[kQuantizeNode].numeric = NumericClass::kExact; }, "not one of this"},
      {"i8 activations",
       [](Graph& g) {
         g.quantisations[0].zero_points.clear();
         g.tensors[g.nodes[kQuantizeNode].outputs[0].index()].dtype = DType::kI8;
       },
       "not u8 of one scale"},
      {"no scale", [](Graph& g) { g.tensors[g.nodes[kQuantizeNode].outputs[0].index()].quantisation = kNoQuantisation; }, "not u8 of one"},
      {"scales along an axis",
       [](Graph& g) {
         g.quantisations[0] = {2, std::vector<float>(20, 1.0f), {}, {}, {}};
         g.tensors[g.nodes[kQuantizeNode].outputs[0].index()].quantisation = kNoQuantisation;
       },
       "not u8 of one"},
      {"quantised from integers", [](Graph& g) { g.nodes[kQuantizeNode].inputs = g.nodes[kTableNode].inputs; }, "G1"},
      {"dequantised to integers", [](Graph& g) { g.tensors[g.nodes[kDequantizeNode].outputs[0].index()].dtype = DType::kU8; }, "at f32"},
      {"no bias", [](Graph& g) { g.nodes[kIntegerDense].epilogue.has_bias = false; }, "G4: products of integers have a bias"},
      {"no multipliers", [](Graph& g) { g.nodes[kIntegerDense].weights.pop_back(); }, "number of weights"},
      {"a bias of floats", [](Graph& g) { weight(g, kIntegerDense, 1).panel_layout.dtype = DType::kF32; }, "plain values"},
      {"multipliers of integers", [](Graph& g) { weight(g, kIntegerDense, 2).panel_layout.dtype = DType::kI32; }, "plain values"},
      {"too few multipliers", [](Graph& g) { weight(g, kIntegerDense, 2).panel_bytes = Bytes(64); }, "one value for each lane"},
      {"depth of another shape",
       [](Graph& g) {
         weight(g, kIntegerDense).shape = {20, 48};
       },
       "as large as taps"},
      {"panels of floats",
       [](Graph& g) {
         Weight& w = weight(g, kIntegerDense);
         w.panel_layout = {.layout = WeightLayout::kPanels};
         w.panel_bytes = Bytes(50 * 64);
       },
       "bare i8 panels"},
      {"integer panels of floats",
       [](Graph& g) {
         Weight& w = weight(g, kDenseNode);
         w.panel_layout = {.layout = WeightLayout::kPanels, .dtype = DType::kI8, .k_interleave = 4};
         w.panel_bytes = Bytes(96 * 16);
       },
       "bare i8 panels"},
      {"sums with multipliers",
       [](Graph& g) {
         Tensor& sums = g.tensors[g.nodes[kIntegerDense].outputs[0].index()];
         sums.dtype = DType::kI32;
         g.nodes[kIntegerDense].epilogue.activation = {};
       },
       "number of weights"},
      {"an activation that no range says", [](Graph& g) { g.nodes[kIntegerDense].epilogue.activation.function = Function::kTanh; },
       "relu or clip"},
      {"a table with an activation", [](Graph& g) { g.nodes[kTableNode].epilogue.activation.function = Function::kRelu; }, "a table has"},
      {"half a table", [](Graph& g) { weight(g, kTableNode).panel_bytes = Bytes(128); }, "one value for each lane"},
      {"a power of integers", [](Graph& g) { attributes<BinaryAttributes>(g, kIntegerMul).function = BinaryFunction::kPow; },
       "none of integers"},
      {"a scale for sums without a residual", [](Graph& g) { g.nodes[kIntegerDense].quantisation = 0; }, "with a residual"},
      {"a scale that does not exist", [](Graph& g) { g.nodes[kIntegerDense].quantisation = 7; }, "G7: its quantisation"},
      {"movement to another type",
       [](Graph& g) {
         Node& move = g.nodes[kTableNode];
         move.op = OpKind::kReshape;
         move.numeric = NumericClass::kExact;
         move.weights.clear();
         g.tensors[move.outputs[0].index()].dtype = DType::kI8;
         g.tensors[move.outputs[0].index()].quantisation = kNoQuantisation;
       },
       "differ in type"},
  };
  for (const Break& broken : breaks) check_refused(broken, false);
}

TEST_CASE("G5: weights and stretches") {
  const Break breaks[] = {
      {"no panels", [](Graph& g) { weight(g, kStem).panels = 0; }, "G5: a weight has no panels"},
      {"negative panels", [](Graph& g) { weight(g, kStem).panels = -1; }, "G5: a weight has no panels"},
      {"size overflows", [](Graph& g) { weight(g, kStem).panels = kHuge; }, "G5: a weight is larger"},
      {"two panels of plain values", [](Graph& g) { weight(g, kStem, 1).panels = 2; }, "G5: a plain weight"},
      {"crooked panels", [](Graph& g) { weight(g, kStem).panel_bytes = Bytes(65); }, "multiple of 64"},
      {"other size", [](Graph& g) { weight(g, kStem).bytes += Bytes(64); }, "G5: a weight's size"},
      {"crooked offset", [](Graph& g) { weight(g, kDenseNode).offset += Bytes(1); }, "G5"},
      {"ends beyond the file", [](Graph& g) { weight(g, kDenseNode).offset += Bytes(4096); }, "G5: a weight ends beyond"},
      {"end wraps", [](Graph& g) { weight(g, kDenseNode).offset = Bytes(~std::uint64_t{63}); }, "G5: a weight ends beyond"},
      {"weights overlap", [](Graph& g) { weight(g, kDenseNode).offset -= Bytes(64); }, "G5: weights overlap"},
      {"first stretch of another", [](Graph& g) { weight(g, kDenseNode).first_stretch = 0; }, "G5"},
      {"first stretch beyond", [](Graph& g) { weight(g, kDenseNode).first_stretch = 0xffffffff; }, "G5: a weight's stretches"},
      {"stretch count wraps", [](Graph& g) { weight(g, kDenseNode).stretch_count = 0xffffffff; }, "G5: a weight's stretches"},
      {"stretches are missing", [](Graph& g) { g.stretches.pop_back(); }, "G5: a weight's stretches"},
      {"a stretch too many", [](Graph& g) { g.stretches.push_back(g.stretches[0]); }, "G5: stretches that belong"},
      {"a shifted stretch", [](Graph& g) { g.stretches[0].offset += Bytes(64); }, "G5: a stretch is not"},
      {"a short stretch", [](Graph& g) { g.stretches[0].stored_size = Bytes(0); }, "G5: a stretch is not"},
      {"a bomb", [](Graph& g) { g.stretches[0].raw_size = Bytes(std::uint64_t{1} << 30); }, "G5: a stretch is not"},
  };
  for (const Break& broken : breaks) check_refused(broken, true);
}

TEST_CASE("counts are bounded") {
  Graph graph = sample_graph();
  graph.nodes.resize((1 << 20) + 1);
  const Status status = validate(graph, Bytes(0), operators::validate_node);
  REQUIRE_FALSE(status);
  CHECK(status.error().available == (1 << 20) + 1);
}

}  // namespace sluice::model
