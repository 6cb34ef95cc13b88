// Two or three values in, one out, with numpy's broadcasting: arithmetic, comparisons, logic, choice.
#include <functional>

#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

constexpr Takes kTruths{false, false, true, true};

constexpr Takes kOrdered{true, true, false, true}, kComparable{true, true, true, true};

/// Also takes u64, if the kernels have it: is_integer leaves it out.
constexpr bool is_whole(DType dtype) noexcept { return is_integer(dtype) || dtype == DType::kU64; }

PlainRefusal infer_binary(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const PlainTensor &x = node.in(0), &y = node.in(1);
  const Takes& takes = taken_by(node);
  if (x.dtype != y.dtype) return "its inputs are of different types";
  if (!(is_f32(x.dtype) ? takes.reals : x.dtype == DType::kBool ? takes.bools : takes.integers && is_whole(x.dtype))) return kWrongType;
  out.dtype = takes.to_bool ? DType::kBool : x.dtype;
  return broadcast_to(x.shape, y.shape, out.shape) ? nullptr : kWrongShape;
}

// ---- Where, Clip, Pow of mixed types

PlainRefusal infer_where(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1) || !node.has(2)) return kMissingInput;
  const PlainTensor &x = node.in(1), &y = node.in(2);
  if (node.in(0).dtype != DType::kBool || x.dtype != y.dtype) return kWrongType;
  out.dtype = x.dtype;
  Shape both;
  return broadcast_to(x.shape, y.shape, both) && broadcast_to(node.in(0).shape, both, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_clip(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_number(node.in(0).dtype)) return kWrongType;
  for (const int bound : {1, 2})
    if (node.has(bound) && (node.in(bound).dtype != node.in(0).dtype || node.in(bound).count() != 1)) return kWrongType;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

PlainRefusal infer_pow(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  if (!is_number(node.in(0).dtype) || !is_number(node.in(1).dtype)) return kWrongType;
  out.dtype = node.in(0).dtype;
  return broadcast_to(node.in(0).shape, node.in(1).shape, out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator line(std::uint16_t number, std::string_view name, const Takes& takes) noexcept {
  return {number, name, "", infer_binary, &takes};
}

constexpr PlainOperator kBinaryOperators[] = {
    line(100, "Add", kNumbers),      line(101, "Sub", kNumbers),
    line(102, "Mul", kNumbers),      line(103, "Div", kNumbers),
    line(104, "Max2", kNumbers),     line(105, "Min2", kNumbers),
    line(106, "ModPython", kWhole),  line(107, "ModC", kNumbers),
    line(108, "PRelu", kNumbers),    line(109, "BitwiseAnd", kWhole),
    line(110, "BitwiseOr", kWhole),  line(111, "BitwiseXor", kWhole),
    line(112, "ShiftLeft", kWhole),  line(113, "ShiftRight", kWhole),
    line(114, "And", kTruths),       line(115, "Or", kTruths),
    line(116, "Xor", kTruths),       line(117, "Equal", kComparable),
    line(118, "Less", kOrdered),     line(119, "LessOrEqual", kOrdered),
    line(120, "Greater", kOrdered),  line(121, "GreaterOrEqual", kOrdered),
    {122, "Where", "", infer_where}, {123, "Clip", "", infer_clip},
    {124, "Pow", "", infer_pow},
};

}  // namespace

std::span<const PlainOperator> binary_operators() noexcept { return kBinaryOperators; }

}  // namespace sluice::operators::generic
