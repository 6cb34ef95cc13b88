// Convolutions that read their inputs where they lie. Outputs whose windows meet the same part of the kernel form rectangles:
//
//     +---+-----------+---+
//     | a |     b     | c |     rows and columns of the border leave out the taps that meet padding
//     +---+-----------+---+
//     | d |           | f |     rows also part where a ring of input rows wraps within a window
//     |   |   whole   |   |
//     +---+-----------+---+     all tiles of a rectangle have the same segments; the whole windows come first, for only their tiles are as
//     | g |     h     | i |     long as it takes to fetch the next block
//     +---+-----------+---+
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/inside.h"

namespace sluice::kernels::weighted {
namespace {

constexpr auto kFloatSize = static_cast<std::int64_t>(sizeof(float));

/// How a step is cut: blocks of panels, and with threads parts of the pixels where those are the better share: rows, or columns where the
/// rows are few, as in one dimension.
struct Cut {
  Blocks blocks;
  UnitGrid units;
  bool by_columns;
};

Cut cut_step(const KernelCall& call) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const int threads = thread_count(call);
  const std::int64_t rows = call.rows.size();
  const bool even = rows % threads == 0 || rows >= 8 * threads;
  const auto blocks_of = [&](std::int64_t bytes) {
    return Blocks(conv.weighted.panels, call.channels, conv.out_channels, conv.out_channels / conv.groups, bytes, 2);
  };
  const bool wide = conv.window.out_w >= 2 * kMaxTileRows * threads;
  const bool by_pixels = threads > 1 && (even || wide) &&
                         (shares_pixels(conv.weighted, {call.rows, call.channels, threads}) ||
                          blocks_are_uneven(blocks_of(kBlockBytes), rows * conv.window.out_w, threads));
  const std::int64_t parts = by_pixels ? threads : 1;
  // Few tiles earn no large block: the next is fetched while this one is used, but the first makes its first tile wait.
  const bool few = (by_pixels || threads == 1) && rows * conv.window.out_w / parts <= kFewTiles * kMaxTileRows;
  Blocks blocks = blocks_of(few ? kSmallBlockBytes : kBlockBytes);
  if (!by_pixels) blocks.share(threads);
  return {blocks, {.parts = parts, .blocks = blocks.count(), .runs = 1}, by_pixels && !even};
}

/// Outputs whose windows meet the same taps, and the distances between their input rows.
struct Rectangle {
  RowRange rows;
  Interval<std::int64_t> columns;
  InputRows inputs;  // of its first row
  Interval<std::int64_t> taps_x;

  std::int64_t pixels() const noexcept { return rows.size() * columns.size(); }
  std::int64_t taps() const noexcept { return inputs.taps.size() * taps_x.size(); }
};

bool same_windows(const InputRows& a, const InputRows& b) noexcept {
  return a.taps == b.taps && std::equal(a.offsets, a.offsets + a.taps.size(), b.offsets);
}

/// Calls body(rectangle) for all rectangles of `rows` and `columns`.
template <class Body>
void for_each_rectangle(const RowView& in, const Window& w, RowRange rows, Interval<std::int64_t> columns, const Body& body) noexcept {
  const auto taps_of = [&](std::int64_t x) { return taps_inside(x * w.stride_w - w.pad_left, w.kernel_w, w.dilation_w, w.in_w); };
  std::int64_t row = rows.begin;
  while (row < rows.end) {
    std::int64_t offsets[kMostTapsInPlace], others[kMostTapsInPlace];
    Rectangle part{.rows = {row, row + 1}, .inputs = input_rows(in, w, row, offsets)};
    while (part.rows.end < rows.end && same_windows(part.inputs, input_rows(in, w, part.rows.end, others))) ++part.rows.end;
    for (std::int64_t x = columns.begin; x < columns.end; x = part.columns.end) {
      part.taps_x = taps_of(x);
      part.columns = {x, x + 1};
      while (part.columns.end < columns.end && taps_of(part.columns.end) == part.taps_x) ++part.columns.end;
      body(part);
    }
    row = part.rows.end;
  }
}

/// One unit: a block of panels and a part of the rows or columns.
class InPlaceUnit {
 public:
  InPlaceUnit(const KernelCall& call, const TileTable& tiles, const Cut& cut, const UnitPlace& place) noexcept
      : call_(call),
        tiles_(tiles),
        conv_(call.parameters<ConvolutionParameters>()),
        w_(conv_.window),
        in_(call.inputs[0].view),
        cut_(cut),
        place_(place),
        block_(cut.blocks[place.block]),
        rows_(cut.by_columns ? call.rows : even_part({call.rows.begin, call.rows.end}, place.run, cut.units.parts)),
        columns_(cut.by_columns ? even_part({0, w_.out_w}, place.run, cut.units.parts) : Interval<std::int64_t>{0, w_.out_w}),
        depth_(conv_.in_channels / conv_.groups),
        products_(w_.taps() * depth_) {}

  void run() const noexcept {
    std::int64_t whole_tiles = 0;
    for_each_rectangle(in_, w_, rows_, columns_, [&](const Rectangle& part) { whole_tiles += is_whole(part) ? tiles_of(part) : 0; });
    const NextPanels next(call_, cut_.blocks, place_, whole_tiles);
    std::int64_t tile = 0;
    for_each_rectangle(in_, w_, rows_, columns_, [&](const Rectangle& part) {
      if (is_whole(part)) tile += run_rectangle(part, &next, tile);
    });
    for_each_rectangle(in_, w_, rows_, columns_, [&](const Rectangle& part) {
      if (!is_whole(part)) run_rectangle(part, nullptr, 0);
    });
  }

