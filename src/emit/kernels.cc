#include "src/emit/kernels.h"

#include <algorithm>
#include <array>

#include "sluice/operators/definition.h"
#include "sluice/operators/generic.h"

namespace sluice::emit {
namespace {

using model::Graph;
using model::Node;
using model::NumericClass;
using model::OpKind;

DType type_of(const Graph& graph, TensorId id) { return graph.tensor(id).dtype; }

bool is_constant(const Graph& graph, TensorId id) { return graph.tensor(id).weight.valid(); }

constexpr const char* kSeveralImages =
    "has several images of more than one row, for which there is no portable kernel; bind the batch to 1";

const Window& window_of(const Node& node) {
  return node.op == OpKind::kPool ? node.as<model::PoolAttributes>().window : node.as<model::ConvAttributes>().window;
}

/// Only one image: the emitted kernels count the rows of one.
bool one_image(const Graph& graph, const Node& node) {
  return graph.tensor(node.outputs[0]).shape.rank() == 4 && graph.tensor(node.outputs[0]).shape[0] == 1;
}

/// One image, or several of one row each, over which the window is one row: they are the rows of one.
bool one_image_or_rows(const Graph& graph, const Node& node) {
  if (one_image(graph, node)) return true;
  const Shape &in = graph.tensor(node.inputs[0]).shape, &out = graph.tensor(node.outputs[0]).shape;
  if (in.rank() != 4 || out.rank() != 4) return false;
  const Window& w = window_of(node);
  return in[1] == 1 && out[1] == 1 && w.kernel_h == 1 && w.pad_top == 0;
}

struct Choice {
  Kernel kernel = Kernel::kCopy;
  const char* refused = nullptr;
};

Choice choose_products(const Graph& graph, const Node& node) {
  const bool integers = node.numeric == NumericClass::kInt8;
  const PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  if (node.numeric == NumericClass::kWinograd4)
    return {.refused = "is of the numeric class winograd4; convert with --numerics exact to emit it"};
  if (integers && layout.dtype != DType::kI8)
    return {.refused = "has weights of fewer than 8 bits under integers; convert without --weights"};
  if (layout.layout == WeightLayout::kSparse) return {.refused = "is sparse; convert with --sparse none to emit it"};
  if (layout.side != PanelSide::kOutputs) return {.refused = "no portable kernel reads such panels"};
  if (integers && !node.epilogue.has_residual && node.inputs.size() > 1)
    return {.refused = "its scale comes at run time, for which no portable kernel is written"};
  if (node.op == OpKind::kDense) return {integers ? Kernel::kConvU8 : Kernel::kConvF32};
  if (!one_image_or_rows(graph, node)) return {.refused = kSeveralImages};
  if (node.op == OpKind::kConvTranspose)
    return integers ? Choice{.refused = "is a transposed convolution of bytes, for which no portable kernel is written"}
                    : Choice{Kernel::kTransposedF32};
  if (node.as<model::ConvAttributes>().depthwise()) return {integers ? Kernel::kDepthwiseU8 : Kernel::kDepthwiseF32};
  return {integers ? Kernel::kConvU8 : Kernel::kConvF32};
}

/// Its window is the whole image, so that it can be summed up while the input is made.
bool is_global(const Graph& graph, const Node& node) {
  const Window& w = node.as<model::PoolAttributes>().window;
  return one_image(graph, node) && w.out_h == 1 && w.out_w == 1 && w.kernel_h == w.in_h && w.kernel_w == w.in_w && w.pad_top == 0 &&
         w.pad_left == 0 && w.dilation_h == 1 && w.dilation_w == 1 && graph.tensor(node.inputs[0]).shape.back() > 1;
}

Choice choose_pool(const Graph& graph, const Node& node) {
  if (!one_image_or_rows(graph, node)) return {.refused = kSeveralImages};
  if (node.numeric == NumericClass::kInt8) {
    // Padding behind the image makes it a mean of reals, which a fold does not add (operators/parameters/integer.h).
    const Window& w = node.as<model::PoolAttributes>().window;
    return {is_global(graph, node) && w.pad_bottom == 0 && w.pad_right == 0 ? Kernel::kFoldU8 : Kernel::kPoolU8};
  }
  return {is_global(graph, node) ? Kernel::kFoldF32 : Kernel::kPoolF32};
}

Choice choose_matmul(const Graph& graph, const Node& node) {
  if (node.numeric != NumericClass::kInt8) return {Kernel::kMatMul};
  if (node.inputs.size() > 2) return {.refused = "its scales come at run time, for which no portable kernel is written"};
  if (type_of(graph, node.outputs[0]) == DType::kI32) return {.refused = "gives sums of integers, for which no portable kernel is written"};
  return {Kernel::kMatMulU8};
}

Choice choose_binary(const Graph& graph, const Node& node) {
  const auto function = node.as<model::BinaryAttributes>().function;
  if (function == BinaryFunction::kPow) return {.refused = "powers have no portable kernel"};
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  for (const TensorId id : node.inputs) {
    if (is_constant(graph, id)) continue;
    const RowExtents in = row_extents(graph.tensor(id).shape);
    const bool same = in.rows == out.rows && in.pixels == out.pixels, one = in.rows * in.pixels == 1;
    if (!same && !one) return {.refused = "its operands repeat along rows or columns, for which there is no portable kernel"};
  }
  if (node.numeric == NumericClass::kInt8) return {Kernel::kBinaryU8};
  if (type_of(graph, node.outputs[0]) != DType::kF32) return {.refused = "integers of this type have no portable kernel"};
  return {Kernel::kBinaryF32};
}

Choice choose_resize(const Graph& graph, const Node& node) {
  const auto& a = node.as<model::ResizeAttributes>();
  const Shape& in = graph.tensor(node.inputs[0]).shape;
  if (!one_image(graph, node) || in.back() != graph.tensor(node.outputs[0]).shape.back())
    return {.refused = "resizes images or channels, for which there is no portable kernel"};
  if (a.mode == ResizeMode::kNearest) return {Kernel::kResize};
  return {node.numeric == NumericClass::kInt8 ? Kernel::kResizeU8 : Kernel::kResizeF32};
}

Choice choose_pad(const Graph& graph, const Node& node) {
  if (!one_image(graph, node) || graph.tensor(node.inputs[0]).shape[0] != 1)
    return {.refused = "pads what is no image, for which there is no portable kernel"};
  return {Kernel::kPad};
}

template <Kernel kIntegers, Kernel kFloats>
Choice choose_by_class(const Graph&, const Node& node) {
  return {node.numeric == NumericClass::kInt8 ? kIntegers : kFloats};
}

/// Rows of one pixel, all inputs made by the run.
Choice choose_attention(const Graph& graph, const Node& node) {
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  if (node.inputs.size() != 3 || out.rank() == 4 || type_of(graph, node.outputs[0]) != DType::kF32)
    return {.refused = "attention with a cache or a mask, or over images, has no portable kernel"};
  return {Kernel::kAttention};
}

/// The walk's tables count a stage's inputs in a byte.
constexpr std::size_t kMostInputs = 255;

Choice choose_concat(const Graph& graph, const Node& node) {
  if (node.inputs.size() > kMostInputs) return {.refused = "joins more than 255 tensors, for which there is no portable kernel"};
  return {node.as<model::AxisAttributes>().axis + 1 == graph.tensor(node.outputs[0]).shape.rank() ? Kernel::kConcat : Kernel::kJoin};
}

/// An operator that is not here has no portable kernel.
struct Chooser {
  OpKind op;
  Choice (*choose)(const Graph&, const Node&);
};
constexpr Chooser kChoosers[] = {
    {OpKind::kConv, choose_products},
    {OpKind::kConvTranspose, choose_products},
    {OpKind::kDense, choose_products},
    {OpKind::kPool, choose_pool},
    {OpKind::kUnary, choose_by_class<Kernel::kTableU8, Kernel::kUnaryF32>},
    {OpKind::kAffine, choose_by_class<Kernel::kUnaryF32, Kernel::kUnaryF32>},
    {OpKind::kBinary, choose_binary},
    {OpKind::kSoftmax, choose_by_class<Kernel::kSoftmaxU8, Kernel::kSoftmax>},
    {OpKind::kLayerNorm, choose_by_class<Kernel::kLayerNorm, Kernel::kLayerNorm>},
    {OpKind::kQuantize, choose_by_class<Kernel::kQuantize, Kernel::kQuantize>},
    {OpKind::kDequantize, choose_by_class<Kernel::kDequantize, Kernel::kDequantize>},
    {OpKind::kConcat, choose_concat},
    {OpKind::kResize, choose_resize},
    {OpKind::kPad, choose_pad},
    {OpKind::kSlice, choose_by_class<Kernel::kCopy, Kernel::kCopy>},
    {OpKind::kTranspose, choose_by_class<Kernel::kCopy, Kernel::kCopy>},
    {OpKind::kAttention, choose_attention},
    {OpKind::kMatMul, choose_matmul},
};

Choice choose(const Graph& graph, const Node& node) {
  for (const Chooser& chooser : kChoosers)
    if (chooser.op == node.op) return chooser.choose(graph, node);
  return {.refused = "its operator has no portable kernel"};
}

/// The pixel that is gathered for a window of more than one tap.
std::uint64_t scratch_of(const Graph& graph, const Node& node, Kernel kernel) {
  if (node.op != OpKind::kConv || (kernel != Kernel::kConvU8 && kernel != Kernel::kConvF32)) return 0;
  const auto& a = node.as<model::ConvAttributes>();
  const Window w = emitted_window(graph, node);
  const bool same_pixels =
      w.pad_top == 0 && w.pad_left == 0 && w.stride_h == 1 && w.stride_w == 1 && w.out_h == w.in_h && w.out_w == w.in_w;
  if (w.taps() == 1 && same_pixels && a.groups == 1) return 0;
  return static_cast<std::uint64_t>(w.taps() * (a.in_channels / a.groups)) * size_of(type_of(graph, node.inputs[0]));
}

}  // namespace

Window emitted_window(const Graph& graph, const Node& node) {
  Window window = window_of(node);
  const std::int64_t images = graph.tensor(node.inputs[0]).shape.rank() == 4 ? graph.tensor(node.inputs[0]).shape[0] : 1;
  if (images == 1) return window;
  window.in_h = window.out_h = images;
  window.stride_h = 1;
  return window;
}

Error refusal(const Node& node, const char* reason) {
  std::string_view operator_name = model::name_of(node.op);
  if (node.op == OpKind::kPlain)
    if (const operators::PlainOperator* plain = operators::find_plain(node.as<model::PlainAttributes>().op)) operator_name = plain->name;
  return make_error(ErrorCode::kUnsupported, "node `" + node.name + "` (" + std::string(operator_name) + ")", reason);
}

Result<Stage> make_stage(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1) return fail(refusal(node, "its operator has no portable kernel"));
  const Choice choice = choose(graph, node);
  if (choice.refused != nullptr) return fail(refusal(node, choice.refused));
  for (const TensorId tensor : {node.inputs[0], node.outputs[0]}) {
    const DType type = type_of(graph, tensor);
    const bool signs = type == DType::kI8 && choice.kernel == Kernel::kTableU8;
    if (type != DType::kF32 && type != DType::kU8 && type != DType::kI32 && !signs)
      return fail(refusal(node, "works on a type that no portable kernel takes"));
  }
  for (const TensorId tensor : node.inputs)
    if (is_constant(graph, tensor) && node.op != OpKind::kBinary)
      return fail(refusal(node, "has a constant input, which no portable kernel takes"));
  Stage stage{.kernel = choice.kernel, .node = id};
  stage.out = stage.walked = row_extents(graph.tensor(node.outputs[0]).shape);
  stage.folds = choice.kernel == Kernel::kFoldU8 || choice.kernel == Kernel::kFoldF32;
  if (stage.folds) {
    stage.walked = row_extents(graph.tensor(node.inputs[0]).shape);
    stage.kept_bytes = static_cast<std::uint64_t>(stage.walked.channels) * sizeof(float) * (choice.kernel == Kernel::kFoldF32 ? 2 : 1);
  }
  stage.scratch_bytes = scratch_of(graph, node, choice.kernel);
  return stage;
}

