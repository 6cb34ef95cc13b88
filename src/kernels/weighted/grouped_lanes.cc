// Groups of fewer than 16 outputs. A panel spans several groups, so its strip holds, for each pixel and k, the 16 values that its lanes
// multiply: [pixel][k][16]. The copy is paid once for all taps of the kernel.
#include <algorithm>
#include <cstring>

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/lanes.h"

namespace sluice::kernels::weighted {
namespace {

StripPlan plan_of(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const std::int64_t panels = panels_of_channels(extent.channels, 1).size();
  return plan_strips(conv.window, conv.group_depth() * kPanelLanes, extent, panels);
}

/// Each of the inputs of the groups of a panel `kOutputs` times: [k][group][kOutputs]. Lanes behind the last group repeat it.
template <int kOutputs>
void repeat_inputs(const float* from, std::int64_t depth, int groups, float* to) noexcept {
  for (std::int64_t k = 0; k < depth; ++k, to += kPanelLanes)
    for (int group = 0; group < kPanelLanes / kOutputs; ++group)
      for (int o = 0; o < kOutputs; ++o) to[group * kOutputs + o] = from[std::min(group, groups - 1) * depth + k];
}
using RepeatInputs = void (*)(const float* from, std::int64_t depth, int groups, float* to) noexcept;
/// Where the panel holds whole groups; else null.
RepeatInputs repeat_of(const ConvolutionParameters& conv, const Block& block) noexcept {
  if (block.last_lanes % conv.group_outputs() != 0) return nullptr;
  switch (conv.group_outputs()) {
    case 1:
      return repeat_inputs<1>;
    case 2:
      return repeat_inputs<2>;
    case 4:
      return repeat_inputs<4>;
    case 8:
      return repeat_inputs<8>;
    default:
      return nullptr;
  }
}

}  // namespace

void fill_lanes(const RowView& in, const ConvolutionParameters& conv, const StripArea& area, const Block& block, const StripPlan& plan,
                float* strip) noexcept {
  const Window& w = conv.window;
  const std::int64_t depth = conv.group_depth();
  std::int64_t source[kPanelLanes] = {};
  for (int lane = 0; lane < block.last_lanes; ++lane) source[lane] = (block.channel + lane) / (conv.out_channels / conv.groups) * depth;
  const RepeatInputs repeat = repeat_of(conv, block);
  const int groups = block.last_lanes / static_cast<int>(conv.group_outputs());
  for (std::int64_t r = 0; r < area.rows; ++r)
    for (std::int64_t x = 0; x < area.columns; ++x) {
      float* to = strip + (r * plan.in_columns + x) * plan.depth;
      const std::int64_t row = area.row + r * area.row_step;
      const std::int64_t column = area.column + x * area.column_step;
      if (row < 0 || row >= w.in_h || column < 0 || column >= w.in_w) {
        std::memset(to, 0, static_cast<std::size_t>(plan.depth) * sizeof(float));
        continue;
      }
      const float* from = in.at<float>(area.image * w.in_h + row, column);
      if (repeat != nullptr) {
        repeat(from + source[0], depth, groups, to);
        continue;
      }
      for (std::int64_t k = 0; k < depth; ++k)
        for (int lane = 0; lane < kPanelLanes; ++lane) *to++ = from[source[lane] + k];
    }
}

Bytes grouped_lanes_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return strip_workspace(plan_of(conv, extent), extent.threads);
}

void run_grouped_lanes(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const Window& w = conv.window;
  const int threads = thread_count(call);
  const StripPlan plan = plan_of(conv, {call.rows, call.channels, threads});
  const OutAreas areas(call.rows, w, plan);
  const Blocks panels(conv.weighted.panels, call.channels, conv.out_channels, conv.out_channels / conv.groups, 1, 1);
  const Strips strips(call.workspace, plan, threads);
  set_segments(w, plan, strips.segment_offsets(0));

  const UnitGrid units{.blocks = panels.count(), .runs = areas.count()};
  for_each_unit(call, units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = units[unit];
    const OutArea area = areas[place.run];
    const Block block = panels[place.block];
    float* const strip = strips.strip(thread);
    for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) {
      fill_lanes(call.inputs[0].view, conv, part, block, plan, strip + first * plan.depth);
    });
    TileJob job = make_job(call, block);
    job.segment_offsets = strips.segment_offsets(0);
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * conv.group_depth();
    job.segment_floats = job.depth * kPanelLanes;
    for_each_tile({call, w, plan, area, strip, panels, place}, job, tiles.lane_rows, tiles.lanes);
  });
}

}  // namespace sluice::kernels::weighted
