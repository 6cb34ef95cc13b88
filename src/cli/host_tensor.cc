#include "src/cli/host_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "sluice/core/half.h"
#include "src/cli/failure.h"
#include "src/cli/pieces.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

struct Half {
  std::uint16_t bits;
};

/// bf16.
struct Brain {
  std::uint16_t bits;
};

/// Calls `body` with a null pointer of the C++ type that holds `dtype`.
template <class Body>
auto with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(static_cast<float*>(nullptr));
    case DType::kF16:
      return body(static_cast<Half*>(nullptr));
    case DType::kBF16:
      return body(static_cast<Brain*>(nullptr));
    case DType::kF64:
      return body(static_cast<double*>(nullptr));
    case DType::kI8:
      return body(static_cast<std::int8_t*>(nullptr));
    case DType::kI16:
      return body(static_cast<std::int16_t*>(nullptr));
    case DType::kI32:
      return body(static_cast<std::int32_t*>(nullptr));
    case DType::kI64:
      return body(static_cast<std::int64_t*>(nullptr));
    case DType::kU16:
      return body(static_cast<std::uint16_t*>(nullptr));
    case DType::kU32:
      return body(static_cast<std::uint32_t*>(nullptr));
    case DType::kU64:
      return body(static_cast<std::uint64_t*>(nullptr));
    case DType::kU8:
    case DType::kBool:
      break;
  }
  return body(static_cast<std::uint8_t*>(nullptr));
}

template <class T>
T read_element(const std::byte* data, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
auto plain(T value) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return float_of_f16(value.bits);
  } else if constexpr (std::is_same_v<T, Brain>) {
    return float_of_bf16(value.bits);
  } else {
    return value;
  }
}

/// Whether `value` was stored in `out` unchanged (floats may round).
template <class To, class From>
bool store(From value, To& out) noexcept {
  if constexpr (std::is_same_v<To, Half>) {
    out = Half{f16_of_float(static_cast<float>(value))};
    return true;
  } else if constexpr (std::is_same_v<To, Brain>) {
    out = Brain{bf16_of_float(static_cast<float>(value))};
    return true;
  } else if constexpr (std::is_floating_point_v<To>) {
    out = static_cast<To>(value);
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    out = static_cast<To>(value);
    return static_cast<From>(out) == value && (out < To{}) == (value < From{});
  } else {
    return false;
  }
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kF64 || dtype == DType::kBF16;
}

}  // namespace

std::size_t checked_size(DType dtype, const Shape& shape, const std::string& what) {
  constexpr std::int64_t kMost = std::min<std::int64_t>(std::int64_t{1} << 40, std::numeric_limits<std::ptrdiff_t>::max());
  const std::int64_t count = shape.element_count();
  if (count > kMost / static_cast<std::int64_t>(size_of(dtype))) {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: a tensor of {} elements is too large", what, count));
  }
  return static_cast<std::size_t>(count) * size_of(dtype);
}

HostTensor make_host_tensor(DType dtype, const Shape& shape) {
  HostTensor tensor{dtype, shape, {}};
  tensor.data.resize(checked_size(dtype, shape, "tensor"));
  return tensor;
}

HostTensor convert_values(HostTensor tensor, DType dtype, const std::string& what) {
  if (tensor.dtype == dtype) return tensor;
  if (is_float(tensor.dtype) && !is_float(dtype)) {
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} values cannot become {} without changing", what, name_of(tensor.dtype), name_of(dtype)));
  }
  HostTensor result = make_host_tensor(dtype, tensor.shape);
  const std::size_t count = static_cast<std::size_t>(tensor.shape.element_count());
  const bool fits = with_type(tensor.dtype, [&](auto* from_type) {
    using From = std::remove_pointer_t<decltype(from_type)>;
    return with_type(dtype, [&](auto* to_type) {
      using To = std::remove_pointer_t<decltype(to_type)>;
      auto* out = reinterpret_cast<To*>(result.data.data());
      for (std::size_t i = 0; i < count; ++i) {
        if (!store(plain(read_element<From>(tensor.data.data(), i)), out[i])) return false;
        if (dtype == DType::kBool) result.data[i] = std::byte{result.data[i] != std::byte{0}};
      }
      return true;
    });
  });
  if (!fits) {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: a value does not fit the model's type {}", what, name_of(dtype)));
  }
  return result;
}

double value_at(DType dtype, const std::byte* data, std::size_t index) {
  return with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return static_cast<double>(plain(read_element<T>(data, index)));
  });
}

Pieces pieces_of(HostTensor tensor) {
  const auto held = std::make_shared<const HostTensor>(std::move(tensor));
  return {held->dtype, held->shape, [held](std::size_t first, std::span<std::byte> out) {
            std::memcpy(out.data(), held->data.data() + first * size_of(held->dtype), out.size());
          }};
}

bool same_apart_from_ones(const Shape& a, const Shape& b) noexcept {
  int i = 0;
  int j = 0;
  while (true) {
    while (i < a.rank() && a[i] == 1) ++i;
    while (j < b.rank() && b[j] == 1) ++j;
    if (i == a.rank() || j == b.rank()) return i == a.rank() && j == b.rank();
    if (a[i++] != b[j++]) return false;
  }
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + "]";
}

}  // namespace sluice::cli
