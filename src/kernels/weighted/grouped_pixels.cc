// Groups of fewer than 16 outputs, whose sums are long, and convolutions of a few outputs in all: a strip holds a plane of pixels for each input
// channel of the groups that meet in a panel, so that neighbouring pixels are the lanes.
//
//     planes:  group 0, k = 0: x x x x . .   group 0, k = 1: ...   group 1, k = 0: ...      (rows and columns as in strip.h)
#include <algorithm>
#include <array>
#include <cstring>

#include "src/kernels/movement/strided_copy.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/pixel_area.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

using operators::ConvolutionParameters;

/// The most groups that meet in a panel.
std::int64_t groups_of_panel(const ConvolutionParameters& conv) noexcept {
  return std::min(conv.groups, ceil_div(kPanelLanes - 1, conv.group_outputs()) + 1);
}

StripPlan plan_of_pixels(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const std::int64_t panels = panels_of_channels(extent.channels, 1).size();
  StripPlan plan = plan_strips(conv.window, conv.group_depth() * groups_of_panel(conv), extent, panels, Direction::kColumns);
  plan.segments = conv.window.taps();
  return plan;
}

/// A task of the step, run by one thread: one panel, one area.
class Unit {
 public:
  Unit(const KernelCall& call, const StripPlan& plan, const Block& block, const OutArea& area, const std::int64_t* tap_offsets,
       float* strip) noexcept
      : call_(call),
        conv_(call.parameters<ConvolutionParameters>()),
        plan_(plan),
        block_(block),
        area_(area),
        plane_(plan.in_rows * plan.in_columns),
        job_(make_job(call, block)),
        strip_(strip) {
    const std::int64_t outputs = conv_.group_outputs(), end = block.channel + block.last_lanes;
    for (std::int64_t group = block.channel / outputs; group * outputs < end; ++group) {
      const std::int64_t first = std::max(group * outputs, block.channel), last = std::min((group + 1) * outputs, end);
      planes_[count_] = {.first = strip + static_cast<std::int64_t>(count_) * conv_.group_depth() * plane_,
                         .plane_floats = plane_,
                         .tap_offsets = tap_offsets,
                         .taps = conv_.window.taps(),
                         .depth = conv_.group_depth(),
                         .weights = job_.panels,
                         .first_lane = static_cast<int>(first - block.channel),
                         .end_lane = static_cast<int>(last - block.channel)};
      ++count_;
    }
  }

  void fill(Isa isa) const noexcept {
    const std::int64_t depth = conv_.group_depth(), first_group = block_.channel / conv_.group_outputs();
    for_each_area(conv_.window, area_, plan_, [&](const StripArea& part, std::int64_t first) {
      for (std::int64_t r = 0; r < part.rows; ++r)
        fill_planes_row(call_.inputs[0].view, conv_.window, part, r,
                        {first_group * depth, (first_group + static_cast<std::int64_t>(count_)) * depth},
                        {strip_ + first + r * plan_.in_columns, plane_}, isa);
    });
  }

  void run(const TileTable& tiles) const noexcept {
    const Window& w = conv_.window;
    const PixelArea pixels{
        .rows = area_.rows.size(), .columns = area_.columns.size(), .pitch = (plan_.rows_apart ? 1 : w.stride_h) * plan_.in_columns};
    run_pixel_area(tiles, {planes_.data(), count_}, pixels, job_, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
      return pixel_outputs(call_, area_.image * w.out_h + area_.rows.begin + row, area_.columns.begin + column, 1, count, block_.channel);
    });
  }

 private:
  const KernelCall& call_;
  const ConvolutionParameters& conv_;
  const StripPlan& plan_;
  const Block block_;
  const OutArea area_;
  const std::int64_t plane_;
  const TileJob job_;
  float* const strip_;
  std::array<PixelPlanes, kPanelLanes> planes_;
  std::size_t count_ = 0;
};

}  // namespace

void fill_planes_row(const RowView& in, const Window& w, const StripArea& area, std::int64_t r, ChannelRange channels, PlanesRow to,
                     Isa isa) noexcept {
  const std::int64_t row = area.row + r * area.row_step;
  const std::int64_t step = area.column_step;
  const std::int64_t left = std::clamp<std::int64_t>(ceil_div(-area.column, step), 0, area.columns);
  const std::int64_t end = std::clamp<std::int64_t>(ceil_div(in.pixels - area.column, step), left, area.columns);
  const bool inside = row >= 0 && row < w.in_h && left < end;
  for (std::int64_t k = 0; k < channels.size() && (!inside || left > 0 || end < area.columns); ++k)
    std::fill_n(to.first + k * to.plane, area.columns, 0.0f);
  if (!inside) return;
  movement::StridedCopy copy;
  copy.element = kFloat;
  copy.from = reinterpret_cast<const std::byte*>(in.at<float>(area.image * w.in_h + row, area.column + left * step) + channels.begin);
  copy.to = reinterpret_cast<std::byte*>(to.first + left);
  copy.add(end - left, in.pixel_pitch * step, kFloat);
  copy.add(channels.size(), kFloat, to.plane * kFloat);
  movement::run(copy, isa);
}

bool has_few_outputs(const ConvolutionParameters& conv) noexcept {
  constexpr std::int64_t kLeastTaps = 4;  // a turned input is worth its copy where several taps meet it, and steps of one copy it fast
  return conv.groups == 1 && conv.window.stride_w == 1 && conv.out_channels <= kMostPixelOutputs && conv.window.taps() >= kLeastTaps &&
         !is_narrow(conv.weighted.panels.layout) && sums_pixels(conv);
}

bool sums_pixels(const ConvolutionParameters& conv) noexcept {
  constexpr std::int64_t kLeastColumns = 12;
  const Window& w = conv.window;
  // Four outputs share each input's load: 3x3 in groups of four takes 0.55 of the time of lanes, and less workspace.
  const std::int64_t least_products = conv.groups > 1 && conv.group_outputs() >= 4 ? 36 : 40;
  return w.out_w >= kLeastColumns && w.taps() * conv.group_depth() >= least_products;
}

Bytes grouped_pixels_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return strip_workspace(plan_of_pixels(conv, extent), extent.threads);
}

void run_grouped_pixels(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const StripPlan plan = plan_of_pixels(conv, {call.rows, call.channels, threads});
  const OutAreas areas(call.rows, conv.window, plan);
  const Blocks panels(conv.weighted.panels, call.channels, conv.out_channels, conv.group_outputs(), 1, 1);
  const Strips strips(call.workspace, plan, threads);
  // Distances in a plane: one float a pixel.
  StripPlan one = plan;
  one.depth = 1;
  set_segments(conv.window, one, strips.segment_offsets(0));
  const UnitGrid units{.blocks = panels.count(), .runs = areas.count()};
  for_each_unit(call, units.count(), [&](std::int64_t index, int thread) noexcept {
    const UnitPlace place = units[index];
    Unit unit(call, plan, panels[place.block], areas[place.run], strips.segment_offsets(0), strips.strip(thread));
    unit.fill(tiles.isa);
    unit.run(tiles);
  });
}

}  // namespace sluice::kernels::weighted
