// Plain operators that move values: dense tensors described as strided copies for the movement engine.
#pragma once

#include <array>
#include <span>

#include "sluice/core/cpu.h"
#include "src/kernels/movement/loops.h"
#include "src/kernels/movement/regions.h"
#include "src/kernels/movement/strided_copy.h"
#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

/// From the first element of `x` to the first of `out`; axes are to be added, in bytes.
inline movement::StridedCopy copy_between(const PlainTensor& x, const PlainTensor& out) noexcept {
  movement::StridedCopy copy;
  copy.element = static_cast<std::int64_t>(size_of(out.dtype));
  copy.from = x.data;
  copy.to = out.data;
  return copy;
}

/// Runs it, on the node's threads where it has some.
void move(const PlainNode& node, const movement::StridedCopy& copy) noexcept;

/// Fills `out` from `x`, of which `strides` (in elements) say how far neighbours along the axes of `out` lie apart, beginning at `first`.
void move_strided(const PlainNode& node, const PlainTensor& x, const PlainTensor& out, const Extents& strides,
                  std::int64_t first = 0) noexcept;

/// A block [outer, extent, inner] of elements, which lies behind others along the middle axis on both sides: `from` and `to` say where it
/// begins and how many places the axis has there.
struct AxisBlock {
  std::int64_t first = 0;
  std::int64_t extent = 0;
};
void move_block(const PlainNode& node, const PlainTensor& x, const PlainTensor& out, const AxisView& block, AxisBlock from,
                AxisBlock to) noexcept;

/// Gives each element of `out` the one of `x` that lies at place(axis, index) on each axis, where index is the element's own; where some
/// place lies outside `x`, the element at `outside`.
template <class Place>
void move_by_places(const PlainNode& node, const PlainTensor& x, const PlainTensor& out, const Place& place,
                    const std::byte* outside) noexcept {
  std::array<movement::Pieces, Shape::kMaxRank> pieces;
  movement::StridedCopy whole = copy_between(x, out);
  const Extents from = strides_of(x.shape), to = strides_of(out.shape);
  bool few = true;
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    whole.add(out.shape[axis], from[a] * whole.element, to[a] * whole.element);
    few = few && pieces[a].find(out.shape[axis], x.shape[axis], [&](std::int64_t i) { return place(axis, i); });
  }
  if (few) return movement::for_each_region(whole, pieces, outside, [&](const auto& region) { move(node, region); });
  copy_by_places(x, out, place, [&](std::int64_t i) { copy_elements(out.data + i * whole.element, outside, 1, out.dtype); });
}

/// to[q * to_step + p] = from[p * from_step + q]
inline void turn_floats(const float* from, std::int64_t from_step, std::int64_t p, float* to, std::int64_t to_step,
                        std::int64_t q) noexcept {
  constexpr std::int64_t kFloat = sizeof(float);
  constexpr std::size_t kFloats = 2;  // movement lists its loops by the logarithm of the element's size
  movement::loop_table(active_isa())
      .turn[kFloats](
          {reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), from_step * kFloat, to_step * kFloat, p, q});
}

}  // namespace sluice::kernels::plain
