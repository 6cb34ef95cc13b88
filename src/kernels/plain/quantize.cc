// Between reals and the integers that stand for them: y = saturate(round(x / scale) + zero_point).
#include "sluice/operators/generic/quantize.h"

#include "src/kernels/integer/tile.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/quantized.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::quantize;
namespace {

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
  const VectorTable& vectors = vector_table(active_isa());
  float low = 0, high = 0;  // zero must have a place of its own
  if (count > 0) {
    low = std::min(low, vectors.extreme(false, values, count));
    high = std::max(high, vectors.extreme(true, values, count));
  }
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

constexpr GenericKernel kKernels[] = {
    {"QuantizeLinear", run_quantize},           {"DequantizeLinear", run_dequantize},       {"DynamicQuantizeLinear", run_dynamic},
    {"com.microsoft::QLinearAdd", run_qlinear}, {"com.microsoft::QLinearMul", run_qlinear},
};

}  // namespace

std::span<const GenericKernel> quantize_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
