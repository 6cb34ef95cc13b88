// The family's descriptors, in order of preference: which nodes of the class int8 each kernel takes, and what they resolve to.
#include <algorithm>
#include <array>

#include "sluice/kernels/reference.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/cost.h"
#include "src/kernels/families.h"
#include "src/kernels/integer/depthwise.h"
#include "src/kernels/integer/elementwise.h"
#include "src/kernels/integer/generic.h"
#include "src/kernels/integer/grouped.h"
#include "src/kernels/integer/matmul.h"
#include "src/kernels/integer/matrix.h"
#include "src/kernels/integer/parameters.h"
#include "src/kernels/integer/resize.h"
#include "src/kernels/integer/softmax.h"
#include "src/kernels/resolve.h"

namespace sluice::kernels {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;

// ---- which nodes

bool has_type(const Graph& graph, TensorId id, DType dtype) noexcept { return graph.tensor(id).dtype == dtype; }

bool all_are_u8(const Graph& graph, const Node& node) noexcept {
  const auto fits = [&](TensorId id) { return has_type(graph, id, DType::kU8); };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) && fits(node.outputs[0]);
}

bool has_table(const Graph& graph, const Node& node) noexcept {
  const auto fits = [&](TensorId id) { return has_type(graph, id, DType::kU8) || has_type(graph, id, DType::kI8); };
  return fits(node.inputs[0]) && fits(node.outputs[0]);
}

bool multiplies_panels(const Graph& graph, const Node& node) noexcept {
  const DType out = graph.tensor(node.outputs[0]).dtype;
  const std::size_t weights = out == DType::kI32 ? 2 : 3;
  if (!has_type(graph, node.inputs[0], DType::kU8) || node.weights.size() < weights) return false;
  const PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  return layout.dtype == DType::kI8 && layout.scale == PanelScale::kNone && (out == DType::kI32 || out == DType::kF32 || out == DType::kU8);
}

bool multiplies_bytes(const Graph& graph, const Node& node) noexcept {
  const DType out = graph.tensor(node.outputs[0]).dtype;
  return has_type(graph, node.inputs[0], DType::kU8) && has_type(graph, node.inputs[1], DType::kU8) &&
         (out == DType::kU8 || out == DType::kF32 || out == DType::kI32);
}

bool begins(const Graph& graph, const Node& node) noexcept {
  return has_type(graph, node.inputs[0], DType::kF32) && has_type(graph, node.outputs[0], DType::kU8);
}
bool ends(const Graph& graph, const Node& node) noexcept {
  return has_type(graph, node.inputs[0], DType::kU8) && has_type(graph, node.outputs[0], DType::kF32);
}

/// Nearest, or linear of images (what else is resized linearly has no class int8).
bool resizes(const Graph& graph, const Node& node) noexcept {
  if (!all_are_u8(graph, node) || node.as<model::ResizeAttributes>().mode == ResizeMode::kCubic) return false;
  return node.as<model::ResizeAttributes>().mode == ResizeMode::kNearest || graph.tensor(node.outputs[0]).shape.rank() == 4;
}

// ---- the generic kernels

using Fits = bool (*)(const Graph&, const Node&) noexcept;
using InPlace = std::uint32_t (*)(const Graph&, const Node&) noexcept;

struct Described {
  std::string_view name;
  Fits supports = all_are_u8;
  InPlace in_place = none_in_place;
  bool slices_channels = false;
  bool slices_rows = true;
};

/// Parameters by `kParameters`, run by `kRun`, which is the same code on every instruction set.
template <OpKind kOp, auto kParameters, auto kRun>
constexpr KernelDescriptor generic(const Described& what) noexcept {
  constexpr KernelId kId = offset_id(kernel_id::kIntegerBase, static_cast<int>(kOp));
  KernelDescriptor kernel;
  kernel.id = kId;
  kernel.name = what.name;
  kernel.op = kOp;
  kernel.numeric = model::NumericClass::kInt8;
  kernel.supports = what.supports;
  kernel.slices_channels = what.slices_channels;
  kernel.slices_rows = what.slices_rows;
  kernel.in_place_inputs = what.in_place;
  kernel.cost = operators::cost_of;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for_any<kRun>>>();
  kernel.parameter_bytes = kParameterBytes<kParameters>;
  return kernel;
}

