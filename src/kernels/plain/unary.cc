// One value in, one value out.
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

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

template <bool kCosine>
PlainRefusal run_wave(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  vector_table(active_isa()).wave(kCosine, node.in(0).as<const float>(), out.as<float>(), out.count());
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
constexpr Functions kAcos = real([](float x, float, float) { return std::acos(x); });
constexpr Functions kAcosh = real([](float x, float, float) { return std::acosh(x); });
constexpr Functions kAsin = real([](float x, float, float) { return std::asin(x); });
constexpr Functions kAsinh = real([](float x, float, float) { return std::asinh(x); });
constexpr Functions kAtan = real([](float x, float, float) { return std::atan(x); });
constexpr Functions kAtanh = real([](float x, float, float) { return std::atanh(x); });
constexpr Functions kCosh = real([](float x, float, float) { return std::cosh(x); });
constexpr Functions kSinh = real([](float x, float, float) { return std::sinh(x); });
constexpr Functions kTan = real([](float x, float, float) { return std::tan(x); });
/// To the nearest, halves to even: beyond 2^23 there is nothing behind the point, and a sum with it loses what there is.
constexpr Functions kRound = real([](float x, float, float) {
  const float magnitude = std::fabs(x), rounded = std::copysign(magnitude + 0x1p23f - 0x1p23f, x);
  return magnitude < 0x1p23f ? rounded : x;
});
constexpr Functions kSelu = real([](float x, float a, float b) { return x > 0 ? b * x : b * (a * std::expm1(x)); });
constexpr Functions kCelu = real([](float x, float a, float) { return std::max(0.0f, x) + std::min(0.0f, a * std::expm1(x / a)); });
constexpr Functions kShrink = real([](float x, float a, float b) { return x < -b ? x + a : x > b ? x - a : 0.0f; });
constexpr Functions kThresholdedRelu = real([](float x, float a, float) { return x > a ? x : 0.0f; });
constexpr Functions kSoftsign = real([](float x, float, float) { return x / (1.0f + std::fabs(x)); });
constexpr Functions kMish = real([](float x, float, float) { return x * std::tanh(std::log1p(std::exp(x))); });
constexpr Functions kSwish = real([](float x, float a, float) { return x / (1.0f + std::exp(-a * x)); });
constexpr Functions kGeluTanh =
    real([](float x, float, float) { return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); });

constexpr GenericKernel kKernels[] = {
    {"Abs", run<kAbs>},           {"Neg", run<kNeg>},         {"Sign", run<kSign>},
    {"Relu", run<kRelu>},         {"Not", run<kNot>},         {"BitwiseNot", run<kBitwiseNot>},
    {"IsNaN", run<kIsNan>},       {"IsInf", run<kIsInf>},     {"Acos", run<kAcos>},
    {"Acosh", run<kAcosh>},       {"Asin", run<kAsin>},       {"Asinh", run<kAsinh>},
    {"Atan", run<kAtan>},         {"Atanh", run<kAtanh>},     {"Cos", run_wave<true>},
    {"Cosh", run<kCosh>},         {"Sin", run_wave<false>},   {"Sinh", run<kSinh>},
    {"Tan", run<kTan>},           {"Round", run<kRound>},     {"Selu", run<kSelu>},
    {"Celu", run<kCelu>},         {"Shrink", run<kShrink>},   {"ThresholdedRelu", run<kThresholdedRelu>},
    {"Softsign", run<kSoftsign>}, {"Mish", run<kMish>},       {"Swish", run<kSwish>},
    {"GeluTanh", run<kGeluTanh>}, {"Identity", run_identity},
};

}  // namespace

std::span<const GenericKernel> unary_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
