// Geometry of views: a part of a tensor, seen through the three extents (rows, pixels, channels) of core/tensor.h.
//
//     concat along channels           concat along W                concat along H (N = 1)
//     row |aa bbb|aa bbb|aa bbb|      row |aa aa|bbb bbb|           row 0 |aaaaa|
//     row |aa bbb|aa bbb|aa bbb|      row |aa aa|bbb bbb|           row 1 |bbbbb|
//     b: channel offset 2             b: pixel offset 2             b: row offset 1
//
// Invariant: the part is a box in the folded extents, or there is no view: the rows of a part must be adjacent rows of the whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/core/shape.h"
#include "sluice/core/tensor.h"

namespace sluice::planner {

/// The start of a part in the folded extents of the whole.
struct FoldedOrigin {
  std::int64_t row = 0;
  std::int64_t pixel = 0;
  std::int64_t channel = 0;
};

/// The position in `whole` of the part of shape `part` at `start`; nothing if it is not a box there (other ranks, scattered rows).
inline std::optional<FoldedOrigin> fold_box(const Shape& whole, const std::array<std::int64_t, Shape::kMaxRank>& start,
                                            const Shape& part) noexcept {
  if (whole.rank() != part.rank() || whole.rank() == 0) return std::nullopt;
  const int rank = whole.rank();
  const int row_axes = rank == 4 ? 2 : rank - 1;
  FoldedOrigin origin;
  bool several = false;  // an outer axis already gave several runs of rows: all inner row axes must be whole
  for (int axis = 0; axis < row_axes; ++axis) {
    if (several && part[axis] != whole[axis]) return std::nullopt;
    several = several || part[axis] > 1;
    origin.row = origin.row * whole[axis] + start[static_cast<std::size_t>(axis)];
  }
  if (rank == 4) origin.pixel = start[2];
  origin.channel = start[static_cast<std::size_t>(rank - 1)];
  return origin;
}

}  // namespace sluice::planner
