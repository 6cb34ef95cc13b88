// The extents of a tensor, outermost first, kept inline.
//
// Invariants: 0 <= rank <= kMaxRank; every extent >= 0; the element count fits 63 bits (checked by `make`, which untrusted extents go
// through). Rank 0 is a scalar of one element.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "sluice/core/check.h"

namespace sluice {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  constexpr Shape() noexcept = default;
  /// Takes extents that are known to be sane. Untrusted ones go through `make`.
  constexpr Shape(std::initializer_list<std::int64_t> dims) noexcept {
    SLUICE_DCHECK(dims.size() <= kMaxRank, "a shape holds at most kMaxRank extents");
    for (std::int64_t dim : dims) dims_[static_cast<std::size_t>(rank_++)] = dim;
  }

  /// Nothing when there are too many extents, one is negative, or their product overflows.
  static std::optional<Shape> make(std::span<const std::int64_t> dims) noexcept;

  constexpr int rank() const noexcept { return rank_; }
  constexpr std::int64_t operator[](int axis) const noexcept { return dims_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t& operator[](int axis) noexcept { return dims_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t back() const noexcept { return rank_ == 0 ? 1 : dims_[static_cast<std::size_t>(rank_ - 1)]; }
  constexpr std::span<const std::int64_t> dims() const noexcept { return {dims_.data(), static_cast<std::size_t>(rank_)}; }

  constexpr std::int64_t element_count() const noexcept { return count(0, rank_); }
  /// The product of the extents of axes [first, last).
  constexpr std::int64_t count(int first, int last) const noexcept {
    std::int64_t product = 1;
    for (int axis = first; axis < last; ++axis) product *= dims_[static_cast<std::size_t>(axis)];
    return product;
  }

  /// "1x224x224x3"; "scalar" for rank 0.
  std::string to_string() const;

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int axis = 0; axis < a.rank_; ++axis)
      if (a[axis] != b[axis]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace sluice
