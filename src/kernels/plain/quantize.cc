// Between reals and the integers that stand for them: y = saturate(round(x / scale) + zero_point).
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

bool storable(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16; }

/// How scales lie along the tensor: one for all, one for each place of an axis, or one for each block of an axis.
struct Scales {
  AxisView view;
  std::int64_t block = 0;  // places of the axis that share a scale; 0: one scale for all
  std::int64_t at(std::int64_t element) const noexcept {
    if (block == 0) return 0;
    const std::int64_t place = element / view.inner % view.extent;
    if (block == 1 && !blocked) return place;
    return (element / (view.inner * view.extent) * ceil_blocks() + place / block) * view.inner + element % view.inner;
  }
  std::int64_t ceil_blocks() const noexcept { return (view.extent + block - 1) / block; }
  bool blocked = false;
  /// How many elements from `element` on have the scale of that one, of `count` in all; blocks: as if only it had.
  std::int64_t run(std::int64_t element, std::int64_t count) const noexcept {
    if (block == 0) return count - element;
    return blocked ? 1 : view.inner - element % view.inner;
  }
};

/// `axis` and `block_size` are arguments 0 and 1.
bool scales_of(const PlainNode& node, Scales& scales) noexcept {
  const Shape &x = node.in(0).shape, &s = node.in(1).shape;
  if (node.has(2) && !(node.in(2).shape == s) && node.in(2).count() != s.element_count()) return false;
  if (s.element_count() == 1 && node.integer(1) == 0) return true;
  const int axis = axis_of(node.integer(0), x.rank());
  if (axis < 0) return false;
  scales.view = axis_view(x, axis);
  scales.block = 1;
  if (node.integer(1) == 0) return s.rank() == 1 && s[0] == x[axis];
  scales.block = node.integer(1);
  scales.blocked = true;
  if (scales.block < 1 || scales.block > (std::int64_t{1} << 30) || s.rank() != x.rank()) return false;
  for (int a = 0; a < x.rank(); ++a)
    if (s[a] != (a == axis ? scales.ceil_blocks() : x[a])) return false;
  return true;
}

PlainRefusal infer_quantize(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!(is_f32(node.in(0).dtype) || node.in(0).dtype == DType::kI32) || !is_f32(node.in(1).dtype)) return kWrongType;
  DType named = DType::kU8;
  if (const std::int64_t type = node.integer(2); type != 0)
    named = type == 2 ? DType::kU8 : type == 3 ? DType::kI8 : type == 4 ? DType::kU16 : type == 5 ? DType::kI16 : DType::kF32;
  out = {node.has(2) ? node.in(2).dtype : named, node.in(0).shape};
  if (!storable(out.dtype)) return kWrongType;
  Scales scales;
  return scales_of(node, scales) ? nullptr : kWrongShape;
}

PlainRefusal run_quantize(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Scales scales;
  scales_of(node, scales);
  const PlainTensor& x = node.in(0);
  const std::int64_t count = out.count();
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    T* const to = out.as<T>();  // a local: bytes written through it may be anything's
    const auto quantize = [&, to](const auto* from) {
      for (std::int64_t i = 0; i < count;) {
        const std::int64_t s = scales.at(i), end = i + scales.run(i, count);
        const std::int64_t zero = node.has(2) ? integer_at(node.in(2), s) : 0;
        const float scale = node.in(1).as<const float>()[s];
        for (; i < end; ++i) to[i] = quantized<T>(static_cast<float>(from[i]) / scale, zero);
      }
    };
    is_f32(x.dtype) ? quantize(x.as<const float>()) : quantize(x.as<const std::int32_t>());
  });
  return nullptr;
}

PlainRefusal infer_dequantize(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const DType from = node.in(0).dtype;
  if ((!storable(from) && from != DType::kI32) || !is_f32(node.in(1).dtype)) return kWrongType;
  if (node.has(2) && node.in(2).dtype != from) return kWrongType;
  out = {DType::kF32, node.in(0).shape};
  Scales scales;
  return scales_of(node, scales) ? nullptr : kWrongShape;
}

