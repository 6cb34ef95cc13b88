#include "sluice/core/shape.h"

#include "sluice/core/units.h"

namespace sluice {

std::optional<Shape> Shape::make(std::span<const std::int64_t> dims) noexcept {
  if (dims.size() > kMaxRank) return std::nullopt;
  Shape shape;
  std::uint64_t product = 1;
  for (std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    shape.dims_[static_cast<std::size_t>(shape.rank_++)] = dim;
    // An extent of zero makes the count zero, but the others still may not overflow: strides are products of them.
    if (dim == 0) continue;
    const auto next = checked_mul(product, static_cast<std::uint64_t>(dim));
    if (!next || *next > (std::uint64_t{1} << 62)) return std::nullopt;
    product = *next;
  }
  return shape;
}

std::string Shape::to_string() const {
  if (rank_ == 0) return "scalar";
  std::string text;
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string(dims_[static_cast<std::size_t>(axis)]);
  }
  return text;
}

}  // namespace sluice
