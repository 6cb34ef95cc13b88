#include "sluice/core/panels.h"

#include <algorithm>

namespace sluice {

namespace {

// Far below the size at which its products overflow.
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 56;

/// Values without scales; nothing where the fields do not go together.
std::optional<std::uint64_t> bare_bytes(const PanelLayout& layout, std::uint64_t values) noexcept {
  const bool real = layout.dtype == DType::kF32 || layout.dtype == DType::kF16 || layout.dtype == DType::kBF16;
  const bool integer = layout.dtype == DType::kI8;
  if (layout.k_block != 1 || layout.k_group != 0 || layout.scale != PanelScale::kNone || !(real || integer)) return std::nullopt;
  const bool lane_by_lane = layout.layout == WeightLayout::kDepthwise;  // sums with one product for each tap
  if (lane_by_lane && layout.k_interleave != 1) return std::nullopt;
  if (integer && layout.k_interleave != 4 && !lane_by_lane && layout.layout != WeightLayout::kSparse) return std::nullopt;
  if ((real && layout.k_interleave != 1) || values % layout.k_interleave != 0) return std::nullopt;
  return values * kPanelLanes * size_of(layout.dtype);
}

/// Values with scales.
std::optional<std::uint64_t> scaled_bytes(const PanelLayout& layout, std::uint64_t values) noexcept {
  if (layout.layout != WeightLayout::kPanels || layout.k_interleave != 1) return std::nullopt;
  const std::uint64_t each = layout.k_group;
  const bool bytes = layout.dtype == DType::kI8 && layout.k_block == 1;
  const bool parts = layout.dtype == DType::kU8 && (layout.k_block == 2 || layout.k_block == 4) && each != 0 && each % layout.k_block == 0;
  if (!bytes && !parts) return std::nullopt;
  if (each == 0 && layout.scale == PanelScale::kF16) return std::nullopt;
  if (each == 0) return static_cast<std::uint64_t>(quantised_head_bytes(layout)) + values * kPanelLanes;
  return (values + each - 1) / each * static_cast<std::uint64_t>(quantised_group_bytes(layout));
}

}  // namespace

std::optional<Bytes> panel_bytes_of(const PanelLayout& layout, std::uint64_t values) noexcept {
  const bool sparse = layout.layout == WeightLayout::kSparse;
  const bool interleaved = layout.k_interleave == 1 || layout.k_interleave == 4;
  if (values > kMostValues || layout.lanes != kPanelLanes || !interleaved || (layout.side == PanelSide::kInputs && sparse))
    return std::nullopt;
  const auto bytes = layout.scale == PanelScale::kNone ? bare_bytes(layout, values) : scaled_bytes(layout, values);
  if (!bytes) return std::nullopt;
  const std::uint64_t bitmap = sparse ? align_up((values / layout.k_interleave + 7) / 8, kWeightAlignment) : 0;
  return Bytes(bitmap + align_up(*bytes, kWeightAlignment));
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
