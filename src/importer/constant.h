// A tensor whose values are known at import: a strided view of bytes that a mapped file or the constant itself keeps.
//
//     an initialiser in the file     shape 64x3x7x7   strides 147 49 7 1    data -> the mapping, nothing is copied
//     transposed                     shape 3x64x7x7   strides 49 147 7 1    the same bytes
//     ConstantOfShape                shape 512x512    strides 0 0           one value, however large the shape
//
// Invariants: every element a (shape, strides) index reaches lies inside the bytes that `owner` keeps; `data` need not be aligned;
// strides count elements and may be negative. f16, bf16 and f64 values are f32 values to everybody but the code that reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"

namespace sluice::importer {

/// Folding reads and makes at most this many elements at a time; larger constants stay views (an untrusted file must not make us compute
/// or hold what it merely declares).
inline constexpr std::int64_t kMaxFoldedElements = std::int64_t{1} << 20;

using Perm = std::array<std::int8_t, Shape::kMaxRank>;
inline constexpr Perm kIdentityPerm{0, 1, 2, 3, 4, 5, 6, 7};
/// [N, C, D, H, W] to the planes [N, D, C, H, W], and back.
inline constexpr Perm kPlanesOfVolume{0, 2, 1, 3, 4, 5, 6, 7};

constexpr bool is_float(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kF64 || dtype == DType::kBF16;
}

struct QuantisedValues;  // quantised.h

struct Constant {
  DType dtype = DType::kF32;
  Shape shape;
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;
  int bits = 8;                                      // i8 and u8: that the values fit in; 4 and 2 are types of ONNX
  std::shared_ptr<const QuantisedValues> quantised;  // null: the values are no quantised ones
  bool absent = false;  // the file states shape and type alone: reads give ones (reals) or zeros; whoever wants integers is refused

  std::int64_t elements() const noexcept { return shape.element_count(); }
};

/// Row-major strides of `shape`.
std::array<std::int64_t, Shape::kMaxRank> dense_strides(const Shape& shape) noexcept;
/// A dense constant with a copy of `values`.
Constant make_constant(const Shape& shape, std::span<const float> values);
Constant make_constant(const Shape& shape, std::span<const std::int64_t> values, DType dtype = DType::kI64);
/// One value for all of `shape`.
Constant make_fill(const Shape& shape, float value);
/// A constant of which the file has the shape alone, for models without weights. No two of them share their bytes: they are no one weight.
Constant make_absent(DType dtype, const Shape& shape);
/// Values of both signs for an f32 of which the file has the shape alone, other ones for each seed, so large that what passes through layers
/// stays of its size, as in a trained net (of ones it overflows, or softmax weights and gates are subnormal numbers, and kernels take twice
/// as long). A matrix may be of either order: its sums count as long as the mean of both. Fewer than two extents above 1 give ones.
Constant make_drawn(const Shape& shape, std::uint32_t seed);
/// Dense over bytes that are somewhere else.
Constant make_view(DType dtype, const Shape& shape, const std::byte* data, std::shared_ptr<const void> owner);

// Views of views. Only `data`, `shape` and `strides` change; the caller has checked the arguments.
Constant permuted(const Constant& c, const Perm& perm);
Constant broadcast(const Constant& c, const Shape& shape);
/// Nothing when the values do not lie in an order that another shape can describe (then copy, see `copied`).
std::optional<Constant> reshaped(const Constant& c, const Shape& shape);
/// A dense copy. Refuses more than kMaxFoldedElements.
Constant copied(const Constant& c);
/// `reshaped`, copying when it must.
Constant reshaped_or_copied(const Constant& c, const Shape& shape);

/// [N, K, h, w] whose taps lie at equal distances, as packing wants them: `c`, or a copy.
Constant with_even_taps(const Constant& c);

/// One element, by its offset from `data` in elements.
double read_real(const Constant& c, std::int64_t offset) noexcept;
std::int64_t read_integer(const Constant& c, std::int64_t offset) noexcept;

/// All elements in row-major order. Both refuse more than kMaxFoldedElements.
std::vector<double> reals(const Constant& c);
std::vector<std::int64_t> integers(const Constant& c);
std::vector<float> floats(const Constant& c);

/// The value when all elements share one (a scalar, or a fill).
std::optional<double> uniform_value(const Constant& c);

/// Writes all elements, row-major, as f32. No limit: `out` says how many.
void write_floats(const Constant& c, std::span<float> out) noexcept;

/// Writes all elements, row-major, as they are.
void write_elements(const Constant& c, std::byte* out) noexcept;

/// Calls `visit(offset)` for each element in row-major order; offsets in elements from `data`.
template <class Visit>
void for_each_offset(const Shape& shape, const std::array<std::int64_t, Shape::kMaxRank>& strides, Visit&& visit) {
  const std::int64_t count = shape.element_count();
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(offset);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      offset += strides[a];
      if (++index[a] < shape[axis]) break;
      offset -= strides[a] * shape[axis];
      index[a] = 0;
    }
  }
}

}  // namespace sluice::importer
