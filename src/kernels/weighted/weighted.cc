// The family's descriptors, in order of preference.
#include <array>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/recurrent.h"
#include "src/kernels/weighted/winograd.h"

namespace sluice::kernels {
namespace {

template <void (*kRun)(const KernelCall&, const weighted::TileTable&) noexcept>
void run_here(const KernelCall& call) noexcept {
  kRun(call, weighted::tile_table(active_isa()));
}

}  // namespace

std::span<const KernelDescriptor> weighted_kernels() noexcept {
  using model::OpKind;
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
      kernel(kernel_id::kConvGroupedLanes, "conv/grouped_lanes", OpKind::kConv, weighted::grouped_lanes_supports,
             weighted::grouped_lanes_workspace, run_here<weighted::run_grouped_lanes>),
      kernel(kernel_id::kConvTransposed, "conv/transposed", OpKind::kConvTranspose, weighted::transposed_supports,
             weighted::transposed_workspace, run_here<weighted::run_transposed>),
      winograd,
      recurrent,
  };
  return kKernels;
}

}  // namespace sluice::kernels
