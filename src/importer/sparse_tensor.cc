#include "src/importer/sparse_tensor.h"

#include <cstring>

#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

/// The place in row-major order of the i-th value: stated so, or by an index on each axis.
std::int64_t place_of(const Constant& indices, const Shape& shape, std::int64_t i) {
  if (indices.shape.rank() == 1) return read_integer(indices, i);
  std::int64_t place = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t index = read_integer(indices, i * shape.rank() + axis);
    if (index < 0 || index >= shape[axis]) refuse_malformed("a value of a sparse tensor lies outside of it");
    place = place * shape[axis] + index;
  }
  return place;
}

/// One zero of the type, however many are declared.
Constant zeros(DType dtype, const Shape& shape) {
  auto zero = std::make_shared<std::array<std::byte, sizeof(double)>>();
  return broadcast(make_view(dtype, Shape{}, zero->data(), zero), shape);
}

}  // namespace

Shape shape_of_sparse(const Constant& values, const Constant& indices, std::span<const std::int64_t> dims) {
  const auto shape = Shape::make(dims);
  if (!shape) refuse_malformed("a sparse tensor has a negative or overflowing extent");
  if (values.shape.rank() != 1) refuse_malformed("a sparse tensor's values are no list");
  const std::int64_t count = values.elements();
  const bool listed = indices.shape.rank() == 1 && indices.shape[0] == count;
  const bool by_axis = indices.shape.rank() == 2 && indices.shape[0] == count && indices.shape[1] == shape->rank();
  if (indices.dtype != DType::kI64 || (!listed && !by_axis)) refuse_malformed("a sparse tensor has not one place for each value");
  return *shape;
}

Constant dense_of(const Constant& values, const Constant& indices, const Shape& shape) {
  const std::int64_t count = values.elements();
  if (count == 0) return zeros(values.dtype, shape);
  const std::size_t size = size_of(values.dtype);
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(shape.element_count()) * size);
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = place_of(indices, shape, i);
    if (place <= before || place >= shape.element_count()) refuse_malformed("a sparse tensor's places do not rise, or lie outside of it");
    std::memcpy(bytes->data() + static_cast<std::size_t>(place) * size, values.data + static_cast<std::size_t>(i) * size, size);
    before = place;
  }
  Constant dense = make_view(values.dtype, shape, bytes->data(), bytes);
  dense.bits = values.bits;
  return dense;
}

}  // namespace sluice::importer
