// Walking views: rows shared among threads, elements found by index. What every kernel of the reference is written with.
//
// A kernel writes its step row by row; `for_rows` hands the rows to the threads. Operators that move elements about think in indices of a
// shape, not in rows: `index_at` and `address` turn one into the other, through pitches and rings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/kernels/call.h"

namespace sluice::kernels::reference {

/// Calls body(row) for each row of the step, in any order, on any thread.
template <class Body>
void for_rows(const KernelCall& call, const Body& body) noexcept {
  if (call.pool == nullptr) {
    for (std::int64_t row = call.rows.begin; row < call.rows.end; ++row) body(row);
    return;
  }
  parallel_for(*call.pool, call.rows.size(), [&](std::int64_t i, int) { body(call.rows.begin + i); });
}

/// Calls body(row, pixel) for each pixel of the step.
template <class Body>
void for_pixels(const KernelCall& call, const Body& body) noexcept {
  const std::int64_t pixels = call.outputs[0].view.pixels;
  for_rows(call, [&](std::int64_t row) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) body(row, pixel);
  });
}

/// One index an axis; those beyond the rank are 0.
using Index = std::array<std::int64_t, Shape::kMaxRank>;

/// The index of channel 0 at (row, pixel) of a shape folded by `row_extents`.
inline Index index_at(const Shape& shape, std::int64_t row, std::int64_t pixel) noexcept {
  Index index{};
  if (shape.rank() == 4) {
    index[0] = row / shape[1];
    index[1] = row % shape[1];
    index[2] = pixel;
    return index;
  }
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = row % shape[axis];
    row /= shape[axis];
  }
  return index;
}

/// Where the element of that index lies.
inline std::byte* address(const Operand& operand, const Index& index) noexcept {
  const Shape& shape = operand.shape;
  const int rank = shape.rank();
  std::int64_t row = 0;
  const int row_axes = rank == 4 ? 2 : rank - 1;
  for (int axis = 0; axis < row_axes; ++axis) row = row * shape[axis] + index[static_cast<std::size_t>(axis)];
  const std::int64_t pixel = rank == 4 ? index[2] : 0;
  const std::int64_t channel = rank == 0 ? 0 : index[static_cast<std::size_t>(rank - 1)];
  return operand.view.row(row) + pixel * operand.view.pixel_pitch + channel * static_cast<std::int64_t>(size_of(operand.view.dtype));
}

/// The index in `shape` that numpy broadcasting pairs with `index` of a tensor of rank `rank`.
inline Index broadcast_index(const Shape& shape, const Index& index, int rank) noexcept {
  Index result{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int other = axis + rank - shape.rank();
    if (shape[axis] != 1 && other >= 0) result[static_cast<std::size_t>(axis)] = index[static_cast<std::size_t>(other)];
  }
  return result;
}

/// Where input `in` has the pixel that stands at (row, pixel) of the output, when both count the same pixels but fold them differently.
template <class T>
const T* same_pixel(const RowView& in, const RowView& out, std::int64_t row, std::int64_t pixel) noexcept {
  if (in.pixels == out.pixels) return in.at<const T>(row, pixel);
  const std::int64_t position = row * out.pixels + pixel;
  return in.at<const T>(position / in.pixels, position % in.pixels);
}

}  // namespace sluice::kernels::reference
