// The values that one value of a resized tensor is made of: the product of its sources along each axis, 1, 2 or 4 an axis
// (reference/resize_taps.h), the last axis fastest. It is their weighted sum, one chain of fused multiply-adds from 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/kernels/reference/resize_taps.h"

namespace sluice::kernels::generic {

/// Axes that keep their extent have one tap of weight 1.
struct Sources {
  std::array<ResizeTaps, Shape::kMaxRank> axis;
  int rank = 0;

  /// Steps `digit` through all combinations; false after the last.
  bool next(std::array<int, Shape::kMaxRank>& digit) const noexcept {
    for (int i = rank - 1; i >= 0; --i) {
      const auto a = static_cast<std::size_t>(i);
      if (++digit[a] < axis[a].count) return true;
      digit[a] = 0;
    }
    return false;
  }

  /// Calls body(places on the axes, weight) for each source.
  template <class Body>
  void for_each(const Body& body) const noexcept {
    std::array<int, Shape::kMaxRank> digit{};
    do {
      std::array<std::int64_t, Shape::kMaxRank> place{};
      float weight = 1.0f;
      for (std::size_t a = 0; a < static_cast<std::size_t>(rank); ++a) {
        place[a] = axis[a].source[static_cast<std::size_t>(digit[a])];
        weight *= axis[a].weight[static_cast<std::size_t>(digit[a])];
      }
      body(place, weight);
    } while (next(digit));
  }
};

}  // namespace sluice::kernels::generic
