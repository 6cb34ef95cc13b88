// What generic kernels of the long tail share: values of any element type, walks over shapes, copies.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "sluice/kernels/plain.h"
#include "sluice/kernels/turns.h"
#include "sluice/operators/generic/elements.h"

namespace sluice::kernels::plain {

using namespace operators::generic;  // types, shapes, axes and clauses are those of the definitions

/// Calls body(T{}) with the type that holds `dtype`; f32 and everything `is_integer` takes, and bool as u8.
template <class Body>
decltype(auto) with_type(DType dtype, Body&& body) noexcept {
  switch (dtype) {
    case DType::kI8:
      return body(std::int8_t{});
    case DType::kU8:
    case DType::kBool:
      return body(std::uint8_t{});
    case DType::kI16:
      return body(std::int16_t{});
    case DType::kU16:
      return body(std::uint16_t{});
    case DType::kI32:
      return body(std::int32_t{});
    case DType::kU32:
      return body(std::uint32_t{});
    case DType::kI64:
    case DType::kU64:
      return body(std::int64_t{});
    default:
      return body(float{});
  }
}

/// Calls body(T{}) with an unsigned type as large as `dtype`: what moves has no other properties.
template <class Body>
void with_size(DType dtype, const Body& body) noexcept {
  switch (size_of(dtype)) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    default:
      return body(std::uint64_t{});
  }
}

/// The whole part of a real that an i64 holds; 0 for what none does.
inline std::int64_t whole(double x) noexcept { return x > -9.2e18 && x < 9.2e18 ? static_cast<std::int64_t>(x) : 0; }

/// Element i of a tensor of integers, booleans or reals, as an i64 (reals cut).
inline std::int64_t integer_at(const PlainTensor& t, std::int64_t i) noexcept {
  if (t.dtype == DType::kF32) return whole(static_cast<double>(t.as<const float>()[i]));
  return with_type(t.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, float>)
      return std::int64_t{0};
    else
      return static_cast<std::int64_t>(t.as<const T>()[i]);
  });
}
inline double real_at(const PlainTensor& t, std::int64_t i) noexcept {
  return with_type(t.dtype, [&](auto zero) { return static_cast<double>(t.as<const decltype(zero)>()[i]); });
}
/// Integers lose their upper bits.
inline void set_integer(const PlainTensor& t, std::int64_t i, std::int64_t value) noexcept {
  with_type(t.dtype, [&](auto zero) { t.as<decltype(zero)>()[i] = static_cast<decltype(zero)>(value); });
}

/// Row-major strides, in elements.
inline Extents strides_of(const Shape& shape) noexcept {
  Extents strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

/// Strides with which `shape` walks along an `out` that it broadcasts to.
inline Extents broadcast_strides(const Shape& shape, const Shape& out) noexcept {
  const Extents own = strides_of(shape);
  Extents strides{};
  const int lead = out.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) strides[static_cast<std::size_t>(axis + lead)] = own[static_cast<std::size_t>(axis)];
  return strides;
}

/// Walks `shape` row-major: body(offset of each of N operands), given their strides. Ends early where the run does, of which a body of
/// some length says how many operations it is.
template <std::size_t N, class Body>
void walk(const Shape& shape, const std::array<Extents, N>& strides, const Body& body, std::int64_t operations = 1) noexcept {
  const std::int64_t count = shape.element_count(), stretch = std::max<std::int64_t>(1, Glances::kWork / 16 / operations);
  Glances glances;
  Extents index{};
  std::array<std::int64_t, N> offsets{};
  for (std::int64_t i = 0; i < count && !glances.over(stretch * operations);) {
    for (const std::int64_t end = std::min(count, i + stretch); i < end; ++i) {
      body(i, offsets);
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        const bool wraps = ++index[a] == shape[axis];
        for (std::size_t n = 0; n < N; ++n) offsets[n] += wraps ? -strides[n][a] * (shape[axis] - 1) : strides[n][a];
        if (!wraps) break;
        index[a] = 0;
      }
    }
  }
}

