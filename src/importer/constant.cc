#include "src/importer/constant.h"

#include <cmath>
#include <cstring>

#include "sluice/core/half.h"
#include "src/importer/allowance.h"
#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

template <class T>
T load(const std::byte* data, std::int64_t offset) noexcept {
  T value;
  std::memcpy(&value, data + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

std::shared_ptr<std::vector<std::byte>> allocate(const Shape& shape, DType dtype) {
  count_made(static_cast<std::uint64_t>(shape.element_count()), size_of(dtype));
  return std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(shape.element_count()) * size_of(dtype));
}

/// Before each element is copied to one of `bytes_each`.
void check_foldable(const Constant& c, std::uint64_t bytes_each) {
  if (c.elements() > kMaxFoldedElements)
    refuse_unsupported("a constant of shape " + c.shape.to_string() + " is too large to compute with at import");
  count_made(static_cast<std::uint64_t>(c.elements()), bytes_each);
}

}  // namespace

std::array<std::int64_t, Shape::kMaxRank> dense_strides(const Shape& shape) noexcept {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis] == 0 ? 1 : shape[axis];
  }
  return strides;
}

Constant make_view(DType dtype, const Shape& shape, const std::byte* data, std::shared_ptr<const void> owner) {
  return {.dtype = dtype, .shape = shape, .strides = dense_strides(shape), .data = data, .owner = std::move(owner)};
}

Constant make_constant(const Shape& shape, std::span<const float> values) {
  auto bytes = allocate(shape, DType::kF32);
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), values.size_bytes());
  return make_view(DType::kF32, shape, bytes->data(), bytes);
}

Constant make_constant(const Shape& shape, std::span<const std::int64_t> values, DType dtype) {
  auto bytes = allocate(shape, dtype);
  const std::size_t size = size_of(dtype);
  // Little-endian two's complement: the low bytes of an i64 are the narrower integer.
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(bytes->data() + i * size, &values[i], size);
  return make_view(dtype, shape, bytes->data(), bytes);
}

Constant make_fill(const Shape& shape, float value) {
  Constant c = make_constant(Shape{}, std::span<const float>(&value, 1));
  return broadcast(c, shape);
}

Constant make_absent(DType dtype, const Shape& shape) {
  auto value = std::make_shared<std::array<std::byte, sizeof(double)>>();
  const auto put = [&](auto one) { std::memcpy(value->data(), &one, sizeof one); };
  constexpr std::uint16_t kF16One = 0x3c00, kBF16One = 0x3f80;
  if (dtype == DType::kF32) put(1.0f);
  if (dtype == DType::kF64) put(1.0);
  if (dtype == DType::kF16) put(kF16One);
  if (dtype == DType::kBF16) put(kBF16One);
  Constant c = make_view(dtype, shape, value->data(), value);
  c.strides = {};
  c.absent = true;
  return c;
}

Constant make_drawn(const Shape& shape, std::uint32_t seed) {
  int wide = 0;
  for (const std::int64_t extent : shape.dims()) wide += extent > 1 ? 1 : 0;
  if (wide < 2) return make_absent(DType::kF32, shape);
  // Of recurrent layers the first axis is that of directions, and two follow whose order is not known either.
  const bool two_axes = shape.rank() == 2 || (shape.rank() == 3 && shape[0] <= 2);
  const auto elements = static_cast<double>(shape.element_count());
  const auto first = static_cast<double>(shape[0]);
  const double sums = two_axes ? std::sqrt(shape.rank() == 2 ? elements : elements / first) : elements / first;
  const auto most = static_cast<float>(std::sqrt(6 / sums));  // a variance of 2 / sums, of which a Relu leaves half
  const auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(shape.element_count()));
  std::uint32_t state = seed * 2654435769u + 1;
  for (float& value : *values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f * most;
  }
  return make_view(DType::kF32, shape, reinterpret_cast<const std::byte*>(values->data()), values);
}

Constant permuted(const Constant& c, const Perm& perm) {
  Constant out = c;
  for (int axis = 0; axis < c.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    out.shape[axis] = c.shape[perm[a]];
    out.strides[a] = c.strides[static_cast<std::size_t>(perm[a])];
  }
  return out;
}

Constant broadcast(const Constant& c, const Shape& shape) {
  Constant out = c;
  out.shape = shape;
  const int lead = shape.rank() - c.shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool repeats = axis < lead || (c.shape[axis - lead] == 1 && shape[axis] != 1);
    out.strides[static_cast<std::size_t>(axis)] = repeats ? 0 : c.strides[static_cast<std::size_t>(axis - lead)];
  }
  return out;
}

