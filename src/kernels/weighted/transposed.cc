// Transposed convolutions. Outputs of one phase (row mod stride_h, column mod stride_w) meet the same taps, which lie next to each other
// in the panels (`transposed_tap_order`), so each phase is an ordinary convolution of stride 1 that writes every stride-th pixel:
//
//     output o = stride * q + phase meets tap t at input q + shift(t),  shift(t) = (phase + pad - t * dilation) / stride
//
// Groups of fewer than 16 outputs read strips whose inputs are spread to lanes (lanes.h).
#include <algorithm>

#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/pixel_area.h"
#include "src/kernels/weighted/strip.h"
#include "src/kernels/weighted/transposed_axis.h"

namespace sluice::kernels::weighted {
namespace {

StripArea strip_of(const Window& w, const OutArea& area, const StripPlan& plan) noexcept {
  return {area.image, vertical(w).first_input(area.rows.begin), horizontal(w).first_input(area.columns.begin), plan.in_rows,
          plan.in_columns};
}

/// The phases of an area, one after the other, for one block.
class PhaseRunner {
 public:
  PhaseRunner(const KernelCall& call, int tile_rows, const StripPlan& plan, const OutArea& area, const float* strip) noexcept
      : call_(call),
        tile_rows_(tile_rows),
        w_(call.parameters<ConvolutionParameters>().window),
        plan_(plan),
        area_(area),
        source_(strip_of(w_, area, plan)),
        strip_(strip) {}

  /// `job` says how many products a tap has.
  template <class Runner>
  void run(const Block& block, TileJob job, std::int64_t* offsets, Runner& runner) const noexcept {
    const TransposedAxis v = vertical(w_), h = horizontal(w_);
    job.segment_offsets = offsets;
    for (std::int64_t phase_y = 0; phase_y < v.stride; ++phase_y)
      for (std::int64_t phase_x = 0; phase_x < h.stride; ++phase_x) {
        job.segments = 0;
        for (std::int64_t ky = v.first_tap(phase_y); ky < v.kernel; ky += v.period())
          for (std::int64_t kx = h.first_tap(phase_x); kx < h.kernel; kx += h.period())
            offsets[job.segments++] = offset(v.shift(ky), h.shift(kx));
        TileJob of_phase = job;
        runner.begin(of_phase, block.first_panel);
        run_phase(block, of_phase, phase_y, phase_x, runner);
        runner.finish(of_phase);
        if (runner.widens())
          job.first_value += job.segments * job.depth;
        else
          job.panels += job.segments * job.depth * kPanelLanes;
      }
  }

 private:
  /// Floats from the strip's start to input (row, column) of the image.
  std::int64_t offset(std::int64_t row, std::int64_t column) const noexcept { return (row * plan_.in_columns + column) * plan_.depth; }

  template <class Runner>
  void run_phase(const Block& block, const TileJob& job, std::int64_t phase_y, std::int64_t phase_x, Runner& runner) const noexcept {
    const auto qy = outputs_of_phase(area_.rows, phase_y, w_.stride_h);
    const auto qx = outputs_of_phase(area_.columns, phase_x, w_.stride_w);
    const std::int64_t pixels = qy.size() * qx.size();
    const std::int64_t count = ceil_div(pixels, tile_rows_);
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const auto part = even_part({0, pixels}, tile, count);
      TileRows rows;
      rows.count = static_cast<int>(part.size());
      for (int m = 0; m < rows.count; ++m) {
        const std::int64_t y = qy.begin + (part.begin + m) / qx.size();
        const std::int64_t x = qx.begin + (part.begin + m) % qx.size();
        rows.a[m] = strip_ + offset(y - source_.row, x - source_.column);
        const std::int64_t row = area_.image * w_.out_h + y * w_.stride_h + phase_y;
        OutputWalk(call_, row, x * w_.stride_w + phase_x, {0, w_.out_w}, block.channel).set(m, rows);
      }
      runner.run(rows, job);
    }
  }

  const KernelCall& call_;
  int tile_rows_;
  const Window& w_;
  const StripPlan& plan_;
  const OutArea& area_;
  StripArea source_;
  const float* strip_;
};

/// Tiles of lanes, as a TileRunner has them of panels.
struct LaneRunner {
  const TileTable& tiles;

