#include "src/kernels/weighted/pointwise.h"

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/narrow.h"

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

  std::int64_t input_row(std::int64_t row) const noexcept { return row / out_rows * in_rows + row % out_rows * stride_h; }
};

Reading reading_of(const ConvolutionParameters& conv) noexcept {
  const Window& w = conv.window;
  return {.in_rows = w.in_h,
          .out_rows = w.out_h,
          .stride_h = w.stride_h,
          .stride_w = w.stride_w,
          .depth = conv.in_channels / conv.groups,
          .outputs = conv.out_channels,
          .outputs_per_group = conv.out_channels / conv.groups};
}

/// How a step is cut: blocks of panels times runs of tiles. The pixels are split evenly over all tiles. Where sums are long, all tiles of a
/// unit first do one part of the depth, then the next: the same chains, and what is in use of the weights stays small. The parts of a chain
/// of steps are cut alike: `depths` alone follows from the products that a step adds.
struct PointwiseCut {
  Blocks blocks;
  std::int64_t pixels;
  std::int64_t tiles;
  UnitGrid units;
  std::int64_t depths;
  bool short_sums;
  bool columns;  // pixels are the lanes
};

// Two panels of so many inputs are 128 KiB. With all 3072 of a transformer's at once, the inputs, the block in use and the block that is
// fetched crowd each other out of L2 (84 % of the peak became 96 at 64 rows, weights from memory).
constexpr std::int64_t kLongDepth = 1024;
constexpr std::int64_t kTilesWithSums = 16;  // their sums take 36 KiB of the stack

/// Rows that lie so many bytes apart share two of a first cache's 64 sets: half of a tile's 14 and the weights fill 8 ways.
constexpr std::int64_t kCrowdingPitch = 2048;

/// Do all pixels lie as those of one row would?
bool rows_are_one(const KernelCall& call, const Reading& reading) noexcept {
  const auto follow_each_other = [](const RowView& view) {
    return view.ring_rows == 0 && view.row_pitch == view.pixels * view.pixel_pitch;
  };
  const bool residual = weighted_of(call).epilogue.has_residual;
  return reading.stride_h == 1 && reading.stride_w == 1 && reading.in_rows == reading.out_rows && follow_each_other(call.inputs[0].view) &&
         follow_each_other(call.outputs[0].view) && (!residual || follow_each_other(call.inputs.back().view));
}

/// Those that the step adds to each sum.
ReductionRange products_of(const KernelCall& call, const Reading& reading) noexcept {
  return !kHasSums || call.part == nullptr ? ReductionRange{0, reading.depth} : call.part->products;
}

/// Tiles of short sums keep none that are unfinished.
bool runs_short(const KernelCall& call, const Reading& reading, const TileTable& table, std::int64_t pixels) noexcept {
  if (kHasSums && call.part != nullptr) return false;
  const std::int64_t row = rows_are_one(call, reading) ? pixels : call.outputs[0].view.pixels;
  return table.runs_short(row, reading.depth, reading.outputs_per_group);
}

/// Of few outputs, or pixels leave most lanes of a panel empty.
bool runs_columns(const KernelCall& call, const Reading& reading, const TileTable& table, std::int64_t pixels) noexcept {
  if (kHasSums && call.part != nullptr) return false;
  const std::int64_t row = rows_are_one(call, reading) ? pixels : call.outputs[0].view.pixels;
  return table.runs_columns(row, reading.depth, reading.outputs);
}

/// Shorter sums take less time than the begin and end of a tile of three panels, and few pixels leave such tiles less full than those of four.
constexpr std::int64_t kLeastDepthOfThrees = 12;
constexpr std::int64_t kLeastPixelsOfThrees = 64, kLeastCrowdedPixelsOfThrees = 48;

/// Tiles of few rows load more weights and fewer inputs. That is better where the rows push each other out of the first cache (14x14,
/// 1024 to 256 went from 74 to 97 % of the peak) and where weights cost no more than inputs. A single tile waits for its weights, and a
/// slice of fewer panels has too few chains: tiles of all rows gather crowded inputs (tile.cc). Short sums have tiles of their own
/// (tile.h).
int rows_of_tile(const KernelCall& call, const Reading& reading, const TileTable& table, std::int64_t pixels) noexcept {
  const std::int64_t panels = ceil_div(std::min(call.channels.size(), reading.outputs_per_group), std::int64_t{kPanelLanes});
  if (pixels <= table.rows) return table.rows;
  const bool crowded = reading.stride_w * call.inputs[0].view.pixel_pitch % kCrowdingPitch == 0;
  const std::int64_t least = crowded ? kLeastCrowdedPixelsOfThrees : kLeastPixelsOfThrees;
  const bool threes = reading.depth >= kLeastDepthOfThrees && pixels >= least && table.runs_in_threes(panels);
  if (threes) return table.rows_of_three;
  if (crowded && table.few_rows > 1 && panels > 3) return table.few_rows;
  return runs_short(call, reading, table, pixels) ? table.short_rows : table.rows;
}