constexpr std::array kGeneric = {
    generic<OpKind::kConv, integer::convolution_parameters, integer::generic::conv>(
        {"integer/generic_conv", multiplies_panels, residual_in_place, true}),
    generic<OpKind::kDense, integer::dense_parameters, integer::generic::dense>(
        {"integer/generic_dense", multiplies_panels, residual_in_place, true}),
    generic<OpKind::kMatMul, integer::matmul_parameters, integer::generic::matmul>(
        {"integer/generic_matmul", multiplies_bytes, none_in_place, false, false}),
    generic<OpKind::kPool, integer::pool_parameters, integer::generic::pool>({"integer/generic_pool"}),
    generic<OpKind::kUnary, integer::table_parameters, integer::generic::table>({"integer/generic_table", has_table, full_shape_inputs}),
    generic<OpKind::kBinary, integer::binary_parameters, integer::generic::binary>(
        {"integer/generic_binary", all_are_u8, full_shape_inputs}),
    generic<OpKind::kQuantize, integer::quantize_parameters, integer::generic::quantize>({"integer/generic_quantize", begins}),
    generic<OpKind::kDequantize, integer::dequantize_parameters, integer::generic::dequantize>({"integer/generic_dequantize", ends}),
    generic<OpKind::kResize, integer::resize_parameters, integer::generic::resize>(
        {"integer/generic_resize", resizes, none_in_place, false, false}),
    generic<OpKind::kSoftmax, integer::softmax_parameters, integer::generic::softmax>(
        {"integer/generic_softmax", all_are_u8, full_shape_inputs}),
};

// ---- the fast ones

using Takes = bool (*)(const operators::IntegerConvolutionParameters&) noexcept;

template <Takes kTakes>
bool convolution_fits(const Graph& graph, const Node& node) noexcept {
  return multiplies_panels(graph, node) && kTakes(integer::convolution_parameters(graph, node));
}
bool fills_panels(const operators::IntegerConvolutionParameters& conv) noexcept {
  return conv.weighted.panels.layout.layout == WeightLayout::kPanels && integer::groups_fill_panels(conv);
}
bool is_pointwise(const operators::IntegerConvolutionParameters& conv) noexcept {
  return fills_panels(conv) && integer::reads_in_place(conv);
}
bool fits_groups(const operators::IntegerConvolutionParameters& conv) noexcept {
  return conv.weighted.panels.layout.layout == WeightLayout::kPanels && integer::takes_groups(conv);
}
bool fits_lanes(const Graph& graph, const Node& node) noexcept {
  return multiplies_panels(graph, node) && graph.weight(node.weights[0]).panel_layout.layout == WeightLayout::kDepthwise &&
         integer::takes_lanes(integer::convolution_parameters(graph, node));
}

bool binary_fits(const Graph& graph, const Node& node) noexcept {
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const auto beside = [&](TensorId id) { return integer::walks_beside(graph.tensor(id).shape, out); };
  return all_are_u8(graph, node) && std::all_of(node.inputs.begin(), node.inputs.end(), beside);
}
bool pool_fits(const Graph& graph, const Node& node) noexcept {
  return all_are_u8(graph, node) && integer::takes_window(node.as<model::PoolAttributes>().window);
}

template <ResizeMode kMode>
bool image_fits(const Graph& graph, const Node& node) noexcept {
  return resizes(graph, node) && node.as<model::ResizeAttributes>().mode == kMode &&
         integer::resizes_images(resize_parameters(graph, node), graph.tensor(node.inputs[0]).shape, graph.tensor(node.outputs[0]).shape);
}

constexpr KernelDescriptor generic_of(OpKind op) noexcept {
  for (const KernelDescriptor& kernel : kGeneric)
    if (kernel.op == op) return kernel;
  return {};
}

/// As the generic kernel of the operator, run by `kRun` over the inner loops of an instruction set.
template <KernelId kId, auto kParameters, auto kRun>
constexpr KernelDescriptor fast(std::string_view name, OpKind op, Fits supports) noexcept {
  KernelDescriptor kernel = generic_of(op);
  kernel.id = kId;
  kernel.name = name;
  kernel.supports = supports;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for<kRun, integer::table_of>>>();
  return kernel;
}
template <KernelId kId, auto kRun>
constexpr KernelDescriptor convolution(std::string_view name, Fits supports) noexcept {
  return fast<kId, integer::convolution_parameters, kRun>(name, OpKind::kConv, supports);
}
template <auto kWorkspace>
constexpr KernelDescriptor with_workspace(KernelDescriptor descriptor) noexcept {
  descriptor.workspace = workspace_of<kWorkspace>;
  return descriptor;
}

