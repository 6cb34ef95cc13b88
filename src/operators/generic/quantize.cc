// Between reals and the integers that stand for them: y = saturate(round(x / scale) + zero_point).
#include "sluice/operators/generic/quantize.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace quantize;
namespace {

bool storable(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16; }

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

PlainRefusal infer_dequantize(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const DType from = node.in(0).dtype;
  if ((!storable(from) && from != DType::kI32) || !is_f32(node.in(1).dtype)) return kWrongType;
  if (node.has(2) && node.in(2).dtype != from) return kWrongType;
  out = {DType::kF32, node.in(0).shape};
  Scales scales;
  return scales_of(node, scales) ? nullptr : kWrongShape;
}

// ---- DynamicQuantizeLinear: y, scale, zero point

PlainRefusal infer_dynamic(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  out.dtype = node.result() == 1 ? DType::kF32 : DType::kU8;
  out.shape = node.result() == 0 ? node.in(0).shape : Shape{};
  return nullptr;
}

// ---- com.microsoft QLinearAdd, QLinearMul: A, its scale and zero point, B the same, C's scale and zero point

constexpr bool kAdds = true, kMultiplies = false;

PlainRefusal infer_qlinear_pair(const PlainNode& node, PlainTensor& out) noexcept {
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

constexpr PlainOperator kQuantizeOperators[] = {
    {340, "QuantizeLinear", "axis:i=1 block_size:i=0 output_dtype:i=0 saturate:i=1", infer_quantize},
    {341, "DequantizeLinear", "axis:i=1 block_size:i=0 output_dtype:i=0", infer_dequantize},
    {342, "DynamicQuantizeLinear", "", infer_dynamic, nullptr, 3},
    {343, "com.microsoft::QLinearAdd", "", infer_qlinear_pair, &kAdds},
    {344, "com.microsoft::QLinearMul", "", infer_qlinear_pair, &kMultiplies},
};

}  // namespace

std::span<const PlainOperator> quantize_operators() noexcept { return kQuantizeOperators; }

}  // namespace sluice::operators::generic