PointwiseCut cut_step(const KernelCall& call, const Reading& reading, const TileTable& table, int threads) noexcept {
  const std::int64_t pixels = call.rows.size() * call.outputs[0].view.pixels;
  const bool columns = runs_columns(call, reading, table, pixels);
  const int tile_rows = columns ? table.column_rows : rows_of_tile(call, reading, table, pixels);
  std::int64_t tiles = ceil_div(pixels, tile_rows);
  const bool by_pixels = threads > 1 && tiles >= threads && shares_pixels(weighted_of(call), {call.rows, call.channels, threads});
  if (by_pixels) tiles = std::min(pixels, ceil_div(tiles, threads) * threads);
  // A single tile reads each weight once, so nothing is gained by keeping a block in cache.
  // Narrow panels are widened a granule at a time, and stay so for the runs of a block.
  const std::int64_t block_bytes = table.widen != nullptr             ? 1
                                   : tiles == 1                       ? INT64_MAX / 2
                                   : pixels <= kFewTiles * table.rows ? kSmallBlockBytes
                                                                      : kBlockBytes;
  const std::int64_t most = tile_rows == table.rows_of_three ? 3 : tile_rows <= table.few_rows || pixels <= 3 ? kMostGranule : 2;
  const std::int64_t panels = panels_of_channels(call.channels, reading.outputs_per_group).size();
  const std::int64_t granule =
      by_pixels ? most : granule_for_threads(panels, most, std::min<std::int64_t>(pixels <= 3 ? 1 : 2, most), threads);
  Blocks blocks(weighted_of(call).panels, call.channels, reading.outputs, reading.outputs_per_group, block_bytes, granule);
  if (!by_pixels) blocks.share(threads);
  UnitGrid units{.parts = by_pixels ? threads : 1, .blocks = blocks.count()};
  const std::int64_t part_bytes = pixels / units.parts * reading.depth * static_cast<std::int64_t>(sizeof(float));
  units.runs = std::clamp<std::int64_t>(part_bytes / kStripBytes, 1, tiles / units.parts);
  // A part of narrow panels is widened once for the tiles that wait together: shorter runs would widen it again for each few tiles.
  if (table.widen != nullptr) units.runs = ceil_div(ceil_div(tiles, units.parts), std::int64_t{kHeldTiles});
  std::int64_t depths = 1;
  // Sums have room for blocks of one granule, which so long sums give, unless groups do not let them.
  const bool granules = reading.outputs_per_group == reading.outputs && blocks.are_granules();
  if (kKeepsSums && !columns && table.widen == nullptr && reading.depth > kLongDepth && tiles / units.parts >= kTilesOfPrefetch &&
      granules) {
    depths = ceil_div(products_of(call, reading).size(), kLongDepth);
    units.runs = ceil_div(ceil_div(tiles, units.parts), kTilesWithSums);
  }
  const bool short_sums = !columns && tile_rows == table.short_rows && runs_short(call, reading, table, pixels);
  return {blocks, pixels, tiles, units, depths, short_sums, columns};
}

/// One unit: its tiles, pixel after pixel.
class PointwiseUnit {
 public:
  PointwiseUnit(const KernelCall& call, const TileTable& tiles, const Reading& reading, const PointwiseCut& cut, const UnitPlace& place,
                TileRunner runner) noexcept
      : call_(call),
        tiles_(tiles),
        runner_(runner),
        reading_(reading),
        cut_(cut),
        place_(place),
        block_(cut.blocks[place.block]),
        run_(even_part({0, cut.tiles}, place.run, cut.units.parts * cut.units.runs)),
        job_(make_job(call, block_)) {}

  void run() noexcept {
    if (kHasSums && call_.part != nullptr) return run_part();
    if (kKeepsSums && cut_.depths > 1) return run_depths();
    job_.depth = reading_.depth;
    runner_.begin(job_, block_.first_panel);
    run_tiles({0, reading_.depth}, NextPanels(call_, cut_.blocks, place_, run_.size()));
  }

 private:
  std::int64_t first_pixel() const noexcept { return even_part({0, cut_.pixels}, run_.begin, cut_.tiles).begin; }

  /// Between the depths, sums lie on the stack.
  void run_depths() noexcept {
    alignas(64) float sums[kTilesWithSums * kTileSums * 9 / 8];  // four panels of nine rows: a granule of three, and one that was left
    run_products({0, reading_.depth}, sums);
  }