constexpr KernelDescriptor resize_kernel() noexcept {
  KernelDescriptor kernel = generic_of(OpKind::kResize);
  kernel.id = kernel_id::kIntegerResize;
  kernel.name = "integer/resize";
  kernel.supports = image_fits<ResizeMode::kNearest>;
  kernel.resolve = if_built<kernel_id::kIntegerResize, resolve_as<integer::resize_parameters, entry_for_any<integer::run_resize_step>>>();
  kernel.workspace = workspace_of<integer::resize_workspace>;
  return kernel;
}

constexpr std::size_t kFastKernels = 14;

constexpr std::array<KernelDescriptor, kFastKernels + kGeneric.size()> make_kernels() noexcept {
  std::array<KernelDescriptor, kFastKernels + kGeneric.size()> kernels = {
      with_workspace<integer::pointwise_workspace>(
          convolution<kernel_id::kIntegerPointwise, integer::run_pointwise>("integer/pointwise", convolution_fits<is_pointwise>)),
      with_workspace<integer::strips_workspace>(
          convolution<kernel_id::kIntegerDirect, integer::run_strips>("integer/direct", convolution_fits<fills_panels>)),
      with_workspace<integer::depthwise_workspace>(
          convolution<kernel_id::kIntegerDepthwise, integer::run_depthwise>("integer/depthwise", fits_lanes)),
      with_workspace<integer::grouped_workspace>(
          convolution<kernel_id::kIntegerGrouped, integer::run_grouped>("integer/grouped", convolution_fits<fits_groups>)),
      with_workspace<integer::dense_workspace>(fast<kernel_id::kIntegerDense, integer::dense_parameters, integer::run_dense>(
          "integer/dense", OpKind::kDense, multiplies_panels)),
      with_workspace<integer::matmul_workspace>(fast<kernel_id::kIntegerMatMul, integer::matmul_parameters, integer::run_matmul>(
          "integer/matmul", OpKind::kMatMul, multiplies_bytes)),
      fast<kernel_id::kIntegerPool, integer::pool_parameters, integer::run_pool_step>("integer/pool", OpKind::kPool, pool_fits),
      fast<kernel_id::kIntegerBinary, integer::binary_parameters, integer::run_binary_step>("integer/binary", OpKind::kBinary, binary_fits),
      fast<kernel_id::kIntegerTable, integer::table_parameters, integer::run_table_step>("integer/table", OpKind::kUnary, has_table),
      fast<kernel_id::kIntegerQuantize, integer::quantize_parameters, integer::run_quantize_step>("integer/quantize", OpKind::kQuantize,
                                                                                                  begins),
      fast<kernel_id::kIntegerDequantize, integer::dequantize_parameters, integer::run_dequantize_step>("integer/dequantize",
                                                                                                        OpKind::kDequantize, ends),
      resize_kernel(),
      with_workspace<integer::resize_linear_workspace>(
          fast<kernel_id::kIntegerResizeLinear, integer::resize_parameters, integer::run_resize_linear_step>(
              "integer/resize_linear", OpKind::kResize, image_fits<ResizeMode::kLinear>)),
      fast<kernel_id::kIntegerSoftmax, integer::softmax_parameters, integer::run_softmax_step>("integer/softmax", OpKind::kSoftmax,
                                                                                               all_are_u8),
  };
  std::copy(kGeneric.begin(), kGeneric.end(), kernels.begin() + kFastKernels);
  return kernels;
}

}  // namespace

std::span<const KernelDescriptor> integer_kernels() noexcept {
  static constexpr auto kKernels = as_built([] { return make_kernels(); });
  return kKernels;
}

const KernelDescriptor* generic_integer_kernel(OpKind op) noexcept {
  const auto* found = std::find_if(kGeneric.begin(), kGeneric.end(), [&](const KernelDescriptor& kernel) { return kernel.op == op; });
  return found == kGeneric.end() ? nullptr : found;
}

}  // namespace sluice::kernels
