// Between numpy's types and ours.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"

namespace sluice::python {

/// numpy's type of the same bytes.
inline pybind11::dtype dtype_of(DType dtype) {
  constexpr const char* kNames[kDTypeCount] = {"f4", "f2", "i1", "u1", "i4", "i8", "?", "f8", "i2", "u2", "u4", "u8", "V2"};
  return pybind11::dtype(kNames[static_cast<int>(dtype)]);
}

inline pybind11::tuple tuple_of(const Shape& shape) {
  pybind11::tuple extents(static_cast<std::size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) extents[static_cast<std::size_t>(axis)] = shape[axis];
  return extents;
}

}  // namespace sluice::python
