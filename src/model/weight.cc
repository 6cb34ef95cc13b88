#include "sluice/model/weight.h"

#include <algorithm>

#include "sluice/core/check.h"

namespace sluice::model {

FileRange panel_range(const Weight& weight, PanelRange p) noexcept {
  SLUICE_DCHECK(p.begin >= 0 && p.begin <= p.end && p.end <= weight.panels, "a slice is a run of the weight's own panels");
  if (p.begin == 0 && p.end == weight.panels) return weight.range();
  return {weight.offset + static_cast<std::uint64_t>(p.begin) * weight.panel_bytes, static_cast<std::uint64_t>(p.size()) * weight.panel_bytes};
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

}  // namespace sluice::model
