// Which scale belongs to an element: one for all, one a place of an axis, or one a block of places.
//
// Read by the definitions (src/operators/generic/quantize.cc), which refuse scales that do not fit, and by the generic kernels
// (src/kernels/plain/quantize.cc).
//
// Invariant: `at` of every element of the tensor is the number of a scale that is there.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::quantize {

/// How scales are arranged along the tensor: one for all, one for each position of an axis, or one for each block of an axis.
struct Scales {
  AxisView view;
  std::int64_t block = 0;  // places of the axis that share a scale; 0: one scale for all
  std::int64_t at(std::int64_t element) const noexcept {
    if (block == 0) return 0;
    const std::int64_t place = element / view.inner % view.extent;
    if (block == 1 && !blocked) return place;
    return (element / (view.inner * view.extent) * ceil_blocks() + place / block) * view.inner + element % view.inner;
  }
  std::int64_t ceil_blocks() const noexcept { return (view.extent + block - 1) / block; }
  bool blocked = false;
  /// How many elements from `element` on have the scale of that one, of `count` in all; blocks: as if only it had.
  std::int64_t run(std::int64_t element, std::int64_t count) const noexcept {
    if (block == 0) return count - element;
    return blocked ? 1 : view.inner - element % view.inner;
  }
};

/// `axis` and `block_size` are arguments 0 and 1.
inline bool scales_of(const PlainNode& node, Scales& scales) noexcept {
  const Shape &x = node.in(0).shape, &s = node.in(1).shape;
  if (node.has(2) && !(node.in(2).shape == s) && node.in(2).count() != s.element_count()) return false;
  if (s.element_count() == 1 && node.integer(1) == 0) return true;
  const int axis = axis_of(node.integer(0), x.rank());
  if (axis < 0) return false;
  scales.view = axis_view(x, axis);
  scales.block = 1;
  if (node.integer(1) == 0) return s.rank() == 1 && s[0] == x[axis];
  scales.block = node.integer(1);
  scales.blocked = true;
  if (scales.block < 1 || scales.block > (std::int64_t{1} << 30) || s.rank() != x.rank()) return false;
  for (int a = 0; a < x.rank(); ++a)
    if (s[a] != (a == axis ? scales.ceil_blocks() : x[a])) return false;
  return true;
}

}  // namespace sluice::operators::generic::quantize