/// The same by lines: body(i, count, offsets, steps) for `count` elements from element i on, along which the operands move by `steps`. Axes
/// that are one for all operands are merged, so that what is not broadcast is one line.
template <std::size_t N, class Body>
void walk_lines(const Shape& shape, const std::array<Extents, N>& strides, const Body& body) noexcept {
  Dims merged;
  std::array<Extents, N> steps{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (shape[axis] == 1) continue;
    bool follows = merged.count > 0;
    for (std::size_t n = 0; n < N && follows; ++n) follows = steps[n][merged.count - 1] == strides[n][a] * shape[axis];
    if (follows)
      merged.values[merged.count - 1] *= shape[axis];
    else
      merged.add(shape[axis]);
    for (std::size_t n = 0; n < N; ++n) steps[n][merged.count - 1] = strides[n][a];
  }
  if (merged.count == 0) merged.add(1);
  const std::size_t last = merged.count - 1;
  const std::int64_t line = merged.values[last];
  merged.values[last] = 1;
  Shape lines;
  if (!make_shape(merged.span(), lines)) return;
  std::array<std::int64_t, N> line_steps;
  for (std::size_t n = 0; n < N; ++n) line_steps[n] = steps[n][last];
  walk(
      lines, steps, [&](std::int64_t i, const auto& offsets) { body(i * line, line, offsets, line_steps); },
      std::clamp<std::int64_t>(line, 1, Glances::kWork));
}

/// The same where no result depends on how long lines are: long ones come in parts, so that the run can end between them.
template <std::size_t N, class Body>
void walk_parts(const Shape& shape, const std::array<Extents, N>& strides, const Body& body) noexcept {
  constexpr std::int64_t kPart = Glances::kWork;
  Glances glances;
  walk_lines(shape, strides, [&](std::int64_t first, std::int64_t count, const auto& at, const auto& steps) {
    if (count <= kPart) return body(first, count, at, steps);
    auto from = at;
    for (std::int64_t done = 0; done < count && !glances.over(kPart); done += kPart) {
      body(first + done, std::min(kPart, count - done), from, steps);
      for (std::size_t n = 0; n < N; ++n) from[n] += kPart * steps[n];
    }
  });
}

/// Row after row of the last axis: body(first element, elements of a row, indices of the other axes). A tensor of no axes is one row.
template <class Body>
void walk_rows(const Shape& shape, const Body& body) noexcept {
  const int last = shape.rank() - 1;
  const std::int64_t row = last < 0 ? 1 : shape[last], rows = row == 0 ? 0 : shape.element_count() / row;
  Extents index{};
  Glances glances;
  for (std::int64_t r = 0; r < rows && !glances.over(row); ++r) {
    body(r * row, row, index);
    for (int axis = last - 1; axis >= 0 && ++index[static_cast<std::size_t>(axis)] == shape[axis]; --axis)
      index[static_cast<std::size_t>(axis)] = 0;
  }
}

inline void copy_elements(std::byte* to, const std::byte* from, std::int64_t count, DType dtype) noexcept {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(dtype));
}

/// Gives each element of `out` the one of `x` that lies at place(axis, index) on each axis, where index is the element's own. Elements of
/// which some place lies outside `x` go to outside(i) instead, i counting the elements of `out`. Row after row: the places of a row of the
/// last axis are those of every other.
template <class Place, class Outside>
void copy_by_places(const PlainTensor& x, const PlainTensor& out, const Place& place, const Outside& outside) {
  constexpr std::int64_t kKnown = 512;
  const int last = out.shape.rank() - 1;
  if (last < 0) return copy_elements(out.data, x.data, out.count(), out.dtype);
  const Extents from = strides_of(x.shape);
  std::array<std::int64_t, kKnown> known;
  for (std::int64_t i = 0; i < std::min(kKnown, out.shape[last]); ++i) known[static_cast<std::size_t>(i)] = place(last, i);
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    walk_rows(out.shape, [&](std::int64_t first, std::int64_t row, const Extents& index) {
      std::int64_t begin = 0;
      bool inside = true;
      for (int axis = 0; axis < last; ++axis) {
        const std::int64_t p = place(axis, index[static_cast<std::size_t>(axis)]);
        inside = inside && p >= 0 && p < x.shape[axis];
        begin += p * from[static_cast<std::size_t>(axis)];
      }
      for (std::int64_t i = 0; i < row; ++i) {
        const std::int64_t p = i < kKnown ? known[static_cast<std::size_t>(i)] : place(last, i);
        if (inside && p >= 0 && p < x.shape[last])
          out.as<T>()[first + i] = x.as<const T>()[begin + p];
        else
          outside(first + i);
      }
    });
  });
}

/// The place counted from the end when negative; false, and place 0, outside.
inline bool resolve_place(std::int64_t& place, std::int64_t extent) noexcept {
  const bool inside = place >= -extent && place < extent;
  if (!inside) place = 0;
  if (place < 0) place += extent;
  return inside;
}

}  // namespace sluice::kernels::plain
