// Zero-padded copies of the input rows that a run of output rows needs, one at a time for each compute thread, in the workspace.
//
//     workspace:  | thread 0: key, segment offsets, strip | thread 1: key, segment offsets, strip | ...
//
//     strip:      0 0 0 0 0 0 0 0   <- padding rows and columns are zeros, so the inner loop never asks where it is
//                 0 x x x x x x 0      a kernel row of an undilated convolution is one run of kernel_w * channels floats
//                 0 x x x x x x 0
//
// A dilated convolution whose taps lie far apart reads few of the rows between them: then a strip holds, one tap after the other, the rows
// that the tap reads, and columns likewise (`rows_apart`, `columns_apart`).
//
// The key says which strip the thread's memory holds, so that one strip serves all blocks of a step that follow each other.
#pragma once

#include <cstdint>

#include "sluice/kernels/call.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {

/// A rectangle of the padded input of one image: first row and column may lie in the padding (negative).
struct StripArea {
  std::int64_t image = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_step = 1;  // between neighbours in the strip
  std::int64_t column_step = 1;
};

/// How a step's output is cut into strips. All strips have the same pitch.
struct StripPlan {
  std::int64_t out_rows = 1;  // output rows and columns of a full strip
  std::int64_t out_columns = 1;
  std::int64_t in_rows = 1;  // input rows and columns that a full strip holds
  std::int64_t in_columns = 1;
  std::int64_t depth = 0;  // floats of a pixel in the strip
  std::int64_t gap = 0;    // and those behind it, which nobody reads
  std::int64_t segments = 1;
  bool rows_apart = false;  // tap by tap, no rows between
  bool columns_apart = false;

  std::int64_t pitch() const noexcept { return depth + gap; }
  std::int64_t strip_floats() const noexcept { return in_rows * in_columns * pitch(); }
};

/// Which way a window goes: from a strip's inputs to fewer outputs (convolution), or to more (transposed convolution). kColumns: a
/// convolution for which neighbouring columns are lanes, so that a tap's columns lie behind each other whatever the stride.
enum class Direction { kForward, kColumns, kTransposed };

/// Cuts a step's rows into strips of `depth` floats a pixel, with `gap` floats behind each pixel: as many rows as fit `kStripBytes`; if not
/// even one does, fewer columns, but enough for full tiles. With threads, rather fewer rows than an uneven share. `blocks` is how often each strip is used.
StripPlan plan_strips(const Window& w, std::int64_t depth, const StepExtent& extent, std::int64_t blocks,
                      Direction direction = Direction::kForward, std::int64_t gap = 0) noexcept;

/// How a step is cut into units. A function of parameters and extent alone, so that `workspace` and `run` agree.
struct StripCut {
  StripPlan strip;
  Blocks blocks;
  UnitGrid units;  // a run is an output area
};
StripCut cut_strips(const ConvolutionParameters& conv, const StepExtent& extent, Direction direction) noexcept;

/// The distances, in floats, from an output pixel's first input to each segment: kernel rows, or single taps if those are dilated.
void set_segments(const Window& w, const StripPlan& plan, std::int64_t* offsets) noexcept;

/// An output rectangle of one image, the work of one unit.
struct OutArea {
  std::int64_t image = 0;
  RowRange rows;  // within the image
  Interval<std::int64_t> columns;
};

/// The output areas of a step: each image's rows cut evenly, then columns.
class OutAreas {
 public:
  OutAreas(RowRange rows, const Window& w, const StripPlan& plan) noexcept;
  std::int64_t count() const noexcept { return row_parts_ * column_parts_; }
  OutArea operator[](std::int64_t i) const noexcept;

 private:
  RowRange of_image(std::int64_t image) const noexcept;

  RowRange rows_;
  std::int64_t out_h_;
  std::int64_t out_w_;
  std::int64_t area_rows_;
  std::int64_t column_parts_;
  std::int64_t row_parts_ = 0;
};

