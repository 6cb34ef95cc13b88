#include "src/kernels/integer/matrix.h"

#include "src/kernels/elementwise/runs.h"

namespace sluice::kernels::integer {
namespace {

using weighted::Blocks;
using weighted::UnitGrid;
using weighted::UnitPlace;

/// Which input pixel an output pixel reads. Dense layers read the pixel of the same number.
struct Reading {
  std::int64_t in_rows = 1;  // of an image; 1 with stride 1 makes input row = output row
  std::int64_t out_rows = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t depth = 0;  // of one group
  std::int64_t outputs = 0;
  std::int64_t outputs_per_group = 0;
};

/// Do all pixels lie as those of one row would?
bool rows_are_one(const KernelCall& call, const Reading& reading) noexcept {
  const auto follow_each_other = [](const RowView& view) {
    return view.ring_rows == 0 && view.row_pitch == view.pixels * view.pixel_pitch;
  };
  const bool residual = weighted_of(call).epilogue.has_residual;
  return reading.stride_h == 1 && reading.stride_w == 1 && reading.in_rows == reading.out_rows && follow_each_other(call.inputs[0].view) &&
         follow_each_other(call.outputs[0].view) && (!residual || follow_each_other(call.inputs.back().view));
}

/// Should threads share a step by pixels rather than by blocks? As weighted::shares_pixels.
bool shares_pixels(const KernelCall& call, const Blocks& blocks, const Reading& reading, std::int64_t pixels) noexcept {
  const std::int64_t weights = blocks.panels() * static_cast<std::int64_t>(weighted_of(call).panels.panel_bytes.count());
  const std::int64_t moved = pixels * (reading.depth * reading.outputs / reading.outputs_per_group + call.channels.size());
  return weights <= 4 * moved;
}

/// How a step is cut: blocks of panels times runs of tiles. The pixels are split evenly over all tiles.
struct Cut {
  Blocks blocks;
  std::int64_t pixels;
  std::int64_t tiles;
  UnitGrid units;
};

Cut cut_step(const KernelCall& call, const Reading& reading, const TileTable& table, int threads) noexcept {
  const std::int64_t pixels = call.rows.size() * call.outputs[0].view.pixels;
  std::int64_t tiles = ceil_div(pixels, table.rows);
  // A single tile reads each weight once, so nothing is gained by keeping a block in cache.
  const std::int64_t block_bytes = tiles == 1                                   ? INT64_MAX / 2
                                   : pixels <= weighted::kFewTiles * table.rows ? weighted::kSmallBlockBytes
                                                                                : weighted::kBlockBytes;
  const std::int64_t panels = panels_of_channels(call.channels, reading.outputs_per_group).size();
  const std::int64_t granule = pixels <= 3 ? weighted::granule_for_threads(panels, 4, 1, threads) : 2;
  Blocks blocks(weighted_of(call).panels, call.channels, reading.outputs, reading.outputs_per_group, block_bytes, granule);
  const bool by_pixels = threads > 1 && tiles >= threads && shares_pixels(call, blocks, reading, pixels);
  if (by_pixels) tiles = std::min(pixels, ceil_div(tiles, threads) * threads);
  if (!by_pixels) blocks.share(threads);
  UnitGrid units{.parts = by_pixels ? threads : 1, .blocks = blocks.count()};
  units.runs = std::clamp<std::int64_t>(pixels / units.parts * reading.depth / weighted::kStripBytes, 1, tiles / units.parts);
  return {blocks, pixels, tiles, units};
}

/// One unit: its tiles, pixel after pixel.
void run_unit(const KernelCall& call, const TileTable& table, const Reading& reading, const Cut& cut, const Terms& terms,
              const UnitPlace& place) noexcept {
  const Block block = cut.blocks[place.block];
  const auto run = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
  const std::int64_t no_offset = 0;
  TileJob job = job_of(call, block, terms);
  job.segment_offsets = &no_offset;
  job.depth = ceil_div(reading.depth, 4);
  const RowView& in = call.inputs[0].view;
  const std::int64_t out_w = rows_are_one(call, reading) ? cut.pixels : call.outputs[0].view.pixels;
  const std::int64_t first = even_part({0, cut.pixels}, run.begin, cut.tiles).begin;
  PixelWalk walk(call, call.rows.begin + first / out_w, first % out_w, {0, out_w}, block.channel);
  const auto input = [&]() noexcept {
    const std::int64_t row = walk.row() / reading.out_rows * reading.in_rows + walk.row() % reading.out_rows * reading.stride_h;
    return in.at<const std::uint8_t>(row, walk.x() * reading.stride_w) + block.group * reading.depth;
  };
  const std::uint8_t* a = input();
  const NextBlock next(call, cut.blocks, place, run.size());
  for (std::int64_t tile = run.begin; tile < run.end; ++tile) {
    TileRows rows;
    rows.count = static_cast<int>(even_part({0, cut.pixels}, tile, cut.tiles).size());
    a = walk.set_tile(a, reading.stride_w * in.pixel_pitch, input, rows);
    next.set(tile - run.begin, job);
    table.tile(rows, job);
  }
}

void run(const KernelCall& call, const TileTable& table, const Reading& reading) noexcept {
  const Cut cut = cut_step(call, reading, table, thread_count(call));
  const Terms terms = terms_of(call, call.workspace);
  for_each_unit(call, cut.units.count(),
                [&](std::int64_t unit, int) noexcept { run_unit(call, table, reading, cut, terms, cut.units[unit]); });
  finish_floats(call, table.isa);
}

Isa isa_of(DotIsa isa) noexcept {
  switch (isa) {
    case DotIsa::kAvx512:
    case DotIsa::kAvx512Vnni:
      return Isa::kAvx512;
    case DotIsa::kAvx2:
    case DotIsa::kAvx2Vnni:
      return Isa::kAvx2;
    case DotIsa::kNeon:
    case DotIsa::kNeonDot:
      return Isa::kNeon;
    case DotIsa::kScalar:
      break;
  }
  return Isa::kScalar;
}

/// Values for a step's channels, and those that a panel of a group may have behind the last.
std::int64_t lanes_of(ChannelRange channels) noexcept { return (ceil_div(channels.size(), kPanelLanes) + 1) * kPanelLanes; }

}  // namespace

void finish_floats(const KernelCall& call, DotIsa isa) noexcept {
  const RowView& out = call.outputs[0].view;
  const operators::IntegerEpilogue& epilogue = weighted_of(call).epilogue;
  const bool activates = epilogue.activation.function != Function::kNone;
  if (out.dtype != DType::kF32 || (!activates && epilogue.run_time == 0)) return;
  const elementwise::RunTable& runs = elementwise::run_table(isa_of(isa));
  const float* const bias = epilogue.run_time == 0 ? nullptr : reinterpret_cast<const float*>(call.weights[2].data) + call.channels.begin;
  for_each_unit(call, call.rows.size(), [&](std::int64_t i, int) noexcept {
    for (std::int64_t x = 0; x < out.pixels; ++x) {
      float* const values = out.at<float>(call.rows.begin + i, x) + call.channels.begin;
      for (std::int64_t c = 0; bias != nullptr && c < call.channels.size(); ++c) values[c] += bias[c];
      if (activates) runs.unary(epilogue.activation, values, values, call.channels.size());
    }
  });
}

Bytes terms_workspace(const IntegerWeightedParameters& weighted, ChannelRange channels) noexcept {
  if (weighted.epilogue.run_time == 0) return Bytes();
  const std::int64_t lanes = lanes_of(channels);
  return Bytes(static_cast<std::uint64_t>(lanes) * (sizeof(std::int32_t) + sizeof(float)));
}

Terms terms_of(const KernelCall& call, std::byte* room) noexcept {
  const auto* const sums = reinterpret_cast<const std::int32_t*>(call.weights[1].data);
  if (weighted_of(call).epilogue.run_time == 0)
    return {sums, call.weights.size() > 2 ? reinterpret_cast<const float*>(call.weights[2].data) : nullptr};
  const ChannelRange channels = call.channels;
  const std::int64_t lanes = lanes_of(channels);
  const std::uint32_t zero = zero_of(call);
  auto* const bias = reinterpret_cast<std::int32_t*>(room);
  auto* const multipliers = reinterpret_cast<float*>(bias + lanes);
  std::fill_n(bias, lanes, 0);
  for (std::int64_t n = 0; n < channels.size(); ++n)
    bias[n] = static_cast<std::int32_t>(0u - zero * static_cast<std::uint32_t>(sums[channels.begin + n]));
  if (call.inputs.size() < 3) return {bias, nullptr, channels.begin};
  const auto* const scale = call.inputs[2].view.at<const float>(0);
  const std::int64_t step = call.inputs[2].shape.element_count() == 1 ? 0 : 1;
  std::fill_n(multipliers, lanes, 0.0f);
  for (std::int64_t n = 0; n < channels.size(); ++n) multipliers[n] = scale[(channels.begin + n) * step];
  return {bias, multipliers, channels.begin};
}

bool groups_fill_panels(const IntegerConvolutionParameters& conv) noexcept {
  return conv.groups == 1 || conv.group_outputs() >= kPanelLanes;
}

bool reads_in_place(const IntegerConvolutionParameters& conv) noexcept {
  const Window& w = conv.window;
  const bool inside = w.pad_top == 0 && w.pad_left == 0 && (w.out_h - 1) * w.stride_h < w.in_h && (w.out_w - 1) * w.stride_w < w.in_w;
  return w.taps() == 1 && inside && groups_fill_panels(conv);
}

Bytes pointwise_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return terms_workspace(conv.weighted, extent.channels);
}
Bytes dense_workspace(const IntegerDenseParameters& dense, const StepExtent& extent) noexcept {
  return terms_workspace(dense.weighted, extent.channels);
}

void run_pointwise(const KernelCall& call, const TileTable& table) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const Window& w = conv.window;
  run(call, table,
      {.in_rows = w.in_h,
       .out_rows = w.out_h,
       .stride_h = w.stride_h,
       .stride_w = w.stride_w,
       .depth = conv.group_depth(),
       .outputs = conv.out_channels,
       .outputs_per_group = conv.group_outputs()});
}

void run_dense(const KernelCall& call, const TileTable& table) noexcept {
  const auto& dense = call.parameters<IntegerDenseParameters>();
  run(call, table, {.depth = dense.in_features, .outputs = dense.out_features, .outputs_per_group = dense.out_features});
}

}  // namespace sluice::kernels::integer