  /// Sums lie block after block, in a block pixel after pixel: each tile has its place, the same in all parts.
  void run_part() noexcept {
    const std::int64_t panels_before = block_.first_panel - cut_.blocks[0].first_panel;
    const std::int64_t place = panels_before * cut_.pixels + first_pixel() * block_.panels;
    run_products(call_.part->products, call_.part->sums + place * kPanelLanes);
  }

  /// `sums`: of the unit's first tile.
  void run_products(ReductionRange products, float* sums) noexcept {
    const float* const panels = job_.panels;
    for (std::int64_t i = 0; i < cut_.depths; ++i) {
      const auto depth = even_part(products, i, cut_.depths);
      const bool last = i + 1 == cut_.depths;
      job_.depth = depth.size();
      job_.panels = panels + depth.begin * kPanelLanes;
      job_.begins = depth.begin == 0;
      job_.ends = depth.end == reading_.depth;
      const NextPanels next = last ? NextPanels(call_, cut_.blocks, place_, run_.size(), products.begin * kPanelLanes)
                                   : NextPanels(panels + depth.end * kPanelLanes, run_.size());
      run_tiles(depth, next, sums);
    }
  }

  void run_tiles(Interval<std::int64_t> depth, const NextPanels& next, float* sums = nullptr) noexcept {
    const RowView& in = call_.inputs[0].view;
    const std::int64_t out_w = rows_are_one(call_, reading_) ? cut_.pixels : call_.outputs[0].view.pixels;
    const std::int64_t pixel_step = reading_.stride_w * in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
    job_.segment_offsets = &depth.begin;
    const std::int64_t first = first_pixel();
    OutputWalk walk(call_, call_.rows.begin + first / out_w, first % out_w, {0, out_w}, block_.channel);
    const auto input = [&] {
      return in.at<float>(reading_.input_row(walk.row()), walk.x() * reading_.stride_w) + block_.group * reading_.depth;
    };
    if (cut_.short_sums || cut_.columns) {
      std::int64_t left = even_part({0, cut_.pixels}, run_.end - 1, cut_.tiles).end - first;
      for (std::int64_t tile = 0; left > 0;) {
        const std::int64_t count = std::min(left, walk.left());
        next.set_run(tile, job_);
        (cut_.columns ? tiles_.column_run : tiles_.short_run)(walk.run(input(), pixel_step, count), job_);
        tile += ceil_div(count, cut_.columns ? tiles_.column_rows : tiles_.short_rows);
        left -= count;
      }
      return;
    }
    const float* a = input();
    job_.sums = sums;
    for (std::int64_t tile = run_.begin; tile < run_.end; ++tile) {
      TileRows rows;
      rows.count = static_cast<int>(even_part({0, cut_.pixels}, tile, cut_.tiles).size());
      a = walk.set_tile(a, pixel_step, input, rows);
      next.set(tile - run_.begin, job_);
      runner_.run(rows, job_);
      if (kKeepsSums && sums != nullptr) job_.sums += rows.count * block_.panels * kPanelLanes;
    }
    runner_.finish(job_);
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  TileRunner runner_;
  const Reading& reading_;
  const PointwiseCut& cut_;
  const UnitPlace place_;
  const Block block_;
  const Interval<std::int64_t> run_;
  TileJob job_;
};

void run(const KernelCall& call, const TileTable& tiles, const Reading& reading) noexcept {
  const PointwiseCut cut = cut_step(call, reading, tiles, thread_count(call));
  const std::int64_t groups = reading.outputs / reading.outputs_per_group;
  const NarrowRooms rooms(tiles, narrow_step(weighted_of(call), groups, {call.rows, call.channels, thread_count(call)}), call.workspace);
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int thread) noexcept {
    PointwiseUnit(call, tiles, reading, cut, cut.units[unit], TileRunner(tiles, rooms, thread)).run();
  });
}

/// Groups whose lanes are pixels. All groups of a few pixels follow each other while those lie in the first cache; what the next one reads is
/// fetched meanwhile, for rows so far apart are not foreseen by the processor.
class TurnedGroups {
 public:
  /// Inputs of a unit: threads have even shares, and the same ones each time.
  static constexpr std::int64_t kUnitBytes = 64 * 1024;

  TurnedGroups(const KernelCall& call, const TileTable& tiles, const Reading& reading) noexcept
      : call_(call),
        tiles_(tiles),
        reading_(reading),
        step_(reading.stride_w * call.inputs[0].view.pixel_pitch / static_cast<std::int64_t>(sizeof(float))),
        panels_(weighted_of(call).panels, call.channels, reading.outputs, reading.outputs_per_group, 1, 1) {}

