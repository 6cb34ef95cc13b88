// What definitions of the long tail share: element types, shapes, axes, and clauses for the user.
//
// Here is what follows from types, shapes and arguments; how values are read, walked and written is the kernels' affair
// (src/kernels/plain/elements.h). Extents and places come from untrusted files: multiply them in checked arithmetic (`make_shape`), and ask
// `axis_of` before an axis is used.
//
// Invariant: what gives a shape here gives one that Shape::make takes, or says no.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/operators/generic.h"

namespace sluice::operators::generic {

using Extents = std::array<std::int64_t, Shape::kMaxRank>;

constexpr bool is_f32(DType dtype) noexcept { return dtype == DType::kF32; }
constexpr bool is_byte(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8; }
/// What integer arithmetic takes. u64 is left out: the arithmetic is that of i64. (Functions of two values have one for u64.)
constexpr bool is_integer(DType dtype) noexcept {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16 || dtype == DType::kI32 ||
         dtype == DType::kU32 || dtype == DType::kI64;
}
constexpr bool is_number(DType dtype) noexcept { return is_f32(dtype) || is_integer(dtype); }
constexpr bool is_index(DType dtype) noexcept { return dtype == DType::kI32 || dtype == DType::kI64; }

/// TensorProto.DataType; all reals run as f32.
inline bool type_of(std::int64_t onnx, DType& dtype) noexcept {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kU8,   DType::kI8,  DType::kU16, DType::kI16, DType::kI32,
                              DType::kI64, DType::kF32, DType::kBool, DType::kF32, DType::kF32, DType::kU32, DType::kU64};
  if (onnx < 1 || onnx > 13 || onnx == 8) return false;
  dtype = kTypes[onnx];
  return true;
}

/// numpy's rule; false when the shapes do not fit.
inline bool broadcast_to(const Shape& a, const Shape& b, Shape& out) noexcept {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int axis = 0; axis < rank; ++axis) {
    const int i = axis - (rank - a.rank()), j = axis - (rank - b.rank());
    const std::int64_t x = i < 0 ? 1 : a[i], y = j < 0 ? 1 : b[j];
    if (x != y && x != 1 && y != 1) return false;
    dims[static_cast<std::size_t>(axis)] = x == 1 ? y : x;
  }
  const auto made = Shape::make(std::span(dims).first(static_cast<std::size_t>(rank)));
  if (made) out = *made;
  return made.has_value();
}

/// The shape of these extents; false when they overflow or are too many.
inline bool make_shape(std::span<const std::int64_t> dims, Shape& out) noexcept {
  const auto made = Shape::make(dims);
  if (made) out = *made;
  return made.has_value();
}

/// Extents gathered one by one.
struct Dims {
  std::array<std::int64_t, 3 * Shape::kMaxRank> values{};
  std::size_t count = 0;
  void add(std::int64_t extent) noexcept {
    if (count < values.size()) values[count++] = extent;
  }
  void add(const Shape& shape, int first, int last) noexcept {
    for (int axis = first; axis < last; ++axis) add(shape[axis]);
  }
  std::span<const std::int64_t> span() const noexcept { return {values.data(), count}; }
};

/// An axis counted from the end when negative; -1 outside the rank.
constexpr int axis_of(std::int64_t axis, int rank) noexcept {
  if (axis < -rank || axis >= rank) return -1;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// A shape seen from one axis: [outer, extent, inner].
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
constexpr AxisView axis_view(const Shape& shape, int axis) noexcept {
  return {shape.count(0, axis), shape[axis], shape.count(axis + 1, shape.rank())};
}

inline constexpr PlainRefusal kWrongType = "an input is of a type that it does not take";
inline constexpr PlainRefusal kMissingInput = "an input is missing";
inline constexpr PlainRefusal kWrongShape = "the shapes of its inputs do not fit each other";
inline constexpr PlainRefusal kWrongRank = "an input has a number of axes that it does not take";
inline constexpr PlainRefusal kWrongAxis = "an axis lies outside the tensor";
inline constexpr PlainRefusal kWrongArgument = "an attribute has a value that it does not take";
inline constexpr PlainRefusal kWrongIndex = "an index lies outside the tensor";

/// Bounds of operators with late arguments (PlainOperator::bound). The user states the extents; the type is the first input's, or f32.
inline PlainRefusal bound_stated(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  if (!node.has(0)) return kMissingInput;
  out.dtype = node.in(0).dtype;
  return kStateBound;
}
inline PlainRefusal bound_stated_f32(const PlainNode&, PlainTensor& out, std::uint8_t&) noexcept {
  out.dtype = DType::kF32;
  return kStateBound;
}
/// The late arguments decide no extents: those of the first input, always.
inline PlainRefusal bound_as_input(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

}  // namespace sluice::operators::generic