PlainRefusal run_dequantize(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Scales scales;
  scales_of(node, scales);
  const std::int64_t count = out.count();
  with_type(node.in(0).dtype, [&](auto type) {
    using Wide = std::conditional_t<sizeof(type) <= 2, std::int32_t, std::int64_t>;  // holds differences; vectors convert the shorter
    const auto* from = node.in(0).as<const decltype(type)>();
    auto* const to = out.as<float>();
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t s = scales.at(i), end = i + scales.run(i, count);
      const std::int64_t zero = node.has(2) ? integer_at(node.in(2), s) : 0;
      const float scale = node.in(1).as<const float>()[s];
      for (; i < end; ++i) to[i] = static_cast<float>(static_cast<Wide>(from[i]) - static_cast<Wide>(zero)) * scale;
    }
  });
  return nullptr;
}

// ---- DynamicQuantizeLinear: y, scale, zero point

PlainRefusal infer_dynamic(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  out.dtype = node.result() == 1 ? DType::kF32 : DType::kU8;
  out.shape = node.result() == 0 ? node.in(0).shape : Shape{};
  return nullptr;
}

PlainRefusal run_dynamic(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t count = x.count();
  float low = 0, high = 0;  // zero must have a place of its own
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::min(low, x.as<const float>()[i]);
    high = std::max(high, x.as<const float>()[i]);
  }
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const std::int64_t zero = whole(std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f)));
  if (node.result() == 1) *out.as<float>() = scale;
  if (node.result() == 2) *out.as<std::uint8_t>() = static_cast<std::uint8_t>(zero);
  if (node.result() == 0)
    for (std::int64_t i = 0; i < count; ++i) store_quantized(out, i, x.as<const float>()[i] / scale, zero);
  return nullptr;
}

// ---- com.microsoft QLinearAdd, QLinearMul: A, its scale and zero point, B the same, C's scale and zero point

constexpr bool kAdds = true, kMultiplies = false;

PlainRefusal infer_qlinear(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 3, 4, 6})
    if (!node.has(i)) return kMissingInput;
  for (const int i : {1, 4, 6})
    if (!is_f32(node.in(i).dtype) || node.in(i).count() != 1) return kWrongType;
  for (const int i : {0, 3})
    if (!storable(node.in(i).dtype) || node.in(i).dtype != node.in(0).dtype) return kWrongType;
  for (const int i : {2, 5, 7})
    if (node.has(i) && (node.in(i).dtype != node.in(0).dtype || node.in(i).count() != 1)) return kWrongType;
  out.dtype = node.in(0).dtype;
  return broadcast_to(node.in(0).shape, node.in(3).shape, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_qlinear(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const auto zero = [&](int input) { return node.has(input) ? integer_at(node.in(input), 0) : 0; };
  const auto value = [&](int input, std::int64_t i) {
    return static_cast<float>(integer_at(node.in(input), i) - zero(input + 2)) * *node.in(input + 1).as<const float>();
  };
  const bool adds = *static_cast<const bool*>(node.op().detail);
  walk(out.shape, std::array<Extents, 2>{broadcast_strides(node.in(0).shape, out.shape), broadcast_strides(node.in(3).shape, out.shape)},
       [&](std::int64_t i, const auto& at) {
         const float a = value(0, at[0]), b = value(3, at[1]);
         store_quantized(out, i, (adds ? a + b : a * b) / *node.in(6).as<const float>(), zero(7));
       });
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {340, "QuantizeLinear", "axis:i=1 block_size:i=0 output_dtype:i=0 saturate:i=1", infer_quantize},
    {341, "DequantizeLinear", "axis:i=1 block_size:i=0 output_dtype:i=0", infer_dequantize},
    {342, "DynamicQuantizeLinear", "", infer_dynamic, nullptr, 3},
    {343, "com.microsoft::QLinearAdd", "", infer_qlinear, &kAdds},
    {344, "com.microsoft::QLinearMul", "", infer_qlinear, &kMultiplies},
};

constexpr GenericKernel kKernels[] = {
    {"QuantizeLinear", run_quantize},           {"DequantizeLinear", run_dequantize},       {"DynamicQuantizeLinear", run_dynamic},
    {"com.microsoft::QLinearAdd", run_qlinear}, {"com.microsoft::QLinearMul", run_qlinear},
};

}  // namespace

std::span<const PlainOperator> quantize_operators() noexcept { return kOperators; }
std::span<const GenericKernel> quantize_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
