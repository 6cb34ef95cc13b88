// One value in, one value out.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

/// The types of elements that a function takes, and whether its result is a truth.
struct Takes {
  bool reals = false, integers = false, to_bool = false;
};

constexpr Takes kReals{true, false}, kClass{true, false, true}, kNumbers{true, true}, kWhole{false, true}, kTruth{false, true, true};

const Takes& taken_by(const PlainNode& node) noexcept { return *static_cast<const Takes*>(node.op().detail); }

PlainRefusal infer(const PlainNode& node, PlainTensor& out) noexcept {
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

constexpr PlainOperator line(std::uint16_t number, std::string_view name, const Takes& takes, std::string_view arguments = "") noexcept {
  return {number, name, arguments, infer, &takes};
}

constexpr PlainOperator kOperators[] = {
    line(1, "Abs", kNumbers),
    line(2, "Neg", kNumbers),
    line(3, "Sign", kNumbers),
    line(4, "Relu", kNumbers),
    line(5, "Not", kTruth),
    line(6, "BitwiseNot", kWhole),
    line(7, "IsNaN", kClass),
    line(8, "IsInf", kClass, "detect_negative:r=1 detect_positive:r=1"),
    line(9, "Acos", kReals),
    line(10, "Acosh", kReals),
    line(11, "Asin", kReals),
    line(12, "Asinh", kReals),
    line(13, "Atan", kReals),
    line(14, "Atanh", kReals),
    line(15, "Cos", kReals),
    line(16, "Cosh", kReals),
    line(17, "Sin", kReals),
    line(18, "Sinh", kReals),
    line(19, "Tan", kReals),
    line(20, "Round", kReals),
    line(21, "Selu", kReals, "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875"),
    line(22, "Celu", kReals, "alpha:f=1"),
    line(23, "Shrink", kReals, "bias:f=0 lambd:f=0.5"),
    line(24, "ThresholdedRelu", kReals, "alpha:f=1"),
    line(25, "Softsign", kReals),
    line(26, "Mish", kReals),
    line(27, "Swish", kReals, "alpha:f=1"),
    line(28, "GeluTanh", kReals),
    {29, "Identity", "", infer_identity},
};

}  // namespace

std::span<const PlainOperator> unary_operators() noexcept { return kOperators; }

}  // namespace sluice::operators::generic