// Stacks are what `scripts/emit-stack --kernels` prints of the portable kernels, each alone and all together.
const KernelCode& code_of(Kernel kernel) {
  static constexpr std::array<KernelCode, 30> kCodes = {{
      {"sluice_read_row", "", "rows.h", {96, 48}},
      {"sluice_read_signed_row", "", "rows.h", {96, 48}},
      {"sluice_run_conv_u8", "sluice_conv_u8", "conv_u8.h", {248, 368}},
      {"sluice_run_depthwise_u8", "sluice_conv_u8", "depthwise_u8.h", {288, 368}},
      {"sluice_run_pool_u8", "sluice_pool_u8", "pool_u8.h", {200, 192}},
      {"sluice_run_fold_u8", "sluice_pool_u8", "pool_u8.h", {176, 192}},
      {"sluice_run_table_u8", "sluice_table_u8", "values_u8.h", {120, 80}},
      {"sluice_run_binary_u8", "sluice_binary_u8", "values_u8.h", {176, 144}},
      {"sluice_run_quantize", "sluice_border", "values_u8.h", {144, 96}},
      {"sluice_run_dequantize", "sluice_border", "values_u8.h", {144, 112}},
      {"sluice_run_conv_f32", "sluice_conv_f32", "conv_f32.h", {256, 368}},
      {"sluice_run_depthwise_f32", "sluice_conv_f32", "conv_f32.h", {272, 288}},
      {"sluice_run_transposed_f32", "sluice_conv_f32", "transposed_f32.h", {344, 352}},
      {"sluice_run_pool_f32", "sluice_pool_f32", "pool_f32.h", {296, 336}},
      {"sluice_run_fold_f32", "sluice_pool_f32", "pool_f32.h", {208, 216}},
      {"sluice_run_unary_f32", "sluice_unary_f32", "values_f32.h", {440, 352}},
      {"sluice_run_binary_f32", "sluice_binary_f32", "values_f32.h", {424, 384}},
      {"sluice_run_softmax", "sluice_softmax", "rows_f32.h", {432, 304}},
      {"sluice_run_layer_norm", "sluice_layer_norm", "rows_f32.h", {360, 368}},
      {"sluice_run_concat", "sluice_concat", "copies.h", {128, 144}},
      {"sluice_run_join", "sluice_join", "copies.h", {136, 192}},
      {"sluice_run_resize", "sluice_resize", "copies.h", {128, 160}},
      {"sluice_run_resize_f32", "sluice_resize_f32", "resize_f32.h", {280, 352}},
      {"sluice_run_pad", "sluice_pad", "copies.h", {136, 160}},
      {"sluice_run_copy", "sluice_copy", "copies.h", {160, 160}},
      {"sluice_run_matmul", "sluice_matmul", "matmul.h", {232, 128}},
      {"sluice_run_matmul_u8", "sluice_matmul_u8", "matmul_u8.h", {200, 232}},
      {"sluice_run_attention", "sluice_attention", "attention.h", {408, 432}},
      {"sluice_run_softmax_u8", "sluice_softmax_u8", "softmax_u8.h", {152, 128}},
      {"sluice_run_resize_u8", "sluice_resize_u8", "resize_u8.h", {208, 256}},
  }};
  return kCodes[static_cast<std::size_t>(kernel)];
}

