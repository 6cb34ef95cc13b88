// Changes of type, and copies that only repeat.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
namespace {

/// Reals beyond what the integer holds become its ends; the conversion itself would be undefined.
template <class To, class From>
To converted(From value) noexcept {
  if constexpr (std::is_same_v<To, float> || !std::is_same_v<From, float>) {
    return static_cast<To>(value);
  } else {
    // Choices in place of branches: they are vectors.
    constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
    const bool low = value <= static_cast<float>(kLeast), high = value >= static_cast<float>(kMost);
    const To inside = static_cast<To>(low || high || value != value ? 0.0f : value);
    return low ? kLeast : high ? kMost : inside;
  }
}

PlainRefusal run_cast(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t count = x.count();
  if (x.dtype == DType::kF32 && (out.dtype == DType::kI8 || out.dtype == DType::kU8)) {
    vector_table(active_isa()).cut_to_bytes(out.dtype == DType::kI8, x.as<const float>(), out.data, count);
    return nullptr;
  }
  with_type(x.dtype, [&](auto from_zero) {
    using From = decltype(from_zero);
    const auto* from = x.as<const From>();
    if (out.dtype == DType::kBool) {
      auto* const to = out.as<std::uint8_t>();
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] != From{};
      return;
    }
    with_type(out.dtype, [&](auto to_zero) {
      using To = decltype(to_zero);
      auto* const to = out.as<To>();
      for (std::int64_t i = 0; i < count; ++i) to[i] = converted<To>(from[i]);
    });
  });
  return nullptr;
}

PlainRefusal run_bit_cast(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

PlainRefusal run_expand(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  move_strided(node, node.in(0), out, broadcast_strides(node.in(0).shape, out.shape));
  return nullptr;
}

PlainRefusal run_tile(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const Extents from = strides_of(x.shape), to = strides_of(out.shape);
  movement::StridedCopy copy = copy_between(x, out);
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    copy.add(node.list(0)[a], 0, x.shape[axis] * to[a] * copy.element);  // the same values again and again
    copy.add(x.shape[axis], from[a] * copy.element, to[a] * copy.element);
  }
  move(node, copy);
  return nullptr;
}

constexpr GenericKernel kCastKernels[] = {
    {"Cast", run_cast},
    {"BitCast", run_bit_cast},
    {"Expand", run_expand},
    {"Tile", run_tile},
};

}  // namespace

std::span<const GenericKernel> cast_kernels() noexcept { return kCastKernels; }

}  // namespace sluice::kernels::plain
