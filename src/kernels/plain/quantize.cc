// Between reals and the integers that stand for them: y = saturate(round(x / scale) + zero_point).
#include "sluice/operators/generic/quantize.h"

#include <algorithm>

#include "src/kernels/integer/tile.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::quantize;
namespace {

/// Bytes of one scale, by the loops of the class int8, which know u8 alone: an i8 is the u8 of a zero point that is 128 larger, less 128.
void quantize_bytes(const float* from, float scale, std::int64_t zero, bool is_signed, std::uint8_t* to, std::int64_t count) noexcept {
  constexpr std::int64_t kPart = 4096;  // which the nearest cache holds
  const integer::TileTable& table = integer::table_of(active_isa());
  const operators::IntegerBorderParameters border{scale, static_cast<std::uint8_t>(is_signed ? zero + 128 : zero)};
  if (!is_signed) return table.quantize(border, from, to, count);
  for (std::int64_t first = 0; first < count; first += kPart) {
    const std::int64_t some = std::min(kPart, count - first);
    std::uint8_t* const part = to + first;
    table.quantize(border, from + first, part, some);
    for (std::int64_t i = 0; i < some; ++i) part[i] ^= 0x80;
  }
}

PlainRefusal run_quantize(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Scales scales;
  scales_of(node, scales);
  const PlainTensor& x = node.in(0);
  const std::int64_t count = out.count();
  const auto each_run = [&](const auto& quantize) {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t s = scales.at(i), end = i + scales.run(i, count);
      quantize(i, end, node.in(1).as<const float>()[s], node.has(2) ? integer_at(node.in(2), s) : 0);
      i = end;
    }
  };
  constexpr std::int64_t kLeastRun = 16;  // of values that earn a call each
  const bool is_signed = out.dtype == DType::kI8;
  if (is_f32(x.dtype) && (is_signed || out.dtype == DType::kU8) && scales.run(0, count) >= kLeastRun) {
    each_run([&](std::int64_t i, std::int64_t end, float scale, std::int64_t zero) {
      quantize_bytes(x.as<const float>() + i, scale, zero, is_signed, out.as<std::uint8_t>() + i, end - i);
    });
    return nullptr;
  }
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    T* const to = out.as<T>();  // a local: bytes written through it may be anything's
    const auto quantize = [&, to](const auto* from) {
      each_run([&, to, from](std::int64_t i, std::int64_t end, float scale, std::int64_t zero) {
        for (; i < end; ++i) to[i] = quantized<T>(static_cast<float>(from[i]) / scale, zero);
      });
    };
    is_f32(x.dtype) ? quantize(x.as<const float>()) : quantize(x.as<const std::int32_t>());
  });
  return nullptr;
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

PlainRefusal run_dynamic(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const std::int64_t count = x.count();
  const auto* const values = x.as<const float>();
  float low = 0, high = 0;
  vector_table(active_isa()).range_with_zero(values, count, low, high);
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const std::int64_t zero = whole(std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f)));
  if (node.result() == 1) *out.as<float>() = scale;
  if (node.result() == 2) *out.as<std::uint8_t>() = static_cast<std::uint8_t>(zero);
  if (node.result() == 0)
    integer::table_of(active_isa()).quantize({scale, static_cast<std::uint8_t>(zero)}, values, out.as<std::uint8_t>(), count);
  return nullptr;
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

constexpr GenericKernel kQuantizeKernels[] = {
    {"QuantizeLinear", run_quantize},           {"DequantizeLinear", run_dequantize},       {"DynamicQuantizeLinear", run_dynamic},
    {"com.microsoft::QLinearAdd", run_qlinear}, {"com.microsoft::QLinearMul", run_qlinear},
};

}  // namespace

std::span<const GenericKernel> quantize_kernels() noexcept { return kQuantizeKernels; }

}  // namespace sluice::kernels::plain
