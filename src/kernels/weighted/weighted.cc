// The family's descriptors, in order of preference: which nodes each kernel takes, and what they resolve to. The key of an entry is
// (operator, input type, weight type, instruction set); a table of tiles exists for each weight type.
#include <algorithm>
#include <array>
#include <optional>

#include "sluice/kernels/registry.h"
#include "src/kernels/families.h"
#include "src/kernels/resolve.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/pointwise.h"
#include "src/kernels/weighted/recurrent.h"
#include "src/kernels/weighted/winograd.h"

namespace sluice::kernels {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;
using weighted::NarrowForm;

// ---- which nodes: inputs of f32, weights of f32 or of so many bits

bool tensors_fit(const Graph& graph, const Node& node) noexcept {
  const auto fits = [&](TensorId id) { return graph.tensor(id).dtype == DType::kF32; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) && std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

template <WeightLayout kLayout>
bool f32_fits(const Graph& graph, const Node& node) noexcept {
  if (node.weights.empty() || !tensors_fit(graph, node)) return false;
  const PanelLayout& panel = graph.weight(node.weights[0]).panel_layout;
  return panel.layout == kLayout && panel.dtype == DType::kF32 && panel.lanes == kPanelLanes && panel.k_block == 1;
}
/// Depthwise panels are those of groups of one output and one input.
bool f32_of_either_layout(const Graph& graph, const Node& node) noexcept {
  return f32_fits<WeightLayout::kPanels>(graph, node) || f32_fits<WeightLayout::kDepthwise>(graph, node);
}
/// How narrow panels hold their values; nothing where no kernel widens them.
std::optional<NarrowForm> form_of(const PanelLayout& layout) noexcept {
  if (!is_narrow(layout)) return std::nullopt;
  if (layout.scale == PanelScale::kNone) return layout.dtype == DType::kBF16 ? NarrowForm::kBf16 : NarrowForm::kF16;
  const int bits = bits_of(layout);
  if (layout.scale == PanelScale::kF16) return bits == 4 ? std::optional(NarrowForm::kFourBitsOfHalfScales) : std::nullopt;
  return bits == 8 ? NarrowForm::kEightBits : bits == 4 ? NarrowForm::kFourBits : NarrowForm::kTwoBits;
}
template <NarrowForm kForm>
bool narrow_fits(const Graph& graph, const Node& node) noexcept {
  return !node.weights.empty() && tensors_fit(graph, node) && form_of(graph.weight(node.weights[0]).panel_layout) == kForm;
}

Bytes grouped_workspace(const operators::ConvolutionParameters& parameters, const StepExtent& extent) noexcept {
  const auto workspace = weighted::sums_pixels(parameters) ? weighted::grouped_pixels_workspace : weighted::grouped_lanes_workspace;
  return workspace(parameters, extent);
}
void run_grouped(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  const auto& conv = call.parameters<operators::ConvolutionParameters>();
  const bool pixels = weighted::sums_pixels(conv);
  if (pixels && weighted::turns_groups(conv, tiles)) return weighted::run_turned_groups(call, tiles);
  (pixels ? weighted::run_grouped_pixels : weighted::run_grouped_lanes)(call, tiles);
}

/// `kRun` and its workspace, over narrow panels.
template <auto kRun>
void run_over_narrow(const KernelCall& call, const weighted::TileTable& tiles) noexcept {
  weighted::run_over_floats(call, tiles, kRun);
}
template <auto kWorkspace>
Bytes workspace_over_narrow(const operators::ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return weighted::float_panels(conv, extent.channels) + kWorkspace(weighted::as_floats(conv), extent);
}

using Fits = bool (*)(const Graph&, const Node&) noexcept;
using Takes = bool (*)(const operators::ConvolutionParameters&) noexcept;

/// A convolution whose types fit and whose geometry the kernel takes.
template <Fits kFits, Takes kTakes>
bool convolution_fits(const Graph& graph, const Node& node) noexcept {
  return kFits(graph, node) && kTakes(convolution_parameters(graph, node));
}

bool fills_panels(const operators::ConvolutionParameters& conv) noexcept { return weighted::groups_fill_panels(conv); }
bool shares_panels(const operators::ConvolutionParameters& conv) noexcept { return !weighted::groups_fill_panels(conv); }
bool shares_panels_of_groups(const operators::ConvolutionParameters& conv) noexcept { return shares_panels(conv) && !conv.depthwise(); }
bool any_groups(const operators::ConvolutionParameters&) noexcept { return true; }
bool is_depthwise(const operators::ConvolutionParameters& conv) noexcept { return conv.depthwise(); }
bool is_pointwise(const operators::ConvolutionParameters& conv) noexcept { return weighted::reads_in_place(conv); }
bool takes_winograd(const operators::ConvolutionParameters& conv) noexcept {
  const Window& w = conv.window;
  return fills_panels(conv) && w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1 && w.dilation_h == 1 &&
         w.dilation_w == 1;
}

// ---- what they cost

/// A slice of a convolution of groups reads the inputs of the groups that it has outputs of.
template <auto kParameters>
CostFeatures weighted_cost(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  const auto parameters = kParameters(graph, node);
  CostFeatures cost = weighted::weighted_cost(parameters.weighted, extent);
  if constexpr (requires { parameters.groups; }) {
    if (parameters.groups == 1 || extent.channels.empty()) return cost;
    const std::int64_t of_group = parameters.group_outputs();
    const std::int64_t touched = (extent.channels.end - 1) / of_group - extent.channels.begin / of_group + 1;
    const std::uint64_t residual = parameters.weighted.epilogue.has_residual ? cost.output_bytes : 0;
    cost.input_bytes =
        (cost.input_bytes - residual) * static_cast<std::uint64_t>(touched) / static_cast<std::uint64_t>(parameters.groups) + residual;
  }
  return cost;
}
template <auto kParameters, auto kCost>
CostFeatures cost_by(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  return kCost(kParameters(graph, node), extent);
}

// ---- what they resolve to

template <NarrowForm kForm>
const weighted::TileTable& tiles_of(Isa isa) noexcept {
  return weighted::narrow_tile_table(isa, kForm);
}
constexpr auto kF32 = weighted::tile_table;
constexpr auto kEight = tiles_of<NarrowForm::kEightBits>;
constexpr auto kFour = tiles_of<NarrowForm::kFourBits>;
constexpr auto kTwo = tiles_of<NarrowForm::kTwoBits>;
constexpr auto kBf16 = tiles_of<NarrowForm::kBf16>;
constexpr auto kF16 = tiles_of<NarrowForm::kF16>;
constexpr auto kFourHalf = tiles_of<NarrowForm::kFourBitsOfHalfScales>;

struct Described {
  std::string_view name;
  OpKind op = OpKind::kConv;
};

/// A kernel of nodes whose parameters `kParameters` makes, run by `kRun` over the inner loops of `kTable`.
template <KernelId kId, auto kParameters, auto kRun, auto kTable>
constexpr KernelDescriptor kernel(const Described& what, Fits supports) noexcept {
  return {.id = kId,
          .name = what.name,
          .op = what.op,
          .supports = supports,
          .slices_channels = true,
          .slices_rows = true,
          .in_place_inputs = residual_in_place,
          .resolve = if_built<kId, resolve_as<kParameters, entry_for<kRun, kTable>>>(),
          .parameter_bytes = kParameterBytes<kParameters>,
          .cost = weighted_cost<kParameters>};
}

template <auto kWorkspace>
constexpr KernelDescriptor with_workspace(KernelDescriptor descriptor) noexcept {
  descriptor.workspace = workspace_of<kWorkspace>;
  return descriptor;
}

template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor dense(std::string_view name) noexcept {
  return with_workspace<weighted::pointwise_workspace<operators::DenseParameters>>(
      kernel<kId, dense_parameters, weighted::run_dense, kTable>({name, OpKind::kDense}, kFits));
}

template <KernelId kId, auto kRun, auto kTable, Fits kFits, Takes kTakes>
constexpr KernelDescriptor convolution(std::string_view name) noexcept {
  return kernel<kId, convolution_parameters, kRun, kTable>({name, OpKind::kConv}, convolution_fits<kFits, kTakes>);
}

template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor pointwise(std::string_view name) noexcept {
  return with_workspace<weighted::pointwise_workspace<operators::ConvolutionParameters>>(
      convolution<kId, weighted::run_pointwise, kTable, kFits, is_pointwise>(name));
}
/// Over f32 panels, which have no workspace either: others are widened in the order of k, from the first on.
constexpr KernelDescriptor in_parts(KernelDescriptor descriptor) noexcept {
  descriptor.cuts_sums = true;
  descriptor.workspace = nullptr;
  return descriptor;
}
template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor direct(std::string_view name) noexcept {
  return with_workspace<weighted::direct_workspace>(convolution<kId, weighted::run_direct, kTable, kFits, fills_panels>(name));
}
template <KernelId kId, auto kTable, Fits kFits, Takes kTakes = fills_panels>
constexpr KernelDescriptor transposed(std::string_view name) noexcept {
  KernelDescriptor descriptor =
      with_workspace<weighted::transposed_workspace>(convolution<kId, weighted::run_transposed, kTable, kFits, kTakes>(name));
  descriptor.op = OpKind::kConvTranspose;
  descriptor.cost = cost_by<convolution_parameters, weighted::transposed_cost>;
  return descriptor;
}

template <NarrowForm kForm>
const weighted::WinogradTable& winograd_of(Isa isa) noexcept {
  return weighted::narrow_winograd_table(isa, kForm);
}

template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor by_winograd(std::string_view name) noexcept {
  KernelDescriptor descriptor =
      with_workspace<weighted::winograd_workspace>(convolution<kId, weighted::run_winograd, kTable, kFits, takes_winograd>(name));
  descriptor.numeric = model::NumericClass::kWinograd4;
  descriptor.resolve = if_built<
      kId, resolve_as<convolution_parameters, entry_for<weighted::run_winograd, kTable>, entry_for<weighted::prepare_winograd, kTable>>>();
  descriptor.cost = cost_by<convolution_parameters, weighted::winograd_cost>;
  descriptor.prepare_cost = cost_by<convolution_parameters, weighted::winograd_prepare_cost>;
  descriptor.derived_panel_bytes = [](const operators::Parameters& parameters) noexcept {
    return weighted::winograd_panel_bytes(parameters.as<operators::ConvolutionParameters>());
  };
  descriptor.row_granule = weighted::kWinogradRowGranule;
  return descriptor;
}

template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor depthwise_narrow(std::string_view name) noexcept {
  return with_workspace<workspace_over_narrow<weighted::depthwise_workspace>>(
      convolution<kId, run_over_narrow<weighted::run_depthwise>, kTable, kFits, is_depthwise>(name));
}
template <KernelId kId, auto kTable, Fits kFits>
constexpr KernelDescriptor grouped_narrow(std::string_view name) noexcept {
  return with_workspace<workspace_over_narrow<grouped_workspace>>(
      convolution<kId, run_over_narrow<run_grouped>, kTable, kFits, shares_panels_of_groups>(name));
}

template <auto kTiles>
weighted::RecurrentTable recurrent_table(Isa isa) noexcept {
  return {kTiles(isa), elementwise::run_table(isa)};
}
template <KernelId kId, auto kTiles, Fits kFits>
constexpr KernelDescriptor recurrent(std::string_view name) noexcept {
  KernelDescriptor descriptor = with_workspace<weighted::recurrent_workspace>(
      kernel<kId, recurrent_parameters, weighted::run_recurrent, recurrent_table<kTiles>>({name, OpKind::kRecurrent}, kFits));
  descriptor.in_place_inputs = first_in_place;
  descriptor.cost = cost_by<recurrent_parameters, weighted::recurrent_cost>;
  return descriptor;
}

/// Recurrent nodes, depthwise convolutions and groups of few outputs, over narrow panels.
constexpr auto narrow_turns_and_lanes() noexcept {
  return std::array{
      recurrent<kernel_id::kRecurrentEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("recurrent/8bit"),
      recurrent<kernel_id::kRecurrentFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("recurrent/4bit"),
      recurrent<kernel_id::kRecurrentBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("recurrent/bf16"),
      recurrent<kernel_id::kRecurrentF16, kF16, narrow_fits<NarrowForm::kF16>>("recurrent/f16"),
      recurrent<kernel_id::kRecurrentFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>("recurrent/4bit_f16"),
      depthwise_narrow<kernel_id::kConvDepthwiseEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("conv/depthwise_8bit"),
      depthwise_narrow<kernel_id::kConvDepthwiseFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("conv/depthwise_4bit"),
      depthwise_narrow<kernel_id::kConvDepthwiseBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("conv/depthwise_bf16"),
      depthwise_narrow<kernel_id::kConvDepthwiseF16, kF16, narrow_fits<NarrowForm::kF16>>("conv/depthwise_f16"),
      depthwise_narrow<kernel_id::kConvDepthwiseFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>(
          "conv/depthwise_4bit_f16"),
      grouped_narrow<kernel_id::kConvGroupedLanesEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("conv/grouped_lanes_8bit"),
      grouped_narrow<kernel_id::kConvGroupedLanesFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("conv/grouped_lanes_4bit"),
      grouped_narrow<kernel_id::kConvGroupedLanesBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("conv/grouped_lanes_bf16"),
      grouped_narrow<kernel_id::kConvGroupedLanesF16, kF16, narrow_fits<NarrowForm::kF16>>("conv/grouped_lanes_f16"),
      grouped_narrow<kernel_id::kConvGroupedLanesFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>(
          "conv/grouped_lanes_4bit_f16"),
  };
}

template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<KernelDescriptor, kFirst + kSecond> joined(const std::array<KernelDescriptor, kFirst>& first,
                                                                const std::array<KernelDescriptor, kSecond>& second) noexcept {
  std::array<KernelDescriptor, kFirst + kSecond> both{};
  std::copy(first.begin(), first.end(), both.begin());
  std::copy(second.begin(), second.end(), both.begin() + kFirst);
  return both;
}

}  // namespace

std::span<const KernelDescriptor> weighted_kernels() noexcept {
  constexpr Fits kPanelsOfF32 = f32_fits<WeightLayout::kPanels>;
  static constexpr auto kKernels = as_built([] {
    return joined(
        std::array{
            in_parts(pointwise<kernel_id::kConvPointwise, kF32, kPanelsOfF32>("conv/pointwise")),
            direct<kernel_id::kConvDirect, kF32, kPanelsOfF32>("conv/direct"),
            in_parts(dense<kernel_id::kDense, kF32, kPanelsOfF32>("dense")),
            with_workspace<weighted::depthwise_workspace>(
                convolution<kernel_id::kConvDepthwise, weighted::run_depthwise, kF32, f32_fits<WeightLayout::kDepthwise>, is_depthwise>(
                    "conv/depthwise")),
            with_workspace<grouped_workspace>(
                convolution<kernel_id::kConvGroupedLanes, run_grouped, kF32, kPanelsOfF32, shares_panels>("conv/grouped_lanes")),
            transposed<kernel_id::kConvTransposed, kF32, f32_of_either_layout, any_groups>("conv/transposed"),
            by_winograd<kernel_id::kConvWinograd, weighted::winograd_table, kPanelsOfF32>("conv/winograd"),
            recurrent<kernel_id::kRecurrent, kF32, kPanelsOfF32>("recurrent"),
            dense<kernel_id::kDenseEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("dense/8bit"),
            dense<kernel_id::kDenseFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("dense/4bit"),
            dense<kernel_id::kDenseTwoBits, kTwo, narrow_fits<NarrowForm::kTwoBits>>("dense/2bit"),
            pointwise<kernel_id::kConvPointwiseEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("conv/pointwise_8bit"),
            pointwise<kernel_id::kConvPointwiseFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("conv/pointwise_4bit"),
            direct<kernel_id::kConvDirectEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("conv/direct_8bit"),
            direct<kernel_id::kConvDirectFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("conv/direct_4bit"),
            transposed<kernel_id::kConvTransposedEightBits, kEight, narrow_fits<NarrowForm::kEightBits>>("conv/transposed_8bit"),
            transposed<kernel_id::kConvTransposedFourBits, kFour, narrow_fits<NarrowForm::kFourBits>>("conv/transposed_4bit"),
            dense<kernel_id::kDenseFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>("dense/4bit_f16"),
            pointwise<kernel_id::kConvPointwiseFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>(
                "conv/pointwise_4bit_f16"),
            direct<kernel_id::kConvDirectFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>(
                "conv/direct_4bit_f16"),
            transposed<kernel_id::kConvTransposedFourBitsHalfScales, kFourHalf, narrow_fits<NarrowForm::kFourBitsOfHalfScales>>(
                "conv/transposed_4bit_f16"),
            dense<kernel_id::kDenseBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("dense/bf16"),
            dense<kernel_id::kDenseF16, kF16, narrow_fits<NarrowForm::kF16>>("dense/f16"),
            pointwise<kernel_id::kConvPointwiseBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("conv/pointwise_bf16"),
            pointwise<kernel_id::kConvPointwiseF16, kF16, narrow_fits<NarrowForm::kF16>>("conv/pointwise_f16"),
            direct<kernel_id::kConvDirectBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("conv/direct_bf16"),
            direct<kernel_id::kConvDirectF16, kF16, narrow_fits<NarrowForm::kF16>>("conv/direct_f16"),
            transposed<kernel_id::kConvTransposedBf16, kBf16, narrow_fits<NarrowForm::kBf16>>("conv/transposed_bf16"),
            transposed<kernel_id::kConvTransposedF16, kF16, narrow_fits<NarrowForm::kF16>>("conv/transposed_f16"),
            by_winograd<kernel_id::kConvWinogradBf16, winograd_of<NarrowForm::kBf16>, narrow_fits<NarrowForm::kBf16>>("conv/winograd_bf16"),
            by_winograd<kernel_id::kConvWinogradF16, winograd_of<NarrowForm::kF16>, narrow_fits<NarrowForm::kF16>>("conv/winograd_f16"),
            by_winograd<kernel_id::kConvWinogradEightBits, winograd_of<NarrowForm::kEightBits>, narrow_fits<NarrowForm::kEightBits>>(
                "conv/winograd_8bit"),
            by_winograd<kernel_id::kConvWinogradFourBits, winograd_of<NarrowForm::kFourBits>, narrow_fits<NarrowForm::kFourBits>>(
                "conv/winograd_4bit"),
            by_winograd<kernel_id::kConvWinogradFourBitsHalfScales, winograd_of<NarrowForm::kFourBitsOfHalfScales>,
                        narrow_fits<NarrowForm::kFourBitsOfHalfScales>>("conv/winograd_4bit_f16"),
        },
        narrow_turns_and_lanes());
  });
  return kKernels;
}

}  // namespace sluice::kernels
