#include "src/kernels/weighted/pointwise.h"

#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {
namespace {

/// Which input pixel an output pixel reads. Dense layers read the pixel of the same number.
struct Reading {
  std::int64_t in_rows = 1;  // of an image; 1 with stride 1 makes input row = output row
  std::int64_t out_rows = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t depth = 0;  // K of one group
  std::int64_t outputs = 0;
  std::int64_t outputs_per_group = 0;
};

/// How a step is cut: blocks of panels times runs of tiles. The pixels are split evenly over all tiles.
struct Cut {
  Blocks blocks;
  std::int64_t pixels;
  std::int64_t tiles;
  UnitGrid units;
};

Cut cut_step(const KernelCall& call, const Reading& reading, int tile_rows, int threads) noexcept {
  const std::int64_t pixels = call.rows.size() * call.outputs[0].view.pixels;
  std::int64_t tiles = ceil_div(pixels, tile_rows);
  const bool by_pixels = threads > 1 && tiles >= threads && shares_pixels(*call.graph, *call.node, {call.rows, call.channels, threads});
  if (by_pixels) tiles = std::min(pixels, ceil_div(tiles, threads) * threads);
  // A single tile reads each weight once, so nothing is gained by keeping a block in cache.
  const std::int64_t block_bytes = tiles == 1 ? INT64_MAX / 2 : tiles <= kFewTiles ? kSmallBlockBytes : kBlockBytes;
  const std::int64_t granule = pixels <= 3 ? 4 : 2;
  Blocks blocks(*call.weights[0].weight, call.channels, reading.outputs, reading.outputs_per_group, block_bytes, granule);
  if (threads > 1 && !by_pixels && blocks.count() < 8 * threads) blocks.set_count(ceil_div(blocks.count(), threads) * threads);
  UnitGrid units{.parts = by_pixels ? threads : 1, .blocks = blocks.count()};
  const std::int64_t part_bytes = pixels / units.parts * reading.depth * static_cast<std::int64_t>(sizeof(float));
  units.runs = std::clamp<std::int64_t>(part_bytes / kStripBytes, 1, tiles / units.parts);
  return {blocks, pixels, tiles, units};
}

void run(const KernelCall& call, const TileTable& tiles, const Reading& reading) noexcept {
  const Cut cut = cut_step(call, reading, tiles.rows, thread_count(call));
  const RowView& in = call.inputs[0].view;
  const std::int64_t out_w = call.outputs[0].view.pixels;
  const std::int64_t pixel_step = reading.stride_w * in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
  static constexpr std::int64_t kNoOffset = 0;
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int) noexcept {
    const UnitPlace place = cut.units[unit];
    const Block block = cut.blocks[place.block];
    TileJob job = make_job(call, block);
    job.segment_offsets = &kNoOffset;
    job.depth = reading.depth;
    const auto run = even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs);
    const NextPanels next(call, cut.blocks, place, run.size());
    const std::int64_t first = even_part({0, cut.pixels}, run.begin, cut.tiles).begin;
    OutputWalk walk(call, call.rows.begin + first / out_w, first % out_w, {0, out_w}, block.channel);
    const auto input = [&] {
      const std::int64_t row = walk.row() / reading.out_rows * reading.in_rows + walk.row() % reading.out_rows * reading.stride_h;
      return in.at<float>(row, walk.x() * reading.stride_w) + block.group * reading.depth;
    };
    const float* a = input();
    for (std::int64_t tile = run.begin; tile < run.end; ++tile) {
      TileRows rows;
      rows.count = static_cast<int>(even_part({0, cut.pixels}, tile, cut.tiles).size());
      for (int m = 0; m < rows.count; ++m) {
        rows.a[m] = a;
        a = walk.next(m, rows) ? input() : a + pixel_step;
      }
      next.set(tile - run.begin, job);
      tiles.panels(rows, job);
    }
  });
}

}  // namespace

bool reads_in_place(const model::ConvAttributes& conv) noexcept {
  const model::Window& w = conv.window;
  const bool inside = w.pad_top == 0 && w.pad_left == 0 && (w.out_h - 1) * w.stride_h < w.in_h && (w.out_w - 1) * w.stride_w < w.in_w;
  return w.taps() == 1 && inside && groups_fill_panels(conv);
}

bool pointwise_supports(const model::Graph& graph, const model::Node& node) noexcept {
  return tensors_and_weights_fit(graph, node, model::WeightLayout::kPanels) && reads_in_place(node.as<model::ConvAttributes>());
}

bool dense_supports(const model::Graph& graph, const model::Node& node) noexcept {
  return tensors_and_weights_fit(graph, node, model::WeightLayout::kPanels);
}

Bytes no_workspace(const model::Graph&, const model::Node&, const StepExtent&) noexcept { return {}; }

void run_pointwise(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.node->as<model::ConvAttributes>();
  const model::Window& w = conv.window;
  run(call, tiles,
      {.in_rows = w.in_h,
       .out_rows = w.out_h,
       .stride_h = w.stride_h,
       .stride_w = w.stride_w,
       .depth = conv.in_channels / conv.groups,
       .outputs = conv.out_channels,
       .outputs_per_group = conv.out_channels / conv.groups});
}

void run_dense(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& dense = call.node->as<model::DenseAttributes>();
  run(call, tiles, {.depth = dense.in_features, .outputs = dense.out_features, .outputs_per_group = dense.out_features});
}

}  // namespace sluice::kernels::weighted
