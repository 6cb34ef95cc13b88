// A tensor in ordinary memory: what files hold and what a session's ports take and give. Row-major, ONNX order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"

namespace sluice::cli {

/// Invariant: data.size() == shape.element_count() * size_of(dtype).
struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> data;

  template <class T>
  std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  template <class T>
  std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
};

/// Zeros. Throws Failure when `shape` does not fit this machine.
HostTensor make_host_tensor(DType dtype, const Shape& shape);

/// The bytes of a tensor, or a Failure (kInvalidArgument, naming `what`) when they exceed 2^40: nothing that large is ever meant.
std::size_t checked_size(DType dtype, const Shape& shape, const std::string& what);

/// Converts the values to another type. Floats widen and narrow, integers become floats, integers change width while every value fits.
/// Floats never become integers: that would change the values. Throws Failure (kInvalidArgument) with `what` as its subject.
HostTensor convert_values(HostTensor tensor, DType dtype, const std::string& what);

/// The value of element `index` as a double (64-bit integers beyond 2^53 round).
double value_at(DType dtype, const std::byte* data, std::size_t index);
inline double value_at(const HostTensor& tensor, std::size_t index) { return value_at(tensor.dtype, tensor.data.data(), index); }

/// Whether the extents are the same once those of 1 are left out: [28, 28] fits [1, 1, 28, 28].
bool same_apart_from_ones(const Shape& a, const Shape& b) noexcept;

/// "[1, 3, 224, 224]".
std::string shape_text(const Shape& shape);

}  // namespace sluice::cli
