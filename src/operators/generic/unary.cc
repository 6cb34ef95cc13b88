// One value in, one value out.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

// Of one value a truth is a whole number.
constexpr Takes kReals{.reals = true}, kClass{.reals = true, .to_bool = true}, kTruth{.integers = true, .to_bool = true};

PlainRefusal infer_unary(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Takes& takes = taken_by(node);
  const PlainTensor& x = node.in(0);
  const bool whole = is_integer(x.dtype) || x.dtype == DType::kBool;
  if (!(is_f32(x.dtype) && takes.reals) && !(whole && takes.integers)) return kWrongType;
  out = {takes.to_bool ? DType::kBool : x.dtype, x.shape};
  return nullptr;
}

PlainRefusal infer_identity(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

constexpr PlainOperator unary(std::uint16_t number, std::string_view name, const Takes& takes, std::string_view arguments = "") noexcept {
  return {number, name, arguments, infer_unary, &takes};
}

constexpr PlainOperator kUnaryOperators[] = {
    unary(1, "Abs", kNumbers),
    unary(2, "Neg", kNumbers),
    unary(3, "Sign", kNumbers),
    unary(4, "Relu", kNumbers),
    unary(5, "Not", kTruth),
    unary(6, "BitwiseNot", kWhole),
    unary(7, "IsNaN", kClass),
    unary(8, "IsInf", kClass, "detect_negative:r=1 detect_positive:r=1"),
    unary(9, "Acos", kReals),
    unary(10, "Acosh", kReals),
    unary(11, "Asin", kReals),
    unary(12, "Asinh", kReals),
    unary(13, "Atan", kReals),
    unary(14, "Atanh", kReals),
    unary(15, "Cos", kReals),
    unary(16, "Cosh", kReals),
    unary(17, "Sin", kReals),
    unary(18, "Sinh", kReals),
    unary(19, "Tan", kReals),
    unary(20, "Round", kReals),
    unary(21, "Selu", kReals, "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875"),
    unary(22, "Celu", kReals, "alpha:f=1"),
    unary(23, "Shrink", kReals, "bias:f=0 lambd:f=0.5"),
    unary(24, "ThresholdedRelu", kReals, "alpha:f=1"),
    unary(25, "Softsign", kReals),
    unary(26, "Mish", kReals),
    unary(27, "Swish", kReals, "alpha:f=1"),
    unary(28, "GeluTanh", kReals),
    {29, "Identity", "", infer_identity},
};

}  // namespace

std::span<const PlainOperator> unary_operators() noexcept { return kUnaryOperators; }

}  // namespace sluice::operators::generic
