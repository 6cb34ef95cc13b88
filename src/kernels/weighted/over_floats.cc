// Convolutions of few weights over narrow panels (narrow.h): depthwise ones, and groups of fewer than 16 outputs. A panel has a few dozen values
// a lane, all of which each pixel takes, so that tiles have nothing to gain from parts of it.
#include <array>

#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"

namespace sluice::kernels::weighted {
namespace {

/// Panels of fewer floats are widened by one thread: that takes a microsecond, about as long as to wake another.
constexpr std::int64_t kFloatsOfOneThread = 16 * 1024;

}  // namespace

ConvolutionParameters as_floats(const ConvolutionParameters& conv) noexcept {
  ConvolutionParameters floats = conv;
  const PanelLayout& narrow = conv.weighted.panels.layout;
  floats.weighted.panels.layout = {.layout = narrow.layout, .lanes = narrow.lanes, .side = narrow.side};
  floats.weighted.panels.panel_bytes = Bytes(static_cast<std::uint64_t>(conv.weighted.panels.values * kPanelLanes) * sizeof(float));
  return floats;
}

Bytes float_panels(const ConvolutionParameters& conv, ChannelRange channels) noexcept {
  const PanelRange panels = panels_of_channels(channels, conv.weighted.panels.outputs_per_group);
  return as_floats(conv).weighted.panels.panel_bytes * static_cast<std::uint64_t>(panels.size());
}

void run_over_floats(const KernelCall& call, const TileTable& tiles, void (*run)(const KernelCall&, const TileTable&) noexcept) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const ConvolutionParameters floats = as_floats(conv);
  const PanelGeometry& narrow = conv.weighted.panels;
  const WeightOperand& given = call.weights[0];
  auto* const widened = reinterpret_cast<float*>(call.workspace);
  const auto widen = [&](std::int64_t panel, int) noexcept {
    const std::byte* const from = given.data + panel * static_cast<std::int64_t>(narrow.panel_bytes.count());
    tiles.widen(from, narrow.layout.k_group, 0, narrow.values, widened + panel * narrow.values * kPanelLanes);
  };
  if (given.panels.size() * narrow.values * kPanelLanes < kFloatsOfOneThread) {
    for (std::int64_t panel = 0; panel < given.panels.size(); ++panel) widen(panel, 0);
  } else {
    for_each_unit(call, given.panels.size(), widen);
  }
  std::array<WeightOperand, 2> weights{WeightOperand{call.workspace, given.panels, floats.weighted.panels.panel_bytes}, WeightOperand{}};
  if (call.weights.size() > 1) weights[1] = call.weights[1];
  KernelCall over = call;
  over.parameter_data = reinterpret_cast<const std::byte*>(&floats);
  over.weights = std::span(weights).first(call.weights.size());
  over.workspace = call.workspace + float_panels(conv, call.channels).count();
  run(over, tiles);
}

}  // namespace sluice::kernels::weighted