  void begin(const TileJob&, std::int64_t) const noexcept {}
  void run(const TileRows& rows, const TileJob& job) const noexcept { tiles.lanes(rows, job); }
  void finish(const TileJob&) const noexcept {}
  bool widens() const noexcept { return false; }
};

StripPlan plan_lanes(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const std::int64_t panels = panels_of_channels(extent.channels, 1).size();
  return plan_strips(conv.window, conv.group_depth() * kPanelLanes, extent, panels, Direction::kTransposed);
}

void run_lanes(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const StripPlan plan = plan_lanes(conv, {call.rows, call.channels, threads});
  const OutAreas areas(call.rows, conv.window, plan);
  const Blocks panels(conv.weighted.panels, call.channels, conv.out_channels, conv.group_outputs(), 1, 1);
  const Strips strips(call.workspace, plan, threads);
  const UnitGrid units{.blocks = panels.count(), .runs = areas.count()};
  for_each_unit(call, units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = units[unit];
    const OutArea area = areas[place.run];
    const Block block = panels[place.block];
    float* const strip = strips.strip(thread);
    fill_lanes(call.inputs[0].view, conv, strip_of(conv.window, area, plan), block, plan, strip);
    TileJob job = make_job(call, block);
    job.depth = conv.group_depth();
    job.segment_floats = job.depth * kPanelLanes;
    LaneRunner runner{tiles};
    PhaseRunner(call, tiles.lane_rows, plan, area, strip).run(block, job, strips.segment_offsets(thread), runner);
  });
}

/// Of few outputs the pixels of a phase are the lanes, over planes of inputs (lanes.h). A build without grouped convolutions has no such tiles,
/// and the others give the same bits.
bool pixels_are_lanes(const ConvolutionParameters& conv) noexcept {
  constexpr std::int64_t kLeastColumns = 12, kLeastTaps = 2;
  const Window& w = conv.window;
  return has_kernel(kernel_id::kConvGroupedLanes) && conv.groups == 1 && !is_narrow(conv.weighted.panels.layout) &&
         w.taps() >= kLeastTaps && w.out_w / w.stride_w >= kLeastColumns;
}
bool has_pixel_lanes(const ConvolutionParameters& conv) noexcept {
  return conv.out_channels <= kMostPixelOutputs && pixels_are_lanes(conv);
}

/// The channels of a step whose lanes are those of panels. Where the last panel has a few outputs only, which would take as long as sixteen,
/// the pixels are the lanes of these.
ChannelRange panel_channels(const ConvolutionParameters& conv, ChannelRange channels) noexcept {
  constexpr std::int64_t kMostOutputs = 5, kLeastDepth = 16;
  const std::int64_t last = conv.out_channels % kPanelLanes, whole = conv.out_channels - last;
  const bool few = whole > 0 && last > 0 && last <= kMostOutputs && conv.in_channels >= kLeastDepth && pixels_are_lanes(conv);
  if (!few || channels.end <= whole) return channels;
  return {channels.begin, std::max(channels.begin, whole)};
}

StripPlan plan_pixels(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return plan_strips(conv.window, conv.in_channels, extent, 1, Direction::kTransposed);
}

/// The phases of an area over planes of its inputs.
class PixelPhases {
 public:
  PixelPhases(const KernelCall& call, const TileTable& tiles, const StripPlan& plan, const OutArea& area) noexcept
      : call_(call),
        tiles_(tiles),
        conv_(call.parameters<ConvolutionParameters>()),
        plan_(plan),
        area_(area),
        source_(strip_of(conv_.window, area, plan)) {}

  void run(const Block& block, std::int64_t* offsets, float* strip) const noexcept {
    const std::int64_t plane = plan_.in_rows * plan_.in_columns;
    for (std::int64_t r = 0; r < plan_.in_rows; ++r)
      fill_planes_row(call_.inputs[0].view, conv_.window, source_, r, {0, conv_.in_channels}, {strip + r * plan_.in_columns, plane},
                      tiles_.isa);
    const TileJob job = make_job(call_, block);
    PixelPlanes planes{.first = strip,
                       .plane_floats = plane,
                       .tap_offsets = offsets,
                       .depth = conv_.in_channels,
                       .weights = job.panels,
                       .end_lane = block.last_lanes};
    const TransposedAxis v = vertical(conv_.window), h = horizontal(conv_.window);
    for (std::int64_t phase_y = 0; phase_y < v.stride; ++phase_y)
      for (std::int64_t phase_x = 0; phase_x < h.stride; ++phase_x) {
        planes.taps = 0;
        // From the first input of the area, so that no pixel lies before its plane: taps reach back.
        for (std::int64_t ky = v.first_tap(phase_y); ky < v.kernel; ky += v.period())
          for (std::int64_t kx = h.first_tap(phase_x); kx < h.kernel; kx += h.period())
            offsets[planes.taps++] = v.shift(ky) * plan_.in_columns + h.shift(kx);
        run_phase(block, job, planes, phase_y, phase_x);
        planes.weights += planes.taps * planes.depth * kPanelLanes;
      }
  }

