// Convolutions over zero-padded strips, where a strip holds words of four values: a pixel's channels padded to whole words, which is what
// tiles read at once. So the strips' arithmetic, which counts floats, holds as it stands.
#include <cstring>

#include "src/kernels/integer/matrix.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::integer {
namespace {

using namespace weighted;

constexpr std::int64_t kWord = 4;

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

/// As weighted::fill_strip, of bytes that padding fills with `zero`.
void fill_bytes(const RowView& in, const Window& w, const StripArea& area, std::int64_t first_channel, std::int64_t depth,
                std::int64_t row_bytes, int zero, std::uint8_t* strip) noexcept {
  const std::int64_t bytes = ceil_div(depth, kWord) * kWord, step = area.column_step;
  const std::int64_t left = std::clamp<std::int64_t>(ceil_div(-area.column, step), 0, area.columns);
  const std::int64_t inside_end = std::clamp<std::int64_t>(ceil_div(in.pixels - area.column, step), left, area.columns);
  const auto pad = [&](std::uint8_t* to, std::int64_t pixels) { std::memset(to, zero, static_cast<std::size_t>(pixels * bytes)); };
  for (std::int64_t r = 0; r < area.rows; ++r) {
    std::uint8_t* const to = strip + r * row_bytes;
    const std::int64_t row = area.row + r * area.row_step;
    if (row < 0 || row >= w.in_h || inside_end == left) {
      pad(to, area.columns);
      continue;
    }
    pad(to, left);
    const auto* from = in.at<const std::uint8_t>(area.image * w.in_h + row, area.column + left * step) + first_channel;
    copy_pixels(from, step * in.pixel_pitch, depth, inside_end - left, to + left * bytes);
    pad(to + inside_end * bytes, area.columns - inside_end);
  }
}

/// Runs the tiles of a unit whose strip is filled: pixels split evenly, across output rows.
void run_tiles(const KernelCall& call, const TileTable& table, const StripPlan& plan, const OutArea& area, const std::uint8_t* strip,
               const Block& block, const TileJob& job) noexcept {
  const Window& w = call.parameters<IntegerConvolutionParameters>().window;
  const std::int64_t pixels = area.rows.size() * area.columns.size(), count = ceil_div(pixels, table.rows);
  const std::int64_t pixel_step = (plan.columns_apart ? 1 : w.stride_w) * plan.depth * kWord;
  const std::int64_t row_step = (plan.rows_apart ? 1 : w.stride_h) * plan.in_columns * plan.depth * kWord;
  PixelWalk walk(call, area.image * w.out_h + area.rows.begin, area.columns.begin, area.columns, block.channel);
  const std::uint8_t* row_start = strip;
  const std::uint8_t* a = strip;
  for (std::int64_t tile = 0; tile < count; ++tile) {
    TileRows rows;
    rows.count = static_cast<int>(even_part({0, pixels}, tile, count).size());
    a = walk.set_tile(
        a, pixel_step, [&]() noexcept { return row_start += row_step; }, rows);
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
  set_segments(w, plan, strips.segment_offsets(0));
  for (std::int64_t s = 0; s < plan.segments; ++s) strips.segment_offsets(0)[s] *= kWord;
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = cut.units[unit];
    const OutArea area = areas[place.run];
    const Block block = cut.blocks[place.block];
    auto* const strip = reinterpret_cast<std::uint8_t*>(strips.strip(thread));
    if (!strips.holds(thread, block.group * areas.count() + place.run)) {
      for_each_area(w, area, plan, [&](const StripArea& part, std::int64_t first) noexcept {
        fill_bytes(call.inputs[0].view, w, part, block.group * conv.group_depth(), conv.group_depth(), plan.in_columns * plan.depth * kWord,
                   zero, strip + first * plan.depth * kWord);
      });
    }
    TileJob job = job_of(call, block, terms);
    job.segment_offsets = strips.segment_offsets(0);
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * plan.depth;
    run_tiles(call, table, plan, area, strip, block, job);
  });
  finish_floats(call, table.isa);
}

}  // namespace sluice::kernels::integer
