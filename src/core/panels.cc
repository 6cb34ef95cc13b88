#include "sluice/core/panels.h"

#include <algorithm>

namespace sluice {

std::optional<Bytes> panel_bytes_of(const PanelLayout& layout, std::uint64_t values) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  if (values > kMost || layout.lanes != kPanelLanes) return std::nullopt;
  const std::uint64_t each = layout.k_group;
  if (layout.dtype == DType::kF32 && layout.k_block == 1 && each == 0) return Bytes(values * kPanelLanes * sizeof(float));
  if (!is_quantised(layout)) return std::nullopt;
  const bool bytes = layout.dtype == DType::kI8 && layout.k_block == 1;
  const bool parts = layout.dtype == DType::kU8 && (layout.k_block == 2 || layout.k_block == 4) && each != 0 && each % layout.k_block == 0;
  if (!bytes && !parts) return std::nullopt;
  if (each == 0) return Bytes(align_up(static_cast<std::uint64_t>(quantised_head_bytes(layout)) + values * kPanelLanes, kWeightAlignment));
  return Bytes(align_up((values + each - 1) / each * static_cast<std::uint64_t>(quantised_group_bytes(layout)), kWeightAlignment));
}

// Groups of 16 outputs and more fill whole panels each, so that a panel reads one group's input; narrower ones share panels.
std::int64_t panel_count(std::int64_t outputs, std::int64_t outputs_per_group) noexcept {
  if (outputs_per_group < kPanelLanes) return ceil_div(outputs, kPanelLanes);
  return outputs / outputs_per_group * ceil_div(outputs_per_group, kPanelLanes);
}

PanelRange panels_of_channels(ChannelRange c, std::int64_t outputs_per_group) noexcept {
  if (outputs_per_group < kPanelLanes) return {c.begin / kPanelLanes, ceil_div(c.end, kPanelLanes)};
  const std::int64_t panels_per_group = ceil_div(outputs_per_group, kPanelLanes);
  const auto panel = [&](std::int64_t channel, bool up) {
    const std::int64_t within = channel % outputs_per_group;
    return channel / outputs_per_group * panels_per_group + (up ? ceil_div(within, kPanelLanes) : within / kPanelLanes);
  };
  return {panel(c.begin, false), panel(c.end, true)};
}

ChannelRange channels_of_panels(PanelRange p, std::int64_t outputs_per_group, std::int64_t outputs) noexcept {
  const auto channel = [&](std::int64_t panel) {
    if (outputs_per_group < kPanelLanes) return std::min(panel * kPanelLanes, outputs);
    const std::int64_t panels_per_group = ceil_div(outputs_per_group, kPanelLanes);
    const std::int64_t within = std::min(panel % panels_per_group * kPanelLanes, outputs_per_group);
    return std::min(panel / panels_per_group * outputs_per_group + within, outputs);
  };
  return {channel(p.begin), channel(p.end)};
}

}  // namespace sluice
