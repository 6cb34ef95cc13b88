#include "src/kernels/weighted/direct.h"

#include "sluice/kernels/kernel_ids.h"
#include "src/core/build_list.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/inside.h"
#include "src/kernels/weighted/lanes.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

/// Inputs that stay in an L2 cache of 2 MiB beside a block of weights.
constexpr std::int64_t kInPlaceBytes = 1024 * 1024;

/// Borders give tiles of few pixels, each of which reads the weights again: 7x7 maps are a tenth slower in place.
constexpr std::int64_t kLeastWholeWindows = 64;

bool mostly_whole_windows(const Window& w) noexcept {
  const std::int64_t whole = interior_rows(w).size() * interior_columns(w).size();
  return whole >= kLeastWholeWindows && 2 * whole >= w.out_h * w.out_w;
}

/// The taps along one axis that lie inside, of all outputs together, and how often their set changes.
struct Inside {
  std::int64_t taps = 0, sets = 0;

  Inside(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t pad) noexcept {
    Interval<std::int64_t> before{-1, -1};
    for (std::int64_t o = 0; o < out; ++o) {
      const Interval<std::int64_t> inside = taps_inside(o * stride - pad, kernel, dilation, in);
      taps += inside.size();
      sets += inside == before ? 0 : 1;
      before = inside;
    }
  }
};

/// Does an eighth of all products meet padding or more, as where taps lie far apart, while outputs that meet the same taps are many? Where
/// half of them do, tiles may be less full.
bool meets_much_padding(const Window& w) noexcept {
  if (w.dilation_h == 1 && w.dilation_w == 1) return false;
  const Inside y(w.in_h, w.out_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
  const Inside x(w.in_w, w.out_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
  const std::int64_t inside = y.taps * x.taps, all = w.out_h * w.out_w * w.taps();
  const std::int64_t pixels_of_set = 2 * inside <= all ? kMaxTileRows : 2 * kMaxTileRows;
  return 8 * inside <= 7 * all && w.out_h * w.out_w >= pixels_of_set * y.sets * x.sets;
}

bool reads_windows_in_place(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const Window& w = conv.window;
  if (is_narrow(conv.weighted.panels.layout) || has_groups_of_panels(conv)) return false;
  if (w.taps() > kMostTapsInPlace || (!mostly_whole_windows(w) && !meets_much_padding(w))) return false;
  const std::int64_t rows = std::min(w.in_h, (extent.rows.size() - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1);
  return rows * w.in_w * conv.in_channels * static_cast<std::int64_t>(sizeof(float)) <= kInPlaceBytes;
}

}  // namespace

Bytes strips_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return strip_workspace(cut_strips(conv, extent, Direction::kForward).strip, extent.threads) +
         NarrowRooms::bytes(narrow_step(conv.weighted, conv.groups, extent));
}

void run_in_strips(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const Window& w = conv.window;
  const int threads = thread_count(call);
  const StripCut cut = cut_strips(conv, {call.rows, call.channels, threads}, Direction::kForward);
  const StripPlan& plan = cut.strip;
  const OutAreas areas(call.rows, w, plan);
  const Strips strips(call.workspace, plan, threads);
  const NarrowRooms rooms(tiles, narrow_step(conv.weighted, conv.groups, {call.rows, call.channels, threads}),
                          call.workspace + strip_workspace(plan, threads).count());
  set_segments(w, plan, strips.segment_offsets(0));

  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, block.group * areas.count() + place.run)) {
      for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) {
        fill_strip(call.inputs[0].view, w, part, block.group * plan.depth, plan, strip + first * plan.depth);
      });
    }
    TileJob job = make_job(call, block);
    job.segment_offsets = strips.segment_offsets(0);
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * plan.depth;
    TileRunner runner(tiles, rooms, thread);
    runner.begin(job, block.first_panel);
    const int most_rows = tiles.runs_in_threes(block.panels) ? tiles.rows_of_three : tiles.rows;
    for_each_tile({call, w, plan, area, strip, cut.blocks, place}, job, most_rows,
                  [&](const TileRows& rows, const TileJob& tile_job) { runner.run(rows, tile_job); });
    runner.finish(job);
  });
}

/// A build without grouped convolutions has no such tiles, and the others give the same bits.
constexpr bool kHasPixels = has_kernel(kernel_id::kConvGroupedLanes);

Bytes direct_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  if (kHasPixels && has_few_outputs(conv)) return grouped_pixels_workspace(conv, extent);
  return reads_windows_in_place(conv, extent) ? Bytes() : strips_workspace(conv, extent);
}

void run_direct(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  if (kHasPixels && has_few_outputs(conv)) return run_grouped_pixels(call, tiles);
  if (tiles.pair != nullptr && has_groups_of_panels(conv)) return run_group_runs(call, tiles);
  const bool in_place = reads_windows_in_place(conv, {call.rows, call.channels, thread_count(call)});
  in_place ? run_in_place(call, tiles) : run_in_strips(call, tiles);
}

}  // namespace sluice::kernels::weighted
