// Operators whose values decide how large their results are: the items that Unique compares, and the most results that it may have.
//
// Read by the definitions (src/operators/generic/sized.cc), which give the most, and by the generic kernels (src/kernels/plain/sized.cc),
// which write how many there are.
//
// Invariant: what `infer` gives is no smaller than what any values lead to.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::sized {

// ---- Unique: items are elements, or the slices of an axis. Results: items, place of the first of each, group of each item, counts

struct Items {
  AxisView view;
  explicit Items(const PlainNode& node) noexcept
      : view(node.given(0) ? axis_view(node.in(0).shape, std::max(axis_of(node.integer(0), node.in(0).shape.rank()), 0))
                           : AxisView{1, node.in(0).count(), 1}) {}

  /// Below zero, zero or above: how one value compares with another. NaN are the last, and equal.
  template <class T>
  static int compare(T u, T v) noexcept {
    if (u < v || (v != v && u == u)) return -1;
    return v < u || (u != u && v == v) ? 1 : 0;
  }
  /// How item a compares with item b.
  template <class T>
  int compare(const T* x, std::int64_t a, std::int64_t b) const noexcept {
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.inner; ++i) {
        if (const int way = compare(x[(o * view.extent + a) * view.inner + i], x[(o * view.extent + b) * view.inner + i]); way != 0)
          return way;
      }
    return 0;
  }
};

inline PlainRefusal infer_unique(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (!is_number(x.dtype) && x.dtype != DType::kBool) return kWrongType;
  if (node.given(0) && axis_of(node.integer(0), x.shape.rank()) < 0) return kWrongAxis;
  const std::int64_t items = Items(node).view.extent;
  out = {node.result() == 0 ? x.dtype : DType::kI64, node.result() == 0 && node.given(0) ? x.shape : Shape{items}};
  return nullptr;
}

}  // namespace sluice::operators::generic::sized
