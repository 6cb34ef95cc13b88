// Geometry of placed tensors for the verifier, written with strides of axes (the planner thinks in rows, pixels and channels).
//
//     NHWC at pitches:   stride N = H * row_pitch,  H = row_pitch,  W = pixel_pitch,  C = element
//     any other rank:    stride of the last axis = element, of the one before = row_pitch, of outer ones = extents in between * row_pitch
//
// A part lies in a whole if its first element does and every axis that it steps along has the whole's stride. A ring has the bytes of its
// slots, and is no part or whole of anything else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "sluice/core/tensor.h"
#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

struct PlacedTensor {
  const model::Tensor* tensor;
  const TensorPlacement* placement;
};

/// Rows that have bytes of their own.
inline std::int64_t rows_held(const PlacedTensor& t) noexcept {
  const std::int64_t rows = row_extents(t.tensor->shape).rows;
  return t.placement->ring_rows > 0 ? std::min(rows, t.placement->ring_rows) : rows;
}

/// Bytes from the first element to the end of the last, or nothing when elements of the view overlap one another or the sum overflows.
inline std::optional<std::uint64_t> view_span(const model::Tensor& tensor, const TensorPlacement& placement) {
  const RowExtents extents = row_extents(tensor.shape);
  if (placement.row_pitch < 0 || placement.pixel_pitch < 0 || placement.offset.count() % size_of(tensor.dtype) != 0) return std::nullopt;
  const std::uint64_t channels = static_cast<std::uint64_t>(extents.channels) * size_of(tensor.dtype);
  const auto pixel_pitch = static_cast<std::uint64_t>(placement.pixel_pitch);
  const auto row_pitch = static_cast<std::uint64_t>(placement.row_pitch);
  if (extents.rows < 1 || extents.pixels < 1 || extents.channels < 1) return std::nullopt;
  // Kernels count in elements, and divide by the pitch of a pixel even where there is only one.
  if (pixel_pitch < channels || pixel_pitch % size_of(tensor.dtype) != 0 || row_pitch % size_of(tensor.dtype) != 0) return std::nullopt;
  const auto pixels = checked_mul(static_cast<std::uint64_t>(extents.pixels - 1), pixel_pitch);
  const auto row = pixels ? checked_add(*pixels, channels) : std::nullopt;
  if (!row || (extents.rows > 1 && row_pitch < *row)) return std::nullopt;
  const auto rows = checked_mul(static_cast<std::uint64_t>(rows_held({&tensor, &placement}) - 1), row_pitch);
  return rows ? checked_add(*rows, *row) : std::nullopt;
}

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Bytes between neighbours along each axis; for placements that passed `view_span`.
inline Strides strides_of(const PlacedTensor& t) noexcept {
  const Shape& shape = t.tensor->shape;
  const int rank = shape.rank();
  Strides strides{};
  if (rank == 0) return strides;
  int axis = rank - 1;
  strides[static_cast<std::size_t>(axis--)] = size_of(t.tensor->dtype);
  if (rank == 4) strides[static_cast<std::size_t>(axis--)] = t.placement->pixel_pitch;
  std::int64_t stride = t.placement->row_pitch;
  for (; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    if (__builtin_mul_overflow(stride, shape[axis], &stride)) stride = 0;  // only along axes that a placed tensor does not step
  }
  return strides;
}

/// Is `part` the region of `whole` that begins at index `start`?
inline bool part_of(const PlacedTensor& part, const PlacedTensor& whole, const std::array<std::int64_t, Shape::kMaxRank>& start) noexcept {
  if (part.placement->buffer != whole.placement->buffer || part.tensor->dtype != whole.tensor->dtype) return false;
  if (part.placement->ring_rows != 0 || whole.placement->ring_rows != 0) return false;
  const Shape& shape = part.tensor->shape;
  if (shape.rank() != whole.tensor->shape.rank()) return false;
  const Strides inner = strides_of(part);
  const Strides outer = strides_of(whole);
  std::uint64_t at = whole.placement->offset.count();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (start[a] < 0 || start[a] + shape[axis] > whole.tensor->shape[axis]) return false;
    if (shape[axis] > 1 && inner[a] != outer[a]) return false;
    at += static_cast<std::uint64_t>(start[a]) * static_cast<std::uint64_t>(outer[a]);
  }
  return at == part.placement->offset.count();
}