bool is_simple(const Activation& a) {
  return a.function == Function::kNone || a.function == Function::kRelu || a.function == Function::kClip;
}

namespace {

bool calls_by_pointer(Kernel kernel) {
  constexpr Kernel kThose[] = {Kernel::kConvU8,        Kernel::kDepthwiseU8, Kernel::kConvF32, Kernel::kDepthwiseF32,
                               Kernel::kTransposedF32, Kernel::kPoolF32,     Kernel::kFoldF32};
  return std::find(std::begin(kThose), std::end(kThose), kernel) != std::end(kThose);
}

/// The stack of functions of one value in the emitted file: of all, of those without an exponential, or none.
StackBytes functions_of(const Graph& graph, const Network& network) {
  constexpr StackBytes kAll{288, 192}, kSimple{80, 8};
  StackBytes most;
  for (const Stage& stage : network.stages) {
    if (stage.kernel == Kernel::kUnaryF32 || stage.kernel == Kernel::kBinaryF32) return kAll;
    if (!calls_by_pointer(stage.kernel) || network.storages[stage.storage].dtype != DType::kF32) continue;
    if (!is_simple(graph.node(stage.node).epilogue.activation)) return kAll;
    most = kSimple;
  }
  return most;
}

}  // namespace

StackBytes stack_bound(const Graph& graph, const Network& network) {
  // The walk where it calls a stage, two registers more than was ever seen, and where it looks for what a stage lacks.
  constexpr StackBytes kWalk{136, 288}, kLacks{136, 56};
  const StackBytes functions = functions_of(graph, network);
  StackBytes most = kLacks;
  for (const Stage& stage : network.stages) {
    const StackBytes own = code_of(stage.kernel).stack, below = calls_by_pointer(stage.kernel) ? functions : StackBytes{};
    most = {std::max(most.narrow, own.narrow + below.narrow), std::max(most.wide, own.wide + below.wide)};
  }
  return {kWalk.narrow + most.narrow, kWalk.wide + most.wide};
}

}  // namespace sluice::emit
