// Orders of axes, as ports and transpositions have them.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/core/shape.h"

namespace sluice::model {

/// perm[0, rank) holds each of 0 ... rank-1 once.
inline bool is_permutation(const std::array<std::int8_t, Shape::kMaxRank>& perm, int rank) noexcept {
  unsigned seen = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const int from = perm[static_cast<std::size_t>(axis)];
    if (from < 0 || from >= rank) return false;
    seen |= 1u << from;
  }
  return seen == (1u << rank) - 1;
}

}  // namespace sluice::model