 private:
  bool is_whole(const Rectangle& part) const noexcept { return part.taps() == w_.taps(); }
  /// Is each row one run?
  bool by_runs(const Rectangle& part) const noexcept {
    return tiles_.runs_short(part.columns.size(), products_, conv_.out_channels / conv_.groups);
  }
  std::int64_t tiles_of_row(const Rectangle& part) const noexcept { return ceil_div(part.columns.size(), tiles_.short_rows); }
  std::int64_t tiles_of(const Rectangle& part) const noexcept {
    return by_runs(part) ? part.rows.size() * tiles_of_row(part) : ceil_div(part.pixels(), tiles_.rows);
  }

  /// Where pixel `x` of output row `row` finds the first tap of `part`.
  const float* input(const Rectangle& part, std::int64_t row, std::int64_t x) const noexcept {
    const std::int64_t in_y = row % w_.out_h * w_.stride_h - w_.pad_top + part.inputs.taps.begin * w_.dilation_h;
    const std::int64_t in_x = x * w_.stride_w - w_.pad_left + part.taps_x.begin * w_.dilation_w;
    return in_.at<float>(row / w_.out_h * w_.in_h + in_y, in_x) + block_.group * depth_;
  }

  /// Segments are kernel rows where their taps lie side by side, else single taps. Returns how many.
  std::int64_t set_segments(const Rectangle& part, bool rows_are_runs, std::int64_t* offsets, std::int64_t* weights) const noexcept {
    const std::int64_t tap_floats = w_.dilation_w * in_.pixel_pitch / kFloatSize;
    const std::int64_t columns = rows_are_runs ? std::min<std::int64_t>(1, part.taps_x.size()) : part.taps_x.size();
    std::int64_t count = 0;
    for (std::int64_t ky = 0; ky < part.inputs.taps.size(); ++ky)
      for (std::int64_t kx = 0; kx < columns; ++kx, ++count) {
        offsets[count] = part.inputs.offsets[ky] + kx * tap_floats;
        weights[count] = ((part.inputs.taps.begin + ky) * w_.kernel_w + part.taps_x.begin + kx) * depth_ * kPanelLanes;
      }
    return count;
  }

  /// Brings pixels of the next tile's last input row, which no tile has read yet, into L2 while this one works. Small ones share lines.
  void fetch(const float* pixels, std::int64_t step, int count) const noexcept {
    if (depth_ < 16) {
      for (std::int64_t i = 0; i < count * step; i += 16) __builtin_prefetch(pixels + i, 0, 2);
      return;
    }
    for (int m = 0; m < count; ++m, pixels += step)
      for (std::int64_t k = 0; k < depth_; k += 16) __builtin_prefetch(pixels + k, 0, 2);
  }

  /// `first_tile`: the number of this rectangle's first tile, which says what part of the next block it prefetches. Returns how many there
  /// were.
  std::int64_t run_rectangle(const Rectangle& part, const NextPanels* next, std::int64_t first_tile) const noexcept {
    std::int64_t offsets[kMostTapsInPlace], weights[kMostTapsInPlace];
    const bool rows_are_runs = w_.dilation_w == 1 && in_.pixel_pitch == depth_ * kFloatSize;
    TileJob job = make_job(call_, block_);
    job.segment_offsets = offsets;
    job.segment_weights = weights;
    job.segments = set_segments(part, rows_are_runs, offsets, weights);
    job.depth = rows_are_runs ? part.taps_x.size() * depth_ : depth_;

    const std::int64_t pixel_step = w_.stride_w * in_.pixel_pitch / kFloatSize, count = tiles_of(part);
    const std::int64_t below = next == nullptr ? 0 : tiles_.rows * pixel_step + offsets[job.segments - 1];
    OutputWalk walk(call_, part.rows.begin, part.columns.begin, part.columns, block_.channel);
    if (by_runs(part)) {
      for (std::int64_t row = 0; row < part.rows.size(); ++row) {
        if (next != nullptr) next->set_run(first_tile + row * tiles_of_row(part), job);
        const float* first = input(part, part.rows.begin + row, part.columns.begin);
        tiles_.short_run(walk.run(first, pixel_step, part.columns.size()), job);
      }
      return count;
    }
    const float* a = input(part, part.rows.begin, part.columns.begin);
    for (std::int64_t tile = 0; tile < count; ++tile) {
      TileRows rows;
      rows.count = static_cast<int>(even_part({0, part.pixels()}, tile, count).size());
      const int in_this_row = static_cast<int>(std::min<std::int64_t>(rows.count, walk.left()));
      a = walk.set_tile(
          a, pixel_step, [&] { return input(part, walk.row(), part.columns.begin); }, rows);
      if (next != nullptr) {
        fetch(rows.a[0] + below, pixel_step, in_this_row);
        for (int m = in_this_row; m < rows.count; ++m) fetch(rows.a[m] + below, pixel_step, 1);
      }
      if (next != nullptr) next->set(first_tile + tile, job);
      tiles_.panels(rows, job);
    }
    return count;
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const ConvolutionParameters& conv_;
  const Window& w_;
  const RowView& in_;
  const Cut& cut_;
  const UnitPlace place_;
  const Block block_;
  const RowRange rows_;
  const Interval<std::int64_t> columns_;
  const std::int64_t depth_;
  const std::int64_t products_;  // of a whole window
};

}  // namespace

void run_in_place(const KernelCall& call, const TileTable& tiles) noexcept {
  const Cut cut = cut_step(call);
  for_each_unit(call, cut.units.count(), [&](std::int64_t unit, int) noexcept { InPlaceUnit(call, tiles, cut, cut.units[unit]).run(); });
}

}  // namespace sluice::kernels::weighted
