// Convolutions over zero-padded strips, where a strip holds words of four values: a pixel's channels padded to whole words, which is what
// tiles read at once. So the strips' arithmetic, which counts floats, holds as it stands.
#include <cstring>

#include "src/kernels/integer/matrix.h"
#include "src/kernels/integer/padded.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::integer {
namespace {

using namespace weighted;

/// The same convolution over words, as far as cutting steps of it goes.
ConvolutionParameters in_words(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  ConvolutionParameters words;
  const Window& w = conv.window;
  const std::int64_t images = ceil_div(extent.rows.end, w.out_h);
  words.weighted.panels = conv.weighted.panels;
  words.weighted.out_rows = images * w.out_h;
  words.weighted.out_pixels = ceil_div(w.out_w, kWord);
  words.weighted.input_elements = images * w.in_h * w.in_w * ceil_div(conv.in_channels, kWord);
  words.window = w;
  words.groups = conv.groups;
  words.in_channels = ceil_div(conv.group_depth(), kWord) * conv.groups;
  words.out_channels = conv.out_channels;
  return words;
}

StripCut cut_of(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return cut_strips(in_words(conv, extent), extent, Direction::kForward);
}

/// Copies pixels of `depth` channels, `step` bytes apart, to pixels of whole words. Channels that fill no word bring along what lies
/// behind them, which meets weights of zero.
void copy_pixels(const std::uint8_t* from, std::int64_t step, std::int64_t depth, std::int64_t pixels, std::uint8_t* to) noexcept {
  const std::int64_t bytes = ceil_div(depth, kWord) * kWord;
  if (step == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(pixels * bytes));
  } else if (bytes == kWord) {
    for (std::int64_t x = 0; x < pixels; ++x) std::memcpy(to + x * kWord, from + x * step, kWord);
  } else {
    for (std::int64_t x = 0; x < pixels; ++x) std::memcpy(to + x * bytes, from + x * step, static_cast<std::size_t>(bytes));
  }
}

/// Runs the tiles of a unit whose strip is filled: pixels split evenly, across output rows.
void run_tiles(const KernelCall& call, const TileTable& table, const StripPlan& plan, const OutArea& area, const std::uint8_t* strip,
               const StripCut& cut, const UnitPlace& place, TileJob job) noexcept {
  const Window& w = call.parameters<IntegerConvolutionParameters>().window;
  const std::int64_t pixels = area.rows.size() * area.columns.size(), count = ceil_div(pixels, table.rows);
  const std::int64_t pixel_step = (plan.columns_apart ? 1 : w.stride_w) * plan.depth * kWord;
  const std::int64_t row_step = (plan.rows_apart ? 1 : w.stride_h) * plan.in_columns * plan.depth * kWord;
  PixelWalk walk(call, area.image * w.out_h + area.rows.begin, area.columns.begin, area.columns, cut.blocks[place.block].channel);
  const NextBlock next(call, cut.blocks, place, count);
  const std::uint8_t* row_start = strip;
  const std::uint8_t* a = strip;
  for (std::int64_t tile = 0; tile < count; ++tile) {
    TileRows rows;
    rows.count = static_cast<int>(even_part({0, pixels}, tile, count).size());
    a = walk.set_tile(
        a, pixel_step, [&]() noexcept { return row_start += row_step; }, rows);
    next.set(tile, job);
    table.tile(rows, job);
  }
}

}  // namespace

Bytes strips_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return strip_workspace(cut_of(conv, extent).strip, extent.threads) + terms_workspace(conv.weighted, extent.channels);
}

void run_strips(const KernelCall& call, const TileTable& table) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const Window& w = conv.window;
  const int threads = thread_count(call);
  const StripCut cut = cut_of(conv, {call.rows, call.channels, threads});
  const StripPlan& plan = cut.strip;
  const OutAreas areas(call.rows, w, plan);
  const Strips strips(call.workspace, plan, threads);
  const Terms terms = terms_of(call, call.workspace + strip_workspace(plan, threads).count());
  const int zero = zero_of(call);
  const std::int64_t pixel_bytes = plan.depth * kWord;
  set_segments(w, plan, strips.segment_offsets(0));
  for (std::int64_t s = 0; s < plan.segments; ++s) strips.segment_offsets(0)[s] *= kWord;
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    auto* const strip = reinterpret_cast<std::uint8_t*>(strips.strip(thread));
    if (!strips.holds(thread, block.group * areas.count() + place.run)) {
      for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) noexcept {
        const auto copy = [&](const std::uint8_t* from, std::int64_t step, std::int64_t pixels, std::uint8_t* to) noexcept {
          copy_pixels(from + block.group * conv.group_depth(), step, conv.group_depth(), pixels, to);
        };
        fill_padded(call.inputs[0].view, w, part, pixel_bytes, plan.in_columns * pixel_bytes, zero, copy, strip + first * pixel_bytes);
      });
    }
    TileJob job = job_of(call, block, terms);
    job.segment_offsets = strips.segment_offsets(0);
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * plan.depth;
    run_tiles(call, table, plan, area, strip, cut, place, job);
  });
  finish_floats(call, table.isa);
}

}  // namespace sluice::kernels::integer