  /// Pixels that the groups read in turn: whole vectors, and two where there is room for them.
  std::int64_t held_pixels() const noexcept {
    const std::int64_t pixels = kHeldBytes / (step_ * static_cast<std::int64_t>(sizeof(float)));
    return std::max<std::int64_t>(1, pixels / tiles_.column_rows) * tiles_.column_rows;
  }

  /// Pixels `columns` of output row `row`, whose first one reads at `first`.
  void run(const float* first, std::int64_t row, Interval<std::int64_t> columns) const noexcept {
    const std::int64_t held = held_pixels();
    for (std::int64_t x = columns.begin; x < columns.end; x += held) run_groups(first + x * step_, row, x, std::min(held, columns.end - x));
  }

 private:
  static constexpr std::int64_t kHeldBytes = 16 * 1024;

  void run_groups(const float* first, std::int64_t row, std::int64_t x, std::int64_t count) const noexcept {
    const std::int64_t no_offset = 0, outputs = reading_.outputs_per_group;
    const std::int64_t first_group = call_.channels.begin / outputs;
    for (std::int64_t b = 0; b < panels_.count(); ++b) {
      const Block block = panels_[b];
      TileJob job = make_job(call_, block);
      job.segment_offsets = &no_offset;
      job.depth = reading_.depth;
      const std::int64_t end = block.channel + block.last_lanes;
      for (std::int64_t channel = block.channel, lanes; channel < end; channel += lanes) {
        const std::int64_t group = channel / outputs;
        lanes = std::min(end, (group + 1) * outputs) - channel;
        job.last_lanes = static_cast<int>(lanes);
        const bool last = b + 1 == panels_.count() && channel + lanes == end;
        job.fetch_ahead = last ? count * step_ - (group - first_group) * job.depth : job.depth;
        OutputWalk walk(call_, row, x, {0, x + count + 1}, channel);  // a row that does not end: nothing looks for the next
        tiles_.column_run(walk.run(first + group * job.depth, step_, count), job);
        job.panels += lanes;
        if (job.bias != nullptr) job.bias += lanes;
      }
    }
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const Reading& reading_;
  const std::int64_t step_;
  const Blocks panels_;
};

}  // namespace

bool reads_pixels_in_place(const Window& w) noexcept {
  const bool inside = w.pad_top == 0 && w.pad_left == 0 && (w.out_h - 1) * w.stride_h < w.in_h && (w.out_w - 1) * w.stride_w < w.in_w;
  return w.taps() == 1 && inside;
}

bool reads_in_place(const ConvolutionParameters& conv) noexcept { return reads_pixels_in_place(conv.window) && groups_fill_panels(conv); }

void run_pointwise(const KernelCall& call, const TileTable& tiles) noexcept {
  run(call, tiles, reading_of(call.parameters<ConvolutionParameters>()));
}

bool turns_groups(const ConvolutionParameters& conv, const TileTable& tiles) noexcept {
  const Window& w = conv.window;
  return reads_pixels_in_place(w) && conv.group_outputs() < kPanelLanes &&
         tiles.runs_columns(w.out_w, conv.group_depth(), conv.group_outputs());
}

void run_turned_groups(const KernelCall& call, const TileTable& tiles) noexcept {
  const Reading reading = reading_of(call.parameters<ConvolutionParameters>());
  const RowView& in = call.inputs[0].view;
  const std::int64_t out_w = call.outputs[0].view.pixels;
  const bool one_row = rows_are_one(call, reading) && in.pixels == out_w;
  const std::int64_t pixels = one_row ? call.rows.size() * out_w : out_w;
  const TurnedGroups groups(call, tiles, reading);
  if (!one_row) {
    for_each_unit(call, call.rows.size(), [&](std::int64_t unit, int) noexcept {
      const std::int64_t row = call.rows.begin + unit;
      groups.run(in.at<float>(reading.input_row(row), 0), row, {0, pixels});
    });
    return;
  }
  const float* const first = in.at<float>(call.rows.begin, 0);
  const std::int64_t held = groups.held_pixels(), runs = ceil_div(pixels, held), threads = thread_count(call);
  const std::int64_t of_thread = ceil_div(pixels * in.pixel_pitch, TurnedGroups::kUnitBytes * threads);
  const std::int64_t units = std::min(runs, of_thread * threads);
  for_each_unit(call, units, [&](std::int64_t unit, int) noexcept {
    const auto of_unit = even_part({0, runs}, unit, units);
    groups.run(first, call.rows.begin, {of_unit.begin * held, std::min(pixels, of_unit.end * held)});
  });
}

void run_dense(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& dense = call.parameters<DenseParameters>();
  run(call, tiles, {.depth = dense.in_features, .outputs = dense.out_features, .outputs_per_group = dense.out_features});
}

}  // namespace sluice::kernels::weighted
