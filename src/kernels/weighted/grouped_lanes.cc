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

/// The first input of each lane of a block, as TileTable::spread reads it.
struct Sources {
  std::int32_t of_lane[kPanelLanes];

  Sources(const ConvolutionParameters& conv, const Block& block) noexcept {
    for (int lane = 0; lane < kPanelLanes; ++lane) {
      const std::int64_t channel = block.channel + std::min(lane, block.last_lanes - 1);
      of_lane[lane] = static_cast<std::int32_t>(channel / conv.group_outputs() * conv.group_depth());
    }
  }
};

/// Are all of a step's lanes such that a single tap finds their inputs in the pixel itself?
bool spreads(const KernelCall& call, const TileTable& tiles, const Blocks& panels) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const Window& w = conv.window;
  const bool inside = w.pad_top == 0 && w.pad_left == 0 && (w.out_h - 1) * w.stride_h < w.in_h && (w.out_w - 1) * w.stride_w < w.in_w;
  if (tiles.spread == nullptr || w.taps() != 1 || !inside || conv.in_channels > INT32_MAX) return false;
  for (std::int64_t b = 0; b < panels.count(); ++b) {
    TileJob job = make_job(call, panels[b]);
    job.depth = conv.group_depth();
    if (!tiles.spread({}, job, Sources(conv, panels[b]).of_lane)) return false;
  }
  return true;
}

/// One row of outputs, panel after panel.
void run_row(const KernelCall& call, const TileTable& tiles, const Blocks& panels, std::int64_t row) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const Window& w = conv.window;
  const RowView& in = call.inputs[0].view;
  const float* const first = in.at<float>(row / w.out_h * w.in_h + row % w.out_h * w.stride_h, 0);
  const std::int64_t step = w.stride_w * in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t count = ceil_div(w.out_w, std::int64_t{tiles.lane_rows});
  for (std::int64_t b = 0; b < panels.count(); ++b) {
    const Block block = panels[b];
    const Sources sources(conv, block);
    TileJob job = make_job(call, block);
    job.depth = conv.group_depth();
    OutputWalk walk(call, row, 0, {0, w.out_w + 1}, block.channel);  // a row that does not end: nothing looks for the next
    const float* a = first;
    for (std::int64_t tile = 0; tile < count; ++tile) {
      TileRows rows;
      rows.count = static_cast<int>(even_part({0, w.out_w}, tile, count).size());
      a = walk.set_tile(
          a, step, [&] { return first; }, rows);
      tiles.spread(rows, job, sources.of_lane);
    }
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
  const Blocks panels(conv.weighted.panels, call.channels, conv.out_channels, conv.out_channels / conv.groups, 1, 1);
  if (spreads(call, tiles, panels))
    return for_each_unit(call, call.rows.size(),
                         [&](std::int64_t unit, int) noexcept { run_row(call, tiles, panels, call.rows.begin + unit); });
  const StripPlan plan = plan_of(conv, {call.rows, call.channels, threads});
  const OutAreas areas(call.rows, w, plan);
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