 private:
  void run_phase(const Block& block, const TileJob& job, const PixelPlanes& planes, std::int64_t phase_y,
                 std::int64_t phase_x) const noexcept {
    const Window& w = conv_.window;
    const auto qy = outputs_of_phase(area_.rows, phase_y, w.stride_h);
    const auto qx = outputs_of_phase(area_.columns, phase_x, w.stride_w);
    const PixelArea pixels{.first = (qy.begin - source_.row) * plan_.in_columns + qx.begin - source_.column,
                           .rows = qy.size(),
                           .columns = qx.size(),
                           .pitch = plan_.in_columns};
    run_pixel_area(tiles_, {&planes, 1}, pixels, job, [&](std::int64_t row, std::int64_t column, std::int64_t count) {
      const std::int64_t out_row = area_.image * w.out_h + (qy.begin + row) * w.stride_h + phase_y;
      return pixel_outputs(call_, out_row, (qx.begin + column) * w.stride_w + phase_x, w.stride_w, count, block.channel);
    });
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const ConvolutionParameters& conv_;
  const StripPlan& plan_;
  const OutArea& area_;
  StripArea source_;
};

void run_pixel_phases(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const StripPlan plan = plan_pixels(conv, {call.rows, call.channels, threads});
  const OutAreas areas(call.rows, conv.window, plan);
  const Blocks blocks(conv.weighted.panels, call.channels, conv.out_channels, conv.out_channels, 1, 1);
  const Block block = blocks[0];  // the only one
  const Strips strips(call.workspace, plan, threads);
  for_each_unit(call, areas.count(), [&](std::int64_t unit, int thread) noexcept {
    const OutArea area = areas[unit];
    PixelPhases(call, tiles, plan, area).run(block, strips.segment_offsets(thread), strips.strip(thread));
  });
}

void run_panels(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const StripCut cut = cut_strips(conv, {call.rows, call.channels, threads}, Direction::kTransposed);
  const OutAreas areas(call.rows, conv.window, cut.strip);
  const Strips strips(call.workspace, cut.strip, threads);
  const NarrowRooms rooms(tiles, narrow_step(conv.weighted, conv.groups, {call.rows, call.channels, threads}),
                          call.workspace + strip_workspace(cut.strip, threads).count());

  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, block.group * areas.count() + place.run))
      fill_strip(call.inputs[0].view, conv.window, strip_of(conv.window, area, cut.strip), block.group * cut.strip.depth, cut.strip, strip);
    TileRunner runner(tiles, rooms, thread);
    TileJob job = make_job(call, block);
    job.depth = cut.strip.depth;
    PhaseRunner(call, tiles.rows, cut.strip, area, strip).run(block, job, strips.segment_offsets(thread), runner);
  });
}

}  // namespace

Bytes transposed_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  if (phases_are_lanes(conv)) return transposed_lanes_workspace(conv, extent);
  if (conv.by_taps()) return transposed_taps_workspace(conv, extent);
  if (!groups_fill_panels(conv)) return strip_workspace(plan_lanes(conv, extent), extent.threads);
  if (has_pixel_lanes(conv)) return strip_workspace(plan_pixels(conv, extent), extent.threads);
  StepExtent of_panels = extent, of_pixels = extent;
  of_panels.channels = panel_channels(conv, extent.channels);
  of_pixels.channels.begin = of_panels.channels.end;
  Bytes most(0);
  if (of_panels.channels.size() > 0)
    most = strip_workspace(cut_strips(conv, of_panels, Direction::kTransposed).strip, extent.threads) +
           NarrowRooms::bytes(narrow_step(conv.weighted, conv.groups, of_panels));
  if (of_pixels.channels.size() > 0) most = std::max(most, strip_workspace(plan_pixels(conv, of_pixels), extent.threads));
  return most;
}

CostFeatures transposed_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  CostFeatures cost = weighted_cost(conv.weighted, extent);
  if (!conv.by_taps()) return cost;
  const Window& w = conv.window;
  const TransposedAxis axis = vertical(w);
  std::int64_t rows = 0;  // of the input that the step reads
  for (std::int64_t first = extent.rows.begin / w.out_h * w.out_h; first < extent.rows.end; first += w.out_h) {
    const std::int64_t begin = std::max(extent.rows.begin, first) - first, end = std::min(extent.rows.end, first + w.out_h) - first;
    rows += std::max<std::int64_t>(0, std::min(w.in_h, axis.end_input(end)) - std::max<std::int64_t>(0, axis.first_input(begin)));
  }
  const std::int64_t weights = w.taps() * conv.in_channels * extent.channels.size();
  cost.flops = static_cast<std::uint64_t>(2 * rows * w.in_w * weights);
  cost.input_bytes += 2 * static_cast<std::uint64_t>(weights) * sizeof(float);  // its weights beside each other
  return cost;
}

void run_transposed(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  if (phases_are_lanes(conv)) return run_transposed_lanes(call, tiles);
  if (conv.by_taps()) return run_transposed_taps(call, tiles);
  if (!groups_fill_panels(conv)) return run_lanes(call, tiles);
  if (has_pixel_lanes(conv)) return run_pixel_phases(call, tiles);
  KernelCall of_panels = call, of_pixels = call;
  of_panels.channels = panel_channels(conv, call.channels);
  of_pixels.channels.begin = of_panels.channels.end;
  if (of_panels.channels.size() > 0) run_panels(of_panels, tiles);
  if (of_pixels.channels.size() > 0) run_pixel_phases(of_pixels, tiles);
}

}  // namespace sluice::kernels::weighted
