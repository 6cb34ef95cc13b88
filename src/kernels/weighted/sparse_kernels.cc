// The descriptors of the kernels over sparse panels: which nodes each takes, and what they resolve to.
#include <algorithm>
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/reference/sparse.h"
#include "src/kernels/resolve.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/sparse.h"

namespace sluice::kernels {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;
using operators::SparseConvolutionParameters;
using operators::SparseDenseParameters;
using weighted::SparseForm;

SparseConvolutionParameters sparse_convolution_parameters(const Graph& graph, const Node& node) noexcept {
  const operators::ConvolutionParameters conv = convolution_parameters(graph, node);
  return {conv.weighted, conv.window, graph.weight(node.weights[0]).panel_ends.data()};
}
SparseDenseParameters sparse_dense_parameters(const Graph& graph, const Node& node) noexcept {
  return {dense_parameters(graph, node), graph.weight(node.weights[0]).panel_ends.data()};
}

constexpr DType dtype_of(SparseForm form) noexcept {
  return form == SparseForm::kF32 ? DType::kF32 : form == SparseForm::kBf16 ? DType::kBF16 : DType::kF16;
}

/// Activations of f32, and a sparse weight without scales.
bool is_sparse(const Graph& graph, const Node& node) noexcept {
  const auto floats = [&](TensorId id) { return graph.tensor(id).dtype == DType::kF32; };
  if (node.weights.empty() || !std::all_of(node.inputs.begin(), node.inputs.end(), floats) || !floats(node.outputs[0])) return false;
  const PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  return layout == PanelLayout{.layout = WeightLayout::kSparse, .dtype = layout.dtype} && (conv == nullptr || conv->groups == 1);
}

template <SparseForm kForm>
bool form_fits(const Graph& graph, const Node& node) noexcept {
  return is_sparse(graph, node) && graph.weight(node.weights[0]).panel_layout.dtype == dtype_of(kForm);
}
template <SparseForm kForm>
bool pointwise_fits(const Graph& graph, const Node& node) noexcept {
  return form_fits<kForm>(graph, node) && weighted::reads_in_place(convolution_parameters(graph, node));
}

CostFeatures cost_of(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  const operators::WeightedParameters weighted =
      node.op == OpKind::kDense ? dense_parameters(graph, node).weighted : convolution_parameters(graph, node).weighted;
  return weighted::sparse_cost(weighted, graph.weight(node.weights[0]).panel_ends.data(), extent);
}

struct DescribedSparse {
  std::string_view name;
  OpKind op = OpKind::kConv;
  bool cuts_sums = false;
};

/// `kEntry(isa)` runs nodes whose parameters `kParameters` makes, in the workspace that `kWorkspace` asks for.
template <KernelId kId, auto kParameters, auto kEntry, auto kWorkspace>
constexpr KernelDescriptor describe(const DescribedSparse& what, bool (*supports)(const Graph&, const Node&) noexcept) noexcept {
  return {.id = kId,
          .name = what.name,
          .op = what.op,
          .supports = supports,
          .slices_channels = true,
          .slices_rows = true,
          .cuts_sums = what.cuts_sums,
          .in_place_inputs = residual_in_place,
          .resolve = if_built<kId, resolve_as<kParameters, kEntry>>(),
          .parameter_bytes = kParameterBytes<kParameters>,
          .workspace = workspace_of<kWorkspace>,
          .cost = cost_of};
}

template <SparseForm kForm>
const weighted::SparseTiles& tiles_of(Isa isa) noexcept {
  return weighted::sparse_tiles(isa, kForm);
}

template <KernelId kId, SparseForm kForm>
constexpr KernelDescriptor dense(std::string_view name) noexcept {
  return describe<kId, sparse_dense_parameters, entry_for<weighted::run_sparse_dense, tiles_of<kForm>>, weighted::sparse_dense_workspace>(
      {name, OpKind::kDense, kForm == SparseForm::kF32}, form_fits<kForm>);
}
template <KernelId kId, SparseForm kForm>
constexpr KernelDescriptor pointwise(std::string_view name) noexcept {
  return describe<kId, sparse_convolution_parameters, entry_for<weighted::run_sparse_pointwise, tiles_of<kForm>>,
                  weighted::sparse_pointwise_workspace>({name, OpKind::kConv, kForm == SparseForm::kF32}, pointwise_fits<kForm>);
}
template <KernelId kId, SparseForm kForm>
constexpr KernelDescriptor direct(std::string_view name) noexcept {
  return describe<kId, sparse_convolution_parameters, entry_for<weighted::run_sparse_direct, tiles_of<kForm>>,
                  weighted::sparse_direct_workspace>({name, OpKind::kConv}, form_fits<kForm>);
}

Bytes no_dense_workspace(const SparseDenseParameters&, const StepExtent&) noexcept { return Bytes(); }
Bytes no_workspace(const SparseConvolutionParameters&, const StepExtent&) noexcept { return Bytes(); }

}  // namespace

std::span<const KernelDescriptor> sparse_kernels() noexcept {
  static constexpr auto kKernels = as_built([] {
    return std::array{
        pointwise<kernel_id::kConvPointwiseSparse, SparseForm::kF32>("conv/pointwise_sparse"),
        direct<kernel_id::kConvDirectSparse, SparseForm::kF32>("conv/direct_sparse"),
        dense<kernel_id::kDenseSparse, SparseForm::kF32>("dense/sparse"),
        pointwise<kernel_id::kConvPointwiseSparseBf16, SparseForm::kBf16>("conv/pointwise_sparse_bf16"),
        direct<kernel_id::kConvDirectSparseBf16, SparseForm::kBf16>("conv/direct_sparse_bf16"),
        dense<kernel_id::kDenseSparseBf16, SparseForm::kBf16>("dense/sparse_bf16"),
        pointwise<kernel_id::kConvPointwiseSparseF16, SparseForm::kF16>("conv/pointwise_sparse_f16"),
        direct<kernel_id::kConvDirectSparseF16, SparseForm::kF16>("conv/direct_sparse_f16"),
        dense<kernel_id::kDenseSparseF16, SparseForm::kF16>("dense/sparse_f16"),
        describe<kernel_id::kReferenceDenseSparse, sparse_dense_parameters, entry_for_any<reference::sparse_dense>, no_dense_workspace>(
            {"reference/dense_sparse", OpKind::kDense, true}, is_sparse),
        describe<kernel_id::kReferenceConvSparse, sparse_convolution_parameters, entry_for_any<reference::sparse_conv>, no_workspace>(
            {"reference/conv_sparse", OpKind::kConv, true}, is_sparse),
    };
  });
  return kKernels;
}

}  // namespace sluice::kernels
