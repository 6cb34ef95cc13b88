// Folds whose values lie behind each other, a row for each result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/kernels/movement/strided_copy.h"
#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

/// Rows that lie behind each other, one for each result in their order.
struct ResultRows {
  std::int64_t rows = 0, count = 0;  // no rows: the values of a result do not follow each other
};
inline ResultRows result_rows(const Shape& shape, const Extents& strides) noexcept {
  ResultRows found{1, 1};
  int axis = shape.rank() - 1;
  for (; axis >= 0 && (shape[axis] == 1 || strides[static_cast<std::size_t>(axis)] == 0); --axis) found.count *= shape[axis];
  for (; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[static_cast<std::size_t>(axis)] == 0) return {};
    found.rows *= shape[axis];
  }
  return found.count > 0 ? found : ResultRows();
}

/// Calls `fold(first row, rows)` with some at a time, so that the run can end between them.
template <class FoldRows>
void for_rows(const ResultRows& rows, const FoldRows& fold) noexcept {
  const std::int64_t some = std::max<std::int64_t>(1, Glances::kWork / rows.count);
  Glances glances;
  for (std::int64_t first = 0; first < rows.rows && !glances.over(some * rows.count); first += some)
    fold(first, std::min(some, rows.rows - first));
}

/// The extremes of rows of a few values each, of which a vector would be mostly empty: some rows are turned, so that their first values lie
/// beside each other, then their second ones.
inline constexpr std::int64_t kFewValues = 8;
template <bool kLargest>
void keep_few_extremes(const float* from, std::int64_t rows, std::int64_t count, float* best) noexcept {
  constexpr std::int64_t kRows = 64, kFloat = sizeof(float);
  std::array<float, kRows * kFewValues> turned;
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t some = std::min(kRows, rows - first);
    movement::StridedCopy copy;
    copy.element = kFloat;
    copy.from = reinterpret_cast<const std::byte*>(from + first * count);
    copy.to = reinterpret_cast<std::byte*>(turned.data());
    copy.add(some, count * kFloat, kFloat);
    copy.add(count, kFloat, kRows * kFloat);
    movement::run(copy, active_isa());
    float* const to = best + first;
    std::copy_n(turned.data(), some, to);
    for (std::int64_t k = 1; k < count; ++k)
      for (std::int64_t i = 0; i < some; ++i) {
        const float value = turned[static_cast<std::size_t>(k * kRows + i)], kept = to[i];
        to[i] = (kLargest ? value > kept : value < kept) || value != value ? value : kept;
      }
  }
}

/// Multiplies the products by rows of kCount values each, no more than eight, in the order of `VectorTable::product`.
template <std::int64_t kCount>
void multiply_few(const float* from, std::int64_t rows, double* products) noexcept {
  static_assert(kCount <= kFewValues);
  for (std::int64_t r = 0; r < rows; ++r, from += kCount) {
    std::array<double, static_cast<std::size_t>(kCount)> values;
    std::copy_n(from, kCount, values.begin());
    for (std::size_t half = kFewValues / 2; half >= 1; half /= 2)
      for (std::size_t i = 0; i < half && i + half < values.size(); ++i) values[i] *= values[i + half];
    products[r] *= values[0];
  }
}
inline void multiply_few(const float* from, std::int64_t rows, std::int64_t count, double* products) noexcept {
  using Multiply = void (*)(const float*, std::int64_t, double*) noexcept;
  static constexpr Multiply kOfCount[] = {multiply_few<1>, multiply_few<2>, multiply_few<3>, multiply_few<4>,
                                          multiply_few<5>, multiply_few<6>, multiply_few<7>, multiply_few<8>};
  kOfCount[count - 1](from, rows, products);
}

}  // namespace sluice::kernels::plain