std::optional<Constant> reshaped(const Constant& c, const Shape& shape) {
  if (c.elements() != shape.element_count()) return std::nullopt;
  Constant out = c;
  out.shape = shape;
  out.strides = dense_strides(shape);
  if (c.elements() <= 1) return out;
  // Blocks of axes with equal products: inside a block the old strides must form one arithmetic run for new strides to exist.
  int i = 0, o = 0;
  const int in_rank = c.shape.rank(), out_rank = shape.rank();
  while (i < in_rank || o < out_rank) {
    const int i0 = i, o0 = o;
    std::int64_t in_product = i < in_rank ? c.shape[i++] : 1;
    std::int64_t out_product = o < out_rank ? shape[o++] : 1;
    while (in_product != out_product) {
      if (in_product < out_product)
        in_product *= c.shape[i++];
      else
        out_product *= shape[o++];
    }
    std::int64_t inner = 0;  // stride of the innermost axis that is not 1
    std::int64_t expected = 0;
    bool first = true;
    for (int axis = i - 1; axis >= i0; --axis) {
      if (c.shape[axis] == 1) continue;
      const std::int64_t stride = c.strides[static_cast<std::size_t>(axis)];
      if (first) {
        inner = stride;
        first = false;
      } else if (stride != expected) {
        return std::nullopt;
      }
      expected = stride * c.shape[axis];
    }
    std::int64_t stride = inner;
    for (int axis = o - 1; axis >= o0; --axis) {
      out.strides[static_cast<std::size_t>(axis)] = stride;
      stride *= shape[axis];
    }
  }
  return out;
}

Constant copied(const Constant& c) {
  check_foldable(c, 0);
  auto bytes = allocate(c.shape, c.dtype);
  write_elements(c, bytes->data());
  Constant copy = make_view(c.dtype, c.shape, bytes->data(), bytes);
  copy.bits = c.bits;
  return copy;
}

Constant reshaped_or_copied(const Constant& c, const Shape& shape) {
  if (auto view = reshaped(c, shape)) return *std::move(view);
  auto dense = reshaped(copied(c), shape);
  if (!dense) refuse_malformed("a constant of shape " + c.shape.to_string() + " cannot become " + shape.to_string());
  return *std::move(dense);
}

Constant with_even_taps(const Constant& c) {
  const bool even = c.shape[2] == 1 || c.shape[3] == 1 || c.strides[2] == c.shape[3] * c.strides[3];
  return even ? c : copied(c);
}

double read_real(const Constant& c, std::int64_t offset) noexcept {
  switch (c.dtype) {
    case DType::kF32:
      return load<float>(c.data, offset);
    case DType::kF16:
      return float_of_f16(load<std::uint16_t>(c.data, offset));
    case DType::kBF16:
      return float_of_bf16(load<std::uint16_t>(c.data, offset));
    case DType::kF64:
      return load<double>(c.data, offset);
    case DType::kU64:
      return static_cast<double>(load<std::uint64_t>(c.data, offset));
    default:
      return static_cast<double>(read_integer(c, offset));
  }
}

std::int64_t read_integer(const Constant& c, std::int64_t offset) noexcept {
  switch (c.dtype) {
    case DType::kI8:
      return load<std::int8_t>(c.data, offset);
    case DType::kU8:
    case DType::kBool:
      return load<std::uint8_t>(c.data, offset);
    case DType::kI16:
      return load<std::int16_t>(c.data, offset);
    case DType::kU16:
      return load<std::uint16_t>(c.data, offset);
    case DType::kI32:
      return load<std::int32_t>(c.data, offset);
    case DType::kU32:
      return load<std::uint32_t>(c.data, offset);
    case DType::kI64:
    case DType::kU64:
      return load<std::int64_t>(c.data, offset);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
      break;
  }
  // The conversion of a real that no i64 holds is undefined: cut it first.
  const double value = read_real(c, offset);
  if (!(value > -9.2e18)) return value == value ? INT64_MIN : 0;
  if (!(value < 9.2e18)) return INT64_MAX;
  return static_cast<std::int64_t>(value);
}

std::vector<double> reals(const Constant& c) {
  check_foldable(c, sizeof(double));
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(c.elements()));
  for_each_offset(c.shape, c.strides, [&](std::int64_t offset) { values.push_back(read_real(c, offset)); });
  return values;
}

std::vector<std::int64_t> integers(const Constant& c) {
  if (c.absent)
    refuse_unsupported("the values of a constant of shape " + c.shape.to_string() + " are needed, and the file has its shape alone");
  check_foldable(c, sizeof(std::int64_t));
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(c.elements()));
  for_each_offset(c.shape, c.strides, [&](std::int64_t offset) { values.push_back(read_integer(c, offset)); });
  return values;
}

std::vector<float> floats(const Constant& c) {
  check_foldable(c, sizeof(float));
  std::vector<float> values(static_cast<std::size_t>(c.elements()));
  write_floats(c, values);
  return values;
}

std::optional<double> uniform_value(const Constant& c) {
  if (c.elements() == 0 || (c.absent && c.elements() > 1)) return std::nullopt;
  for (int axis = 0; axis < c.shape.rank(); ++axis)
    if (c.shape[axis] != 1 && c.strides[static_cast<std::size_t>(axis)] != 0) return std::nullopt;
  return read_real(c, 0);
}

void write_floats(const Constant& c, std::span<float> out) noexcept {
  if (out.empty()) return;
  if (c.dtype == DType::kF32 && c.strides == dense_strides(c.shape)) {
    std::memcpy(out.data(), c.data, out.size_bytes());
    return;
  }
  std::size_t i = 0;
  for_each_offset(c.shape, c.strides, [&](std::int64_t offset) {
    if (i < out.size()) out[i++] = static_cast<float>(read_real(c, offset));
  });
}

void write_elements(const Constant& c, std::byte* out) noexcept {
  const std::size_t size = size_of(c.dtype);
  for_each_offset(c.shape, c.strides, [&](std::int64_t offset) {
    std::memcpy(out, c.data + offset * static_cast<std::int64_t>(size), size);
    out += size;
  });
}

}  // namespace sluice::importer
