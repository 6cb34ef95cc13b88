// The family's descriptors, in order of preference.
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/quantised_tile.h"
#include "src/kernels/weighted/recurrent.h"
#include "src/kernels/weighted/winograd.h"

namespace sluice::kernels {
namespace {

template <void (*kRun)(const KernelCall&, const weighted::TileTable&) noexcept>
void run_here(const KernelCall& call) noexcept {
  kRun(call, weighted::tile_table(active_isa()));
}

template <void (*kRun)(const KernelCall&, const weighted::TileTable&) noexcept, weighted::QuantisedBits kBits>
void run_quantised_here(const KernelCall& call) noexcept {
  kRun(call, weighted::quantised_tile_table(active_isa(), kBits));
}

Bytes grouped_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const auto workspace =
      weighted::sums_pixels(node.as<model::ConvAttributes>()) ? weighted::grouped_pixels_workspace : weighted::grouped_lanes_workspace;
  return workspace(graph, node, extent);
}
void run_grouped(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  const auto run =
      weighted::sums_pixels(call.node->as<model::ConvAttributes>()) ? weighted::run_grouped_pixels : weighted::run_grouped_lanes;
  run(call, tiles);
}

template <int kBits>
bool quantised(const model::Graph& graph, const model::Node& node) noexcept {
  if (node.weights.empty() || !weighted::tensors_fit(graph, node)) return false;
  const model::PanelLayout& layout = graph.weight(node.weights[0]).panel_layout;
  return model::is_quantised(layout) && model::bits_of(layout) == kBits;
}
template <int kBits>
bool quantised_direct(const model::Graph& graph, const model::Node& node) noexcept {
  return quantised<kBits>(graph, node) && weighted::groups_fill_panels(node.as<model::ConvAttributes>());
}
template <int kBits>
bool quantised_pointwise(const model::Graph& graph, const model::Node& node) noexcept {
  return quantised_direct<kBits>(graph, node) && weighted::reads_in_place(node.as<model::ConvAttributes>());
}

}  // namespace

std::span<const KernelDescriptor> weighted_kernels() noexcept {
  using model::OpKind;
  using weighted::QuantisedBits;
  const auto kernel = [](KernelId id, std::string_view name, OpKind op, auto supports, auto workspace, auto run) {
    return KernelDescriptor{.id = id,
                            .name = name,
                            .op = op,
                            .supports = supports,
                            .slices_channels = true,
                            .slices_rows = true,
                            .in_place_inputs = weighted::residual_input,
                            .workspace = workspace,
                            .cost = weighted::weighted_cost,
                            .run = run};
  };
  KernelDescriptor winograd = kernel(kernel_id::kConvWinograd, "conv/winograd", OpKind::kConv, weighted::winograd_supports,
                                     weighted::winograd_workspace, weighted::run_winograd);
  winograd.numeric = model::NumericClass::kWinograd4;
  winograd.cost = weighted::winograd_cost;
  winograd.derived_panel_bytes = weighted::winograd_panel_bytes;
  winograd.prepare = weighted::prepare_winograd;
  winograd.prepare_cost = weighted::winograd_prepare_cost;
  winograd.row_granule = weighted::kWinogradRowGranule;
  KernelDescriptor recurrent = kernel(kernel_id::kRecurrent, "recurrent", OpKind::kRecurrent, weighted::recurrent_supports,
                                      weighted::recurrent_workspace, run_here<weighted::run_recurrent>);
  recurrent.in_place_inputs = weighted::recurrent_in_place;
  recurrent.cost = weighted::recurrent_cost;
  static const std::array kKernels{
      kernel(kernel_id::kConvPointwise, "conv/pointwise", OpKind::kConv, weighted::pointwise_supports, weighted::no_workspace,
             run_here<weighted::run_pointwise>),
      kernel(kernel_id::kConvDirect, "conv/direct", OpKind::kConv, weighted::direct_supports, weighted::direct_workspace,
             run_here<weighted::run_direct>),
      kernel(kernel_id::kDense, "dense", OpKind::kDense, weighted::dense_supports, weighted::no_workspace, run_here<weighted::run_dense>),
      kernel(kernel_id::kConvDepthwise, "conv/depthwise", OpKind::kConv, weighted::depthwise_supports, weighted::depthwise_workspace,
             run_here<weighted::run_depthwise>),
      kernel(kernel_id::kConvGroupedLanes, "conv/grouped_lanes", OpKind::kConv, weighted::grouped_lanes_supports, grouped_workspace,
             run_here<run_grouped>),
      kernel(kernel_id::kConvTransposed, "conv/transposed", OpKind::kConvTranspose, weighted::transposed_supports,
             weighted::transposed_workspace, run_here<weighted::run_transposed>),
      winograd,
      recurrent,
      kernel(kernel_id::kDenseEightBits, "dense/8bit", OpKind::kDense, quantised<8>, weighted::no_workspace,
             run_quantised_here<weighted::run_dense, QuantisedBits::kEight>),
      kernel(kernel_id::kDenseFourBits, "dense/4bit", OpKind::kDense, quantised<4>, weighted::no_workspace,
             run_quantised_here<weighted::run_dense, QuantisedBits::kFour>),
      kernel(kernel_id::kDenseTwoBits, "dense/2bit", OpKind::kDense, quantised<2>, weighted::no_workspace,
             run_quantised_here<weighted::run_dense, QuantisedBits::kTwo>),
      kernel(kernel_id::kConvPointwiseEightBits, "conv/pointwise_8bit", OpKind::kConv, quantised_pointwise<8>, weighted::no_workspace,
             run_quantised_here<weighted::run_pointwise, QuantisedBits::kEight>),
      kernel(kernel_id::kConvPointwiseFourBits, "conv/pointwise_4bit", OpKind::kConv, quantised_pointwise<4>, weighted::no_workspace,
             run_quantised_here<weighted::run_pointwise, QuantisedBits::kFour>),
      kernel(kernel_id::kConvDirectEightBits, "conv/direct_8bit", OpKind::kConv, quantised_direct<8>, weighted::direct_workspace,
             run_quantised_here<weighted::run_direct, QuantisedBits::kEight>),
      kernel(kernel_id::kConvDirectFourBits, "conv/direct_4bit", OpKind::kConv, quantised_direct<4>, weighted::direct_workspace,
             run_quantised_here<weighted::run_direct, QuantisedBits::kFour>),
      kernel(kernel_id::kConvTransposedEightBits, "conv/transposed_8bit", OpKind::kConvTranspose, quantised_direct<8>,
             weighted::transposed_workspace, run_quantised_here<weighted::run_transposed, QuantisedBits::kEight>),
      kernel(kernel_id::kConvTransposedFourBits, "conv/transposed_4bit", OpKind::kConvTranspose, quantised_direct<4>,
             weighted::transposed_workspace, run_quantised_here<weighted::run_transposed, QuantisedBits::kFour>),
  };
  return kKernels;
}

}  // namespace sluice::kernels
