// How a kernel sees memory: `RowView`, a window of rows x pixels x channels on a buffer.
//
// A shape is folded to three extents, so that every kernel shares one way to walk memory:
//
//     rank 4, NHWC   [N, H, W, C]     rows = N*H, pixels = W, channels = C
//     any other      [d0 ... dk, C]   rows = d0*...*dk, pixels = 1, channels = C     (rank 0 and 1: one row)
//
//     row r   |c c c c . .|c c c c . .|c c c c . .|  <- pixel_pitch covers neighbours of a concatenation (the dots)
//     row r+1 |...                                   <- row_pitch may skip more
//
// Invariants: channels of a pixel are adjacent; pixel_pitch >= channels * size_of(dtype); with ring_rows = R > 0 only R rows exist and
// row r lies at slot r mod R (a band keeps its overlap rows there). Concatenation, splitting and in-place execution are views too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"

namespace sluice {

/// The three extents of a shape as the head of this file folds them.
struct RowExtents {
  std::int64_t rows = 1;
  std::int64_t pixels = 1;
  std::int64_t channels = 1;
};

constexpr RowExtents row_extents(const Shape& shape) noexcept {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 4) return {shape[0] * shape[1], shape[2], shape[3]};
  return {shape.count(0, shape.rank() - 1), 1, shape.back()};
}

/// A view of memory that it does not own. Pitches are in bytes.
struct RowView {
  std::byte* data = nullptr;  // row 0 (ring slot 0), pixel 0, channel 0
  std::int64_t rows = 0;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  std::int64_t row_pitch = 0;
  std::int64_t pixel_pitch = 0;
  std::int64_t ring_rows = 0;  // 0: no ring
  DType dtype = DType::kF32;

  std::byte* row(std::int64_t r) const noexcept { return data + (ring_rows == 0 ? r : r % ring_rows) * row_pitch; }
  template <class T>
  T* at(std::int64_t r, std::int64_t pixel = 0) const noexcept {
    return reinterpret_cast<T*>(row(r) + pixel * pixel_pitch);
  }
  /// Neither gaps between pixels or rows nor a ring: element i lies at data + i * size.
  bool dense() const noexcept {
    return ring_rows == 0 && pixel_pitch == channels * static_cast<std::int64_t>(size_of(dtype)) && row_pitch == pixels * pixel_pitch;
  }
};

/// A dense view of `shape` at `data`.
constexpr RowView dense_view(std::byte* data, const Shape& shape, DType dtype) noexcept {
  const RowExtents extents = row_extents(shape);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  return {data, extents.rows, extents.pixels, extents.channels, extents.pixels * extents.channels * size, extents.channels * size,
          0,    dtype};
}

}  // namespace sluice
