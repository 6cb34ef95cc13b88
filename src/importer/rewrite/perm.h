// Axis orders: which ONNX axis each physical axis is.
//
// Axes of extent 1 take no part in the order of bytes: two orders are the same when they agree on the others.
#pragma once

#include <vector>

#include "src/importer/constant.h"

namespace sluice::importer {

/// N, spatial axes, C.
constexpr Perm channels_last(int rank) noexcept {
  Perm perm = kIdentityPerm;
  for (int axis = 1; axis + 1 < rank; ++axis) perm[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(axis + 1);
  if (rank > 1) perm[static_cast<std::size_t>(rank - 1)] = 1;
  return perm;
}

/// From there back to N, C, spatial axes.
constexpr Perm channels_second(int rank) noexcept {
  Perm perm = kIdentityPerm;
  for (int axis = 2; axis < rank; ++axis) perm[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(axis - 1);
  if (rank > 1) perm[1] = static_cast<std::int8_t>(rank - 1);
  return perm;
}

constexpr bool equal(const Perm& a, const Perm& b, int rank) noexcept {
  for (int axis = 0; axis < rank; ++axis)
    if (a[static_cast<std::size_t>(axis)] != b[static_cast<std::size_t>(axis)]) return false;
  return true;
}

inline Shape physical(const Shape& shape, const Perm& perm) noexcept {
  Shape out = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) out[axis] = shape[perm[static_cast<std::size_t>(axis)]];
  return out;
}

/// Where ONNX axis `axis` lies physically.
constexpr int position_of(const Perm& perm, int axis) noexcept {
  int position = 0;
  while (perm[static_cast<std::size_t>(position)] != axis) ++position;
  return position;
}

/// The ONNX axes of extent other than 1, in physical order.
inline std::vector<int> order_of(const Shape& shape, const Perm& perm) {
  std::vector<int> order;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (const int onnx = perm[static_cast<std::size_t>(axis)]; shape[onnx] != 1) order.push_back(onnx);
  return order;
}

/// An order of `shape` whose axes other than 1 come as in `order`: the usual ones if they agree (NHWC first if preferred).
Perm usual_layout(const Shape& shape, const std::vector<int>& order, bool prefer_last);

/// What a Reshape does to orders of axes: both shapes cut into the smallest runs of axes with equal products.
class ReshapeMap {
 public:
  ReshapeMap(const Shape& in, const Shape& out);

  /// The order of the output's axes if the bytes stay where they are; nothing when the input's order makes that impossible.
  std::optional<std::vector<int>> forward(const std::vector<int>& in_order) const;
  /// The order of the input's axes from which `out_order` needs no move; nothing when there is none.
  std::optional<std::vector<int>> backward(const std::vector<int>& out_order) const;

  /// Runs of axes [in_begin, in_end) that become [out_begin, out_end).
  struct Run {
    int in_begin, in_end, out_begin, out_end;
  };
  const std::vector<Run>& runs() const noexcept { return runs_; }

 private:
  Shape in_, out_;
  std::vector<Run> runs_;
};

}  // namespace sluice::importer