/// Element i at i elements from the first.
inline bool contiguous(const PlacedTensor& t) noexcept {
  if (t.placement->ring_rows != 0) return false;
  const Shape& shape = t.tensor->shape;
  const Strides strides = strides_of(t);
  std::int64_t dense = size_of(t.tensor->dtype);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] > 1 && strides[static_cast<std::size_t>(axis)] != dense) return false;
    dense *= shape[axis];
  }
  return true;
}

/// Two shapes of the same bytes.
inline bool same_bytes(const PlacedTensor& a, const PlacedTensor& b) noexcept {
  return a.placement->buffer == b.placement->buffer && a.placement->offset == b.placement->offset && a.tensor->dtype == b.tensor->dtype &&
         a.tensor->bytes() == b.tensor->bytes() && contiguous(a) && contiguous(b);
}

/// Whether both have the same elements at the same positions.
inline bool same_view(const PlacedTensor& a, const PlacedTensor& b) noexcept {
  if (a.tensor->shape != b.tensor->shape) return false;
  return part_of(a, b, {});
}

/// Have two views of one buffer no byte in common? May return false for views with different pitches that are disjoint nevertheless.
inline bool views_disjoint(const PlacedTensor& a, const PlacedTensor& b) noexcept {
  struct Grid {
    std::int64_t rows, pixels, bytes, row_span;
  };
  const auto grid = [](const PlacedTensor& t) {
    const RowExtents extents = row_extents(t.tensor->shape);
    const std::int64_t bytes = extents.channels * static_cast<std::int64_t>(size_of(t.tensor->dtype));
    return Grid{rows_held(t), extents.pixels, bytes, (extents.pixels - 1) * t.placement->pixel_pitch + bytes};
  };
  const Grid x = grid(a);
  const Grid y = grid(b);
  const auto distance = static_cast<std::int64_t>(b.placement->offset.count() - a.placement->offset.count());
  const std::int64_t row_pitch = x.rows > 1 ? a.placement->row_pitch : b.placement->row_pitch;
  const std::int64_t pixel_pitch = x.pixels > 1 ? a.placement->pixel_pitch : b.placement->pixel_pitch;
  const std::int64_t span_x = (x.rows - 1) * a.placement->row_pitch + x.row_span;
  const std::int64_t span_y = (y.rows - 1) * b.placement->row_pitch + y.row_span;
  if (distance >= span_x || -distance >= span_y) return true;
  const bool many_rows = x.rows > 1 || y.rows > 1;
  const bool many_pixels = x.pixels > 1 || y.pixels > 1;
  // Proves something only if both have the same grid.
  if (x.rows > 1 && y.rows > 1 && a.placement->row_pitch != b.placement->row_pitch) return false;
  if (x.pixels > 1 && y.pixels > 1 && a.placement->pixel_pitch != b.placement->pixel_pitch) return false;
  if (many_rows && (x.row_span > row_pitch || y.row_span > row_pitch)) return false;
  if (many_pixels && (x.bytes > pixel_pitch || y.bytes > pixel_pitch)) return false;
  const auto floor_div = [](std::int64_t n, std::int64_t d) { return n / d - (n % d < 0 ? 1 : 0); };
  // Bytes p of a and q of b coincide iff distance = rows apart * row pitch + pixels apart * pixel pitch + bytes apart, each within reach.
  const std::int64_t row_guess = many_rows ? floor_div(distance, row_pitch) : 0;
  for (std::int64_t rows = row_guess; rows <= row_guess + (many_rows ? 1 : 0); ++rows) {
    if (rows <= -y.rows || rows >= x.rows) continue;
    const std::int64_t in_row = distance - rows * row_pitch;
    const std::int64_t pixel_guess = many_pixels ? floor_div(in_row, pixel_pitch) : 0;
    for (std::int64_t pixels = pixel_guess; pixels <= pixel_guess + (many_pixels ? 1 : 0); ++pixels) {
      if (pixels <= -y.pixels || pixels >= x.pixels) continue;
      const std::int64_t apart = in_row - pixels * pixel_pitch;
      if (apart > -y.bytes && apart < x.bytes) return false;
    }
  }
  return true;
}

}  // namespace sluice::plan
