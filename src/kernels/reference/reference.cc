// The table of the reference: one descriptor an operator.
#include "sluice/kernels/reference.h"

#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/plain/kernel.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/quantised.h"

namespace sluice::kernels {
namespace {

using model::OpKind;

bool all_are(const model::Graph& graph, const model::Node& node, DType dtype) noexcept {
  for (TensorId id : node.inputs)
    if (graph.tensor(id).dtype != dtype) return false;
  return graph.tensor(node.outputs[0]).dtype == dtype;
}

/// Operators that compute do so in f32; those that only move elements take any type.
bool floats(const model::Graph& graph, const model::Node& node) noexcept {
  for (WeightId id : node.weights)
    if (graph.weight(id).panel_layout.dtype != DType::kF32) return false;
  return all_are(graph, node, DType::kF32);
}

bool same_types(const model::Graph& graph, const model::Node& node) noexcept {
  return all_are(graph, node, graph.tensor(node.outputs[0]).dtype);
}

bool numbers(const model::Graph& graph, const model::Node& node) noexcept {
  if (floats(graph, node)) return true;
  const bool plain = node.epilogue.activation.function == model::Function::kNone;
  return plain && (all_are(graph, node, DType::kI32) || all_are(graph, node, DType::kI64));
}

bool matrices(const model::Graph& graph, const model::Node& node) noexcept {
  return floats(graph, node) && graph.tensor(node.inputs[0]).shape.rank() >= 2 && graph.tensor(node.inputs[1]).shape.rank() >= 2;
}

bool table_of_floats(const model::Graph& graph, const model::Node& node) noexcept {
  return graph.weight(node.weights[0]).panel_layout.dtype == DType::kF32;
}
bool quantised_table(const model::Graph& graph, const model::Node& node) noexcept {
  return model::is_quantised(graph.weight(node.weights[0]).panel_layout);
}

std::uint32_t none_in_place(const model::Graph&, const model::Node&) noexcept { return 0; }
/// A residual of a convolution or dense layer is read where the output is written; no other input is.
std::uint32_t residual_in_place(const model::Graph&, const model::Node& node) noexcept {
  return node.epilogue.has_residual ? 1u << (node.inputs.size() - 1) : 0u;
}

std::uint32_t first_in_place(const model::Graph&, const model::Node&) noexcept { return 1; }

Bytes no_workspace(const model::Graph&, const model::Node&, const StepExtent&) noexcept { return Bytes(0); }

constexpr KernelDescriptor describe(std::string_view name, OpKind op, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel;
  kernel.id = offset_id(kernel_id::kReferenceBase, static_cast<int>(op));
  kernel.name = name;
  kernel.op = op;
  kernel.supports = floats;
  kernel.in_place_inputs = none_in_place;
  kernel.workspace = no_workspace;
  kernel.cost = operators::cost_of;
  kernel.run = run;
  return kernel;
}

constexpr KernelDescriptor weighted(std::string_view name, OpKind op, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel = describe(name, op, run);
  kernel.slices_rows = true;
  kernel.slices_channels = true;
  kernel.in_place_inputs = residual_in_place;
  return kernel;
}

/// Output rows need the input rows of the same numbers (pools: those of their windows).
constexpr KernelDescriptor banded(std::string_view name, OpKind op, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel = describe(name, op, run);
  kernel.slices_rows = true;
  return kernel;
}

constexpr KernelDescriptor in_place(KernelDescriptor kernel,
                                    std::uint32_t (*inputs)(const model::Graph&, const model::Node&) noexcept) noexcept {
  kernel.in_place_inputs = inputs;
  return kernel;
}

constexpr KernelDescriptor of_types(KernelDescriptor kernel, bool (*supports)(const model::Graph&, const model::Node&) noexcept) noexcept {
  kernel.supports = supports;
  return kernel;
}

constexpr KernelDescriptor winograd() noexcept {
  KernelDescriptor kernel = weighted("reference/conv_winograd", OpKind::kConv, reference::conv_winograd);
  kernel.id = kernel_id::kReferenceWinograd;
  kernel.numeric = model::NumericClass::kWinograd4;
  kernel.row_granule = 4;
  return kernel;
}

constexpr KernelDescriptor quantised(std::string_view name, OpKind op, KernelId id, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel = weighted(name, op, run);
  kernel.id = id;
  kernel.supports = reference::quantised_fits;
  kernel.workspace = reference::quantised_workspace;
  return kernel;
}

/// Reads the parts of its table that are asked for by itself, where a plan does not hold all of it.
constexpr KernelDescriptor lookup(std::string_view name, void (*run)(const KernelCall&) noexcept) noexcept {
  KernelDescriptor kernel = in_place(weighted(name, OpKind::kEmbedding, run), none_in_place);
  kernel.weight_turns = reference::lookup_turns;
  kernel.pieces_wanted = reference::pieces_looked_up;
  return kernel;
}

/// A lookup is a copy, which takes no tiles.
constexpr KernelDescriptor quantised_embedding() noexcept {
  KernelDescriptor kernel = lookup("embedding/quantised", reference::quantised_embedding);
  kernel.id = kernel_id::kEmbeddingQuantised;
  kernel.supports = quantised_table;
  return kernel;
}

constexpr KernelDescriptor plain_kernel() noexcept {
  KernelDescriptor kernel = describe("plain", OpKind::kPlain, plain::run);
  kernel.supports = plain::supports;
  kernel.takes_pitches = false;
  kernel.workspace = plain::workspace;
  kernel.weight_turns = plain::weight_turns;
  return kernel;
}

constexpr std::array<KernelDescriptor, model::kOpKindCount + 5> kKernels = {
    weighted("reference/conv", OpKind::kConv, reference::conv),
    weighted("reference/conv_transpose", OpKind::kConvTranspose, reference::conv_transpose),
    weighted("reference/dense", OpKind::kDense, reference::dense),
    banded("reference/pool", OpKind::kPool, reference::pool),
    in_place(banded("reference/unary", OpKind::kUnary, reference::unary), full_shape_inputs),
    of_types(in_place(banded("reference/binary", OpKind::kBinary, reference::binary), full_shape_inputs), numbers),
    in_place(banded("reference/affine", OpKind::kAffine, reference::affine), full_shape_inputs),
    in_place(banded("reference/softmax", OpKind::kSoftmax, reference::softmax), full_shape_inputs),
    banded("reference/lrn", OpKind::kLrn, reference::lrn),
    of_types(banded("reference/concat", OpKind::kConcat, reference::concat), same_types),
    of_types(describe("reference/slice", OpKind::kSlice, reference::slice), same_types),
    of_types(describe("reference/pad", OpKind::kPad, reference::pad), same_types),
    describe("reference/resize", OpKind::kResize, reference::resize),
    of_types(describe("reference/transpose", OpKind::kTranspose, reference::transpose), same_types),
    of_types(describe("reference/reshape", OpKind::kReshape, reference::reshape), same_types),
    of_types(describe("reference/matmul", OpKind::kMatMul, reference::matmul), matrices),
    in_place(banded("reference/layer_norm", OpKind::kLayerNorm, reference::layer_norm), full_shape_inputs),
    banded("reference/attention", OpKind::kAttention, reference::attention),
    of_types(lookup("reference/embedding", reference::embedding), table_of_floats),
    plain_kernel(),
    in_place(weighted("reference/recurrent", OpKind::kRecurrent, reference::recurrent), first_in_place),
    winograd(),
    quantised("reference/dense_quantised", OpKind::kDense, kernel_id::kReferenceDenseQuantised, reference::quantised_dense),
    quantised("reference/conv_quantised", OpKind::kConv, kernel_id::kReferenceConvQuantised, reference::quantised_conv),
    quantised("reference/conv_transpose_quantised", OpKind::kConvTranspose, kernel_id::kReferenceConvTransposeQuantised,
              reference::quantised_conv_transpose),
    quantised_embedding(),
};

constexpr bool in_order_of_kinds() noexcept {
  for (std::size_t i = 0; i < model::kOpKindCount; ++i)
    if (static_cast<std::size_t>(kKernels[i].op) != i) return false;
  return true;
}
static_assert(in_order_of_kinds(), "reference_kernel() indexes the table by OpKind");

}  // namespace

std::uint32_t full_shape_inputs(const model::Graph& graph, const model::Node& node) noexcept {
  const model::Tensor& out = graph.tensor(node.outputs[0]);
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const model::Tensor& in = graph.tensor(node.inputs[i]);
    if (in.shape == out.shape && in.dtype == out.dtype && !in.weight.valid()) mask |= 1u << i;
  }
  return mask;
}

std::span<const KernelDescriptor> reference_kernels() noexcept { return kKernels; }

const KernelDescriptor& reference_kernel(OpKind op, model::NumericClass numeric) noexcept {
  return numeric == model::NumericClass::kWinograd4 ? kKernels[model::kOpKindCount] : kKernels[static_cast<std::size_t>(op)];
}

float reference_apply(const model::Activation& activation, float x) noexcept { return reference::apply(activation, x); }

}  // namespace sluice::kernels
