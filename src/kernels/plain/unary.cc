// One value in, one value out.
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/plain/curves.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

using RealFunction = float (*)(float x, float a, float b);
using IntegerFunction = std::int64_t (*)(std::int64_t x);

struct Functions {
  RealFunction real = nullptr;
  IntegerFunction integer = nullptr;
  Function kind = Function::kNone;  // what kUnary calls it: then vectors of it are at hand, with the same bits
};

/// `functions` is a constant, so that a function without a name for vectors is at least no call an element.
template <const Functions& functions>
PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const bool to_bool = out.dtype == DType::kBool;
  const std::int64_t count = x.count();
  if (is_f32(x.dtype)) {
    if constexpr (functions.kind != Function::kNone || functions.real != nullptr) {
      const auto a = static_cast<float>(node.real(0)), b = static_cast<float>(node.real(1));
      const auto* from = x.as<const float>();
      if constexpr (functions.kind != Function::kNone) {
        elementwise::run_table(active_isa()).unary({functions.kind, a, b}, from, out.as<float>(), count);
      } else if (to_bool) {
        auto* const to = out.as<std::uint8_t>();
        for (std::int64_t i = 0; i < count; ++i) to[i] = functions.real(from[i], a, b) != 0.0f;
      } else {
        float* const to = out.as<float>();
        for (std::int64_t i = 0; i < count; ++i) to[i] = functions.real(from[i], a, b);
      }
    }
    return nullptr;
  }
  if constexpr (functions.integer != nullptr) {
    with_type(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto* from = x.as<const T>();
      if (to_bool) {
        auto* const to = out.as<std::uint8_t>();
        for (std::int64_t i = 0; i < count; ++i) to[i] = functions.integer(static_cast<std::int64_t>(from[i])) != 0;
      } else {
        auto* const to = out.as<T>();
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(functions.integer(static_cast<std::int64_t>(from[i])));
      }
    });
  }
  return nullptr;
}

/// Reals alone.
template <Curve curve>
PlainRefusal run_curve(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const auto a = static_cast<float>(node.real(0)), b = static_cast<float>(node.real(1));
  curve_run(active_isa())({curve, a, b}, node.in(0).as<const float>(), out.as<float>(), out.count());
  return nullptr;
}

PlainRefusal run_identity(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

constexpr Functions real(RealFunction f) noexcept { return {f, nullptr}; }

constexpr Functions kAbs{nullptr, [](std::int64_t x) { return x < 0 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)) : x; },
                         Function::kAbs};
constexpr Functions kNeg{nullptr, [](std::int64_t x) { return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)); },
                         Function::kNeg};
constexpr Functions kSign{[](float x, float, float) { return x > 0   ? 1.0f
                                                             : x < 0 ? -1.0f
                                                                     : x; },
                          [](std::int64_t x) { return std::int64_t{x > 0} - std::int64_t{x < 0}; }};
constexpr Functions kRelu{nullptr, [](std::int64_t x) { return x > 0 ? x : 0; }, Function::kRelu};
constexpr Functions kNot{nullptr, [](std::int64_t x) { return std::int64_t{x == 0}; }};
constexpr Functions kBitwiseNot{nullptr, [](std::int64_t x) { return ~x; }};
constexpr Functions kIsNan{[](float x, float, float) { return std::isnan(x) ? 1.0f : 0.0f; }, nullptr};
// a, b: are minus and plus infinity looked for?
constexpr Functions kIsInf{[](float x, float a, float b) { return std::isinf(x) && (x < 0 ? a : b) != 0.0f ? 1.0f : 0.0f; }, nullptr};
/// To the nearest, halves to even: beyond 2^23 there is nothing behind the point, and a sum with it loses what there is.
constexpr Functions kRound = real([](float x, float, float) {
  const float magnitude = std::fabs(x), rounded = std::copysign(magnitude + 0x1p23f - 0x1p23f, x);
  return magnitude < 0x1p23f ? rounded : x;
});
constexpr Functions kCelu = real([](float x, float a, float) { return std::max(0.0f, x) + std::min(0.0f, a * std::expm1(x / a)); });
constexpr Functions kShrink = real([](float x, float a, float b) { return x < -b ? x + a : x > b ? x - a : 0.0f; });
constexpr Functions kThresholdedRelu = real([](float x, float a, float) { return x > a ? x : 0.0f; });
constexpr Functions kGeluTanh{nullptr, nullptr, Function::kGeluTanh};

/// A scale above zero is what its definition has in mind: that has vectors.
PlainRefusal run_celu(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  return node.real(0) > 0 ? run_curve<Curve::kCelu>(node, out, scratch) : run<kCelu>(node, out, scratch);
}

constexpr GenericKernel kUnaryKernels[] = {
    {"Abs", run<kAbs>},
    {"Neg", run<kNeg>},
    {"Sign", run<kSign>},
    {"Relu", run<kRelu>},
    {"Not", run<kNot>},
    {"BitwiseNot", run<kBitwiseNot>},
    {"IsNaN", run<kIsNan>},
    {"IsInf", run<kIsInf>},
    {"Acos", run_curve<Curve::kAcos>},
    {"Acosh", run_curve<Curve::kAcosh>},
    {"Asin", run_curve<Curve::kAsin>},
    {"Asinh", run_curve<Curve::kAsinh>},
    {"Atan", run_curve<Curve::kAtan>},
    {"Atanh", run_curve<Curve::kAtanh>},
    {"Cos", run_curve<Curve::kCos>},
    {"Cosh", run_curve<Curve::kCosh>},
    {"Sin", run_curve<Curve::kSin>},
    {"Sinh", run_curve<Curve::kSinh>},
    {"Tan", run_curve<Curve::kTan>},
    {"Round", run<kRound>},
    {"Selu", run_curve<Curve::kSelu>},
    {"Celu", run_celu},
    {"Shrink", run<kShrink>},
    {"ThresholdedRelu", run<kThresholdedRelu>},
    {"Softsign", run_curve<Curve::kSoftsign>},
    {"Mish", run_curve<Curve::kMish>},
    {"Swish", run_curve<Curve::kSwish>},
    {"GeluTanh", run<kGeluTanh>},
    {"Identity", run_identity},
};

}  // namespace

std::span<const GenericKernel> unary_kernels() noexcept { return kUnaryKernels; }

}  // namespace sluice::kernels::plain
