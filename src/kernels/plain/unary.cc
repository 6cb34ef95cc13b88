// One value in, one value out.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

using RealFunction = float (*)(float x, float a, float b);
using IntegerFunction = std::int64_t (*)(std::int64_t x);

struct Functions {
  RealFunction real = nullptr;
  IntegerFunction integer = nullptr;
  bool to_bool = false;  // the result is a truth
};

const Functions& functions_of(const PlainNode& node) noexcept { return *static_cast<const Functions*>(node.op().detail); }

PlainRefusal infer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Functions& f = functions_of(node);
  const PlainTensor& x = node.in(0);
  const bool whole = is_integer(x.dtype) || x.dtype == DType::kBool;
  if (!(is_f32(x.dtype) && f.real != nullptr) && !(whole && f.integer != nullptr)) return kWrongType;
  out = {f.to_bool ? DType::kBool : x.dtype, x.shape};
  return nullptr;
}

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Functions& f = functions_of(node);
  const PlainTensor& x = node.in(0);
  const std::int64_t count = x.count();
  if (is_f32(x.dtype)) {
    const auto a = static_cast<float>(node.real(0)), b = static_cast<float>(node.real(1));
    const auto* from = x.as<const float>();
    for (std::int64_t i = 0; i < count; ++i) {
      const float y = f.real(from[i], a, b);
      if (f.to_bool)
        out.as<std::uint8_t>()[i] = y != 0.0f;
      else
        out.as<float>()[i] = y;
    }
    return nullptr;
  }
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t y = f.integer(static_cast<std::int64_t>(x.as<const T>()[i]));
      if (f.to_bool)
        out.as<std::uint8_t>()[i] = y != 0;
      else
        out.as<T>()[i] = static_cast<T>(y);
    }
  });
  return nullptr;
}

PlainRefusal infer_identity(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

PlainRefusal run_identity(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

constexpr Functions real(RealFunction f) noexcept { return {f, nullptr, false}; }

constexpr Functions kAbs{[](float x, float, float) { return std::fabs(x); },
                         [](std::int64_t x) { return x < 0 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)) : x; }};
constexpr Functions kNeg{[](float x, float, float) { return -x; },
                         [](std::int64_t x) { return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)); }};
constexpr Functions kSign{[](float x, float, float) { return x > 0   ? 1.0f
                                                             : x < 0 ? -1.0f
                                                                     : x; },
                          [](std::int64_t x) { return std::int64_t{x > 0} - std::int64_t{x < 0}; }};
constexpr Functions kRelu{[](float x, float, float) { return x > 0 ? x : 0.0f; }, [](std::int64_t x) { return x > 0 ? x : 0; }};
constexpr Functions kNot{nullptr, [](std::int64_t x) { return std::int64_t{x == 0}; }, true};
constexpr Functions kBitwiseNot{nullptr, [](std::int64_t x) { return ~x; }};
constexpr Functions kIsNan{[](float x, float, float) { return std::isnan(x) ? 1.0f : 0.0f; }, nullptr, true};
// a, b: are minus and plus infinity looked for?
constexpr Functions kIsInf{[](float x, float a, float b) { return std::isinf(x) && (x < 0 ? a : b) != 0.0f ? 1.0f : 0.0f; }, nullptr, true};
constexpr Functions kAcos = real([](float x, float, float) { return std::acos(x); });
constexpr Functions kAcosh = real([](float x, float, float) { return std::acosh(x); });
constexpr Functions kAsin = real([](float x, float, float) { return std::asin(x); });
constexpr Functions kAsinh = real([](float x, float, float) { return std::asinh(x); });
constexpr Functions kAtan = real([](float x, float, float) { return std::atan(x); });
constexpr Functions kAtanh = real([](float x, float, float) { return std::atanh(x); });
constexpr Functions kCos = real([](float x, float, float) { return std::cos(x); });
constexpr Functions kCosh = real([](float x, float, float) { return std::cosh(x); });
constexpr Functions kSin = real([](float x, float, float) { return std::sin(x); });
constexpr Functions kSinh = real([](float x, float, float) { return std::sinh(x); });
constexpr Functions kTan = real([](float x, float, float) { return std::tan(x); });
constexpr Functions kRound = real([](float x, float, float) { return std::nearbyint(x); });
constexpr Functions kSelu = real([](float x, float a, float b) { return x > 0 ? b * x : b * (a * std::expm1(x)); });
constexpr Functions kCelu = real([](float x, float a, float) { return std::max(0.0f, x) + std::min(0.0f, a * std::expm1(x / a)); });
constexpr Functions kShrink = real([](float x, float a, float b) { return x < -b ? x + a : x > b ? x - a : 0.0f; });
constexpr Functions kThresholdedRelu = real([](float x, float a, float) { return x > a ? x : 0.0f; });
constexpr Functions kSoftsign = real([](float x, float, float) { return x / (1.0f + std::fabs(x)); });
constexpr Functions kMish = real([](float x, float, float) { return x * std::tanh(std::log1p(std::exp(x))); });
constexpr Functions kSwish = real([](float x, float a, float) { return x / (1.0f + std::exp(-a * x)); });
constexpr Functions kGeluTanh =
    real([](float x, float, float) { return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); });

constexpr PlainOperator line(std::uint16_t number, std::string_view name, const Functions& f, std::string_view arguments = "") noexcept {
  return {number, name, arguments, infer, run, nullptr, &f};
}

constexpr PlainOperator kOperators[] = {
    line(1, "Abs", kAbs),
    line(2, "Neg", kNeg),
    line(3, "Sign", kSign),
    line(4, "Relu", kRelu),
    line(5, "Not", kNot),
    line(6, "BitwiseNot", kBitwiseNot),
    line(7, "IsNaN", kIsNan),
    line(8, "IsInf", kIsInf, "detect_negative:r=1 detect_positive:r=1"),
    line(9, "Acos", kAcos),
    line(10, "Acosh", kAcosh),
    line(11, "Asin", kAsin),
    line(12, "Asinh", kAsinh),
    line(13, "Atan", kAtan),
    line(14, "Atanh", kAtanh),
    line(15, "Cos", kCos),
    line(16, "Cosh", kCosh),
    line(17, "Sin", kSin),
    line(18, "Sinh", kSinh),
    line(19, "Tan", kTan),
    line(20, "Round", kRound),
    line(21, "Selu", kSelu, "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875"),
    line(22, "Celu", kCelu, "alpha:f=1"),
    line(23, "Shrink", kShrink, "bias:f=0 lambd:f=0.5"),
    line(24, "ThresholdedRelu", kThresholdedRelu, "alpha:f=1"),
    line(25, "Softsign", kSoftsign),
    line(26, "Mish", kMish),
    line(27, "Swish", kSwish, "alpha:f=1"),
    line(28, "GeluTanh", kGeluTanh),
    {29, "Identity", "", infer_identity, run_identity},
};

}  // namespace

std::span<const PlainOperator> unary_operators() noexcept { return kOperators; }

}  // namespace sluice::kernels::plain