/// Calls body(area, first) for the inputs that an output area reads: all of them, or those of one tap after the other; `first` counts the
/// pixels of the strip before them.
template <class Body>
void for_each_area(const Window& w, const OutArea& area, const StripPlan& plan, const Body& body) noexcept {
  const auto inside = [](std::int64_t outputs, std::int64_t stride, std::int64_t kernel, std::int64_t dilation) {
    return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
  };
  const std::int64_t out_rows = area.rows.size(), out_columns = area.columns.size();
  StripArea part{area.image, area.rows.begin * w.stride_h - w.pad_top, area.columns.begin * w.stride_w - w.pad_left,
                 inside(out_rows, w.stride_h, w.kernel_h, w.dilation_h), inside(out_columns, w.stride_w, w.kernel_w, w.dilation_w)};
  const StripArea whole = part;
  for (std::int64_t ky = 0; ky < (plan.rows_apart ? w.kernel_h : 1); ++ky)
    for (std::int64_t kx = 0; kx < (plan.columns_apart ? w.kernel_w : 1); ++kx) {
      if (plan.rows_apart) {
        part.row = whole.row + ky * w.dilation_h;
        part.rows = out_rows;
        part.row_step = w.stride_h;
      }
      if (plan.columns_apart) {
        part.column = whole.column + kx * w.dilation_w;
        part.columns = out_columns;
        part.column_step = w.stride_w;
      }
      body(part, ky * plan.out_rows * plan.in_columns + kx * plan.out_columns);
    }
}

/// Workspace of `threads` strips.
Bytes strip_workspace(const StripPlan& plan, int threads) noexcept;

/// The workspace of a step, seen as its parts.
class Strips {
 public:
  Strips(std::byte* workspace, const StripPlan& plan, int threads) noexcept;
  /// A table of `plan.segments` offsets; kernels whose threads need no tables of their own use that of thread 0.
  std::int64_t* segment_offsets(int thread) const noexcept { return reinterpret_cast<std::int64_t*>(key_of(thread) + kLine); }
  float* strip(int thread) const noexcept;
  /// Does `thread` hold strip `key`? Remembers that it will.
  bool holds(int thread, std::int64_t key) const noexcept;

 private:
  static constexpr std::uint64_t kLine = 64;

  std::byte* key_of(int thread) const noexcept { return workspace_ + static_cast<std::uint64_t>(thread) * thread_bytes_; }

  std::byte* workspace_;
  std::uint64_t table_bytes_;
  std::uint64_t thread_bytes_;
};

/// Copies channels [first_channel, + plan.depth) of `area` to `strip`.
void fill_strip(const RowView& in, const Window& w, const StripArea& area, std::int64_t first_channel, const StripPlan& plan,
                float* strip) noexcept;

/// A unit of a step whose strip is filled.
struct StripUnit {
  const KernelCall& call;
  const Window& window;
  const StripPlan& plan;
  const OutArea& area;
  const float* strip;
  const Blocks& blocks;
  const UnitPlace& place;
};

/// Calls run_tile(rows, job) over the unit: pixels split evenly over tiles of at most `tile_rows`, across output rows.
template <class RunTile>
void for_each_tile(const StripUnit& unit, TileJob job, int tile_rows, const RunTile& run_tile) noexcept {
  const Window& w = unit.window;
  const OutArea& area = unit.area;
  const std::int64_t pixels = area.rows.size() * area.columns.size();
  const std::int64_t count = ceil_div(pixels, tile_rows);
  const std::int64_t pixel_step = (unit.plan.columns_apart ? 1 : w.stride_w) * unit.plan.pitch();
  const std::int64_t row_step = (unit.plan.rows_apart ? 1 : w.stride_h) * unit.plan.in_columns * unit.plan.pitch();
  OutputWalk walk(unit.call, area.image * w.out_h + area.rows.begin, area.columns.begin, area.columns,
                  unit.blocks[unit.place.block].channel);
  const NextPanels next(unit.call, unit.blocks, unit.place, count);
  const float* row_start = unit.strip;
  const float* a = unit.strip;
  for (std::int64_t tile = 0; tile < count; ++tile) {
    const auto part = even_part({0, pixels}, tile, count);
    TileRows rows;
    rows.count = static_cast<int>(part.size());
    a = walk.set_tile(
        a, pixel_step, [&] { return row_start += row_step; }, rows);
    next.set(tile, job);
    run_tile(rows, job);
  }
}

}  // namespace sluice::kernels::weighted
