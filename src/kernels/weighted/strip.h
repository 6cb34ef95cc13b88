// Zero-padded copies of the input rows that a run of output rows needs, one at a time for each compute thread, in the workspace.
//
//     workspace:  | segment offsets | thread 0: key, strip | thread 1: key, strip | ...
//
//     strip:      0 0 0 0 0 0 0 0   <- padding rows and columns are zeros, so the inner loop never asks where it is
//                 0 x x x x x x 0      a kernel row of an undilated convolution is one run of kernel_w * channels floats
//                 0 x x x x x x 0
//
// The key says which strip the thread's memory holds, so that one strip serves all blocks of a step that follow each other.
#pragma once

#include <cstdint>

#include "sluice/kernels/kernel.h"

namespace sluice::kernels::weighted {

/// A rectangle of the padded input of one image: first row and column may lie in the padding (negative).
struct StripArea {
  std::int64_t image = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// How a step's output is cut into strips. All strips have the same pitch.
struct StripPlan {
  std::int64_t out_rows = 1;  // output rows and columns of a full strip
  std::int64_t out_columns = 1;
  std::int64_t in_rows = 1;  // input rows and columns that a full strip holds
  std::int64_t in_columns = 1;
  std::int64_t depth = 0;  // floats of a pixel in the strip
  std::int64_t segments = 1;

  std::int64_t strip_floats() const noexcept { return in_rows * in_columns * depth; }
};

/// An output rectangle of one image, the work of one unit.
struct OutArea {
  std::int64_t image = 0;
  RowRange rows;  // within the image
  Interval<std::int64_t> columns;
};

/// The output areas of a step: each image's rows cut evenly, then columns.
class OutAreas {
 public:
  OutAreas(RowRange rows, std::int64_t out_h, std::int64_t out_w, std::int64_t area_rows, std::int64_t area_columns) noexcept;
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

/// Workspace of `threads` strips.
Bytes strip_workspace(const StripPlan& plan, int threads) noexcept;

/// The workspace of a step, seen as its parts.
class Strips {
 public:
  Strips(std::byte* workspace, const StripPlan& plan, int threads) noexcept;
  std::int64_t* segment_offsets() const noexcept { return reinterpret_cast<std::int64_t*>(workspace_); }
  float* strip(int thread) const noexcept;
  /// Does `thread` hold strip `key`? Remembers that it will.
  bool holds(int thread, std::int64_t key) const noexcept;

 private:
  std::byte* key_of(int thread) const noexcept;

  std::byte* workspace_;
  std::uint64_t table_bytes_;
  std::uint64_t thread_bytes_;
};

/// Copies channels [first_channel, + plan.depth) of `area` of an image of `in_h` rows to `strip`.
void fill_strip(const RowView& in, std::int64_t in_h, const StripArea& area, std::int64_t first_channel, const StripPlan& plan,
                float* strip) noexcept;

}  // namespace sluice::kernels::weighted
