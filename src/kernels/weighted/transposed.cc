// Transposed convolutions. Outputs of one phase (row mod stride_h, column mod stride_w) meet the same taps, which lie next to each other
// in the panels (`transposed_tap_order`), so each phase is an ordinary convolution of stride 1 that writes every stride-th pixel:
//
//     output o = stride * q + phase meets tap t at input q + shift(t),  shift(t) = (phase + pad - t * dilation) / stride
//
// Groups of fewer than 16 outputs read strips whose inputs are spread to lanes (lanes.h).
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

/// One axis of the window.
struct Axis {
  std::int64_t kernel, stride, dilation, pad;

  std::int64_t phase(std::int64_t tap) const noexcept { return ((tap * dilation - pad) % stride + stride) % stride; }
  std::int64_t shift(std::int64_t tap) const noexcept { return (phase(tap) + pad - tap * dilation) / stride; }
  /// The first input that outputs from `begin` on may meet; one early at worst.
  std::int64_t first_input(std::int64_t begin) const noexcept {
    const std::int64_t position = begin + pad - (kernel - 1) * dilation;
    return position >= 0 ? position / stride : -ceil_div(-position, stride);
  }
};

Axis vertical(const Window& w) noexcept { return {w.kernel_h, w.stride_h, w.dilation_h, w.pad_top}; }
Axis horizontal(const Window& w) noexcept { return {w.kernel_w, w.stride_w, w.dilation_w, w.pad_left}; }

/// Outputs begin..end of one phase: o = phase + stride * q.
Interval<std::int64_t> outputs_of_phase(Interval<std::int64_t> outputs, std::int64_t phase, std::int64_t stride) noexcept {
  const auto first_q = [&](std::int64_t o) { return o <= phase ? 0 : ceil_div(o - phase, stride); };
  return {first_q(outputs.begin), first_q(outputs.end)};
}

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
    const Axis v = vertical(w_), h = horizontal(w_);
    job.segment_offsets = offsets;
    for (std::int64_t phase_y = 0; phase_y < v.stride; ++phase_y)
      for (std::int64_t phase_x = 0; phase_x < h.stride; ++phase_x) {
        job.segments = 0;
        for (std::int64_t ky = 0; ky < v.kernel; ++ky)
          for (std::int64_t kx = 0; kx < h.kernel; ++kx)
            if (v.phase(ky) == phase_y && h.phase(kx) == phase_x) offsets[job.segments++] = offset(v.shift(ky), h.shift(kx));
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

}  // namespace

Bytes transposed_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  if (phases_are_lanes(conv)) return transposed_lanes_workspace(conv, extent);
  if (!groups_fill_panels(conv)) return strip_workspace(plan_lanes(conv, extent), extent.threads);
  return strip_workspace(cut_strips(conv, extent, Direction::kTransposed).strip, extent.threads) +
         NarrowRooms::bytes(narrow_step(conv.weighted, conv.groups, extent));
}

void run_transposed(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  if (phases_are_lanes(conv)) return run_transposed_lanes(call, tiles);
  if (!groups_fill_panels(conv)) return run_lanes(call, tiles);
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

}  // namespace sluice::kernels::weighted
