// The table of the reference, one descriptor an operator, made when it is compiled: families of faster kernels begin with what it says of
// an operator, in builds too that leave the reference itself out.
#pragma once

#include <algorithm>
#include <array>

#include "sluice/kernels/reference.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/cost.h"
#include "src/kernels/plain/kernel.h"
#include "src/kernels/plain/resolve.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/resolve.h"

namespace sluice::kernels::reference_table {

using model::OpKind;

inline bool all_are(const model::Graph& graph, const model::Node& node, DType dtype) noexcept {
  for (TensorId id : node.inputs)
    if (graph.tensor(id).dtype != dtype) return false;
  return graph.tensor(node.outputs[0]).dtype == dtype;
}

/// Operators that compute do so in f32; those that only move elements take any type.
inline bool floats(const model::Graph& graph, const model::Node& node) noexcept {
  for (WeightId id : node.weights) {
    const PanelLayout& layout = graph.weight(id).panel_layout;
    if (layout.dtype != DType::kF32 || layout.layout == WeightLayout::kSparse) return false;
  }
  return all_are(graph, node, DType::kF32);
}

inline bool same_types(const model::Graph& graph, const model::Node& node) noexcept {
  return all_are(graph, node, graph.tensor(node.outputs[0]).dtype);
}

inline bool numbers(const model::Graph& graph, const model::Node& node) noexcept {
  if (floats(graph, node)) return true;
  const bool plain = node.epilogue.activation.function == model::Function::kNone;
  return plain && (all_are(graph, node, DType::kI32) || all_are(graph, node, DType::kI64));
}

inline bool matrices(const model::Graph& graph, const model::Node& node) noexcept {
  return floats(graph, node) && graph.tensor(node.inputs[0]).shape.rank() >= 2 && graph.tensor(node.inputs[1]).shape.rank() >= 2;
}

inline bool table_of_floats(const model::Graph& graph, const model::Node& node) noexcept {
  return graph.weight(node.weights[0]).panel_layout.dtype == DType::kF32;
}
inline bool quantised_table(const model::Graph& graph, const model::Node& node) noexcept {
  return is_narrow(graph.weight(node.weights[0]).panel_layout);
}

inline std::uint32_t first_in_place(const model::Graph&, const model::Node&) noexcept { return 1; }

/// Looking for the next of so many indices, once a piece, takes no longer than reading it.
inline constexpr std::int64_t kMostLookups = 4096;

inline std::int64_t pieces_looked_up(const model::Graph& graph, const model::Node& node) noexcept {
  const model::Weight& table = graph.weight(node.weights[0]);
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  const std::int64_t lookups = out.rows * out.pixels;
  const bool in_pieces = table.panel_layout.layout != WeightLayout::kPlain && lookups <= kMostLookups;
  return in_pieces ? std::min<std::int64_t>(lookups, table.stretch_count) : 0;
}

inline std::int64_t lookup_turns(const model::Graph& graph, const model::Node& node) noexcept {
  return pieces_looked_up(graph, node) > 0 ? 1 : 0;
}

inline bool quantised_fits(const model::Graph& graph, const model::Node& node) noexcept {
  if (node.weights.empty() || !is_narrow(graph.weight(node.weights[0]).panel_layout)) return false;
  return all_are(graph, node, DType::kF32);
}

inline Bytes plain_workspace(const operators::PlainParameters& parameters, const StepExtent&) noexcept { return Bytes(parameters.scratch); }

inline Bytes no_workspace(const operators::Parameters&, const StepExtent&) noexcept { return Bytes(); }

/// The usual number of an operator's kernel.
constexpr KernelId number_of(OpKind op) noexcept { return offset_id(kernel_id::kReferenceBase, static_cast<int>(op)); }

/// Parameters by `kParameters`, run by `kRun`, which is the same code on every instruction set.
template <KernelId kId, OpKind kOp, auto kParameters, auto kRun>
constexpr KernelDescriptor describe(std::string_view name) noexcept {
  KernelDescriptor kernel;
  kernel.id = kId;
  kernel.name = name;
  kernel.op = kOp;
  kernel.supports = floats;
  kernel.in_place_inputs = none_in_place;
  kernel.workspace = no_workspace;  // lookups have a window behind it
  kernel.cost = operators::cost_of;
  kernel.resolve = if_built<kId, resolve_as<kParameters, entry_for_any<kRun>>>();
  kernel.parameter_bytes = kParameterBytes<kParameters>;
  return kernel;
}

template <OpKind kOp, auto kParameters, auto kRun, KernelId kId = number_of(kOp)>
constexpr KernelDescriptor weighted(std::string_view name) noexcept {
  KernelDescriptor kernel = describe<kId, kOp, kParameters, kRun>(name);
  kernel.slices_rows = true;
  kernel.slices_channels = true;
  kernel.in_place_inputs = residual_in_place;
  return kernel;
}

/// Output rows need the input rows of the same numbers (pools: those of their windows).
template <OpKind kOp, auto kParameters, auto kRun>
constexpr KernelDescriptor banded(std::string_view name) noexcept {
  KernelDescriptor kernel = describe<number_of(kOp), kOp, kParameters, kRun>(name);
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

constexpr KernelDescriptor in_parts(KernelDescriptor kernel) noexcept {
  kernel.cuts_sums = true;
  return kernel;
}

constexpr KernelDescriptor winograd() noexcept {
  KernelDescriptor kernel =
      weighted<OpKind::kConv, convolution_parameters, reference::conv_winograd, kernel_id::kReferenceWinograd>("reference/conv_winograd");
  kernel.numeric = model::NumericClass::kWinograd4;
  kernel.row_granule = 4;
  return kernel;
}

inline Bytes convolution_workspace(const operators::ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return reference::quantised_workspace(conv.weighted, extent);
}
inline Bytes recurrent_workspace(const operators::RecurrentParameters& recurrent, const StepExtent& extent) noexcept {
  return reference::quantised_workspace(recurrent.weighted, extent);
}
inline Bytes dense_workspace(const operators::DenseParameters& dense, const StepExtent& extent) noexcept {
  return reference::quantised_workspace(dense.weighted, extent);
}

template <KernelId kId, OpKind kOp, auto kParameters, auto kRun, auto kWorkspace>
constexpr KernelDescriptor quantised(std::string_view name) noexcept {
  KernelDescriptor kernel = weighted<kOp, kParameters, kRun, kId>(name);
  kernel.supports = quantised_fits;
  kernel.workspace = workspace_of<kWorkspace>;
  return kernel;
}

constexpr KernelDescriptor narrow_winograd() noexcept {
  KernelDescriptor kernel = quantised<kernel_id::kReferenceWinogradNarrow, OpKind::kConv, convolution_parameters,
                                      reference::quantised_conv_winograd, convolution_workspace>("reference/conv_winograd_narrow");
  kernel.numeric = model::NumericClass::kWinograd4;
  kernel.row_granule = 4;
  return kernel;
}

/// Reads the parts of its table that are asked for by itself, where a plan does not hold all of it.
template <KernelId kId, auto kRun>
constexpr KernelDescriptor lookup(std::string_view name) noexcept {
  KernelDescriptor kernel = in_place(weighted<OpKind::kEmbedding, embedding_parameters, kRun, kId>(name), none_in_place);
  kernel.weight_turns = lookup_turns;
  kernel.pieces_wanted = pieces_looked_up;
  return kernel;
}

/// A lookup is a copy, which takes no tiles.
constexpr KernelDescriptor quantised_embedding() noexcept {
  KernelDescriptor kernel = lookup<kernel_id::kEmbeddingQuantised, reference::quantised_embedding>("embedding/quantised");
  kernel.supports = quantised_table;
  return kernel;
}

constexpr KernelDescriptor plain_kernel() noexcept {
  KernelDescriptor kernel = describe<number_of(OpKind::kPlain), OpKind::kPlain, plain::parameters_of, plain::run>("plain");
  kernel.supports = plain::supports;
  kernel.takes_pitches = false;
  kernel.workspace = workspace_of<plain_workspace>;
  kernel.weight_turns = plain::weight_turns;
  return kernel;
}

/// The kinds that compute in f32 or move values; those behind are of integers alone.
inline constexpr std::size_t kKinds = static_cast<std::size_t>(OpKind::kQuantize);

inline constexpr std::array<KernelDescriptor, kKinds + 7> kKernels = {
    in_parts(weighted<OpKind::kConv, convolution_parameters, reference::conv>("reference/conv")),
    weighted<OpKind::kConvTranspose, convolution_parameters, reference::conv_transpose>("reference/conv_transpose"),
    in_parts(weighted<OpKind::kDense, dense_parameters, reference::dense>("reference/dense")),
    banded<OpKind::kPool, pool_parameters, reference::pool>("reference/pool"),
    in_place(banded<OpKind::kUnary, unary_parameters, reference::unary>("reference/unary"), full_shape_inputs),
    of_types(in_place(banded<OpKind::kBinary, binary_parameters, reference::binary>("reference/binary"), full_shape_inputs), numbers),
    in_place(banded<OpKind::kAffine, affine_parameters, reference::affine>("reference/affine"), full_shape_inputs),
    in_place(banded<OpKind::kSoftmax, softmax_parameters, reference::softmax>("reference/softmax"), full_shape_inputs),
    banded<OpKind::kLrn, lrn_parameters, reference::lrn>("reference/lrn"),
    in_place(of_types(banded<OpKind::kConcat, concat_parameters, reference::concat>("reference/concat"), same_types), first_in_place),
    of_types(describe<number_of(OpKind::kSlice), OpKind::kSlice, slice_parameters, reference::slice>("reference/slice"), same_types),
    of_types(banded<OpKind::kPad, pad_parameters, reference::pad>("reference/pad"), same_types),
    describe<number_of(OpKind::kResize), OpKind::kResize, resize_parameters, reference::resize>("reference/resize"),
    of_types(describe<number_of(OpKind::kTranspose), OpKind::kTranspose, transpose_parameters, reference::transpose>("reference/transpose"),
             same_types),
    of_types(describe<number_of(OpKind::kReshape), OpKind::kReshape, reshape_parameters, reference::reshape>("reference/reshape"),
             same_types),
    of_types(describe<number_of(OpKind::kMatMul), OpKind::kMatMul, matmul_parameters, reference::matmul>("reference/matmul"), matrices),
    in_place(banded<OpKind::kLayerNorm, layer_norm_parameters, reference::layer_norm>("reference/layer_norm"), full_shape_inputs),
    banded<OpKind::kAttention, attention_parameters, reference::attention>("reference/attention"),
    of_types(lookup<number_of(OpKind::kEmbedding), reference::embedding>("reference/embedding"), table_of_floats),
    plain_kernel(),
    in_place(weighted<OpKind::kRecurrent, recurrent_parameters, reference::recurrent>("reference/recurrent"), first_in_place),
    winograd(),
    quantised<kernel_id::kReferenceDenseQuantised, OpKind::kDense, dense_parameters, reference::quantised_dense, dense_workspace>(
        "reference/dense_quantised"),
    quantised<kernel_id::kReferenceConvQuantised, OpKind::kConv, convolution_parameters, reference::quantised_conv, convolution_workspace>(
        "reference/conv_quantised"),
    quantised<kernel_id::kReferenceConvTransposeQuantised, OpKind::kConvTranspose, convolution_parameters,
              reference::quantised_conv_transpose, convolution_workspace>("reference/conv_transpose_quantised"),
    in_place(quantised<kernel_id::kReferenceRecurrentQuantised, OpKind::kRecurrent, recurrent_parameters, reference::quantised_recurrent,
                       recurrent_workspace>("reference/recurrent_quantised"),
             first_in_place),
    quantised_embedding(),
    narrow_winograd(),
};

constexpr bool in_order_of_kinds() noexcept {
  for (std::size_t i = 0; i < kKinds; ++i)
    if (static_cast<std::size_t>(kKernels[i].op) != i) return false;
  return true;
}
static_assert(in_order_of_kinds(), "reference_kernel() indexes the table by OpKind");

/// What the reference says of `op` in f32.
constexpr KernelDescriptor reference_of(OpKind op) noexcept { return kKernels[static_cast<std::size_t>(op)]; }

}  // namespace sluice::kernels::reference_table
