// Results with as many elements as the values say: NonZero, Compress, Unique, Range. Each counts first and writes when it fits.
#include "sluice/operators/generic/sized.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace sized;
namespace {

constexpr std::uint8_t bit(int axis) noexcept { return static_cast<std::uint8_t>(1u << axis); }

// ---- NonZero: [axes, how many]

PlainRefusal infer_nonzero(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (node.in(0).shape.rank() < 1) return kWrongRank;
  out = {DType::kI64, Shape{node.in(0).shape.rank(), node.in(0).count()}};
  return nullptr;
}

PlainRefusal bound_nonzero(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  axes = bit(1);
  return infer_nonzero(node, out);
}

// ---- Compress: the places of an axis (or of the flattened tensor) whose condition holds

PlainRefusal infer_compress(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const PlainTensor &x = node.in(0), &condition = node.in(1);
  if (condition.dtype != DType::kBool) return kWrongType;
  if (condition.shape.rank() != 1) return kWrongRank;
  out = {x.dtype, node.given(0) ? x.shape : Shape{x.count()}};
  const int axis = node.given(0) ? axis_of(node.integer(0), x.shape.rank()) : 0;
  if (axis < 0) return kWrongAxis;
  out.shape[axis] = std::min(out.shape[axis], condition.count());
  return nullptr;
}

PlainRefusal bound_compress(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (const PlainRefusal refusal = infer_compress(node, out)) return refusal;
  axes = bit(node.given(0) ? axis_of(node.integer(0), out.shape.rank()) : 0);
  return nullptr;
}

PlainRefusal bound_unique(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (const PlainRefusal refusal = infer_unique(node, out)) return refusal;
  const bool slices = node.result() == 0 && node.given(0);
  axes = node.result() == 2 ? std::uint8_t{0} : bit(slices ? axis_of(node.integer(0), out.shape.rank()) : 0);
  return nullptr;
}

// ---- Range

PlainRefusal infer_range(const PlainNode& node, PlainTensor& out) noexcept {
  for (int i = 0; i < 3; ++i) {
    if (!node.has(i)) return kMissingInput;
    if (!is_number(node.in(i).dtype) || node.in(i).dtype != node.in(0).dtype) return kWrongType;
    if (node.in(i).count() != 1) return kWrongShape;
  }
  out = {node.in(0).dtype, Shape{0}};
  return nullptr;
}

PlainRefusal bound_range(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  const PlainRefusal refusal = infer_range(node, out);
  return refusal != nullptr ? refusal : kStateBound;
}

constexpr PlainOperator kSizedOperators[] = {
    {540, "NonZero", "", infer_nonzero, nullptr, 1, bound_nonzero, true},
    {541, "Compress", "axis:i", infer_compress, nullptr, 1, bound_compress, true},
    {542, "Unique", "axis:i sorted:i=1", infer_unique, nullptr, 4, bound_unique, true},
    {543, "Range", "", infer_range, nullptr, 1, bound_range, true},
};

}  // namespace

std::span<const PlainOperator> sized_operators() noexcept { return kSizedOperators; }

}  // namespace sluice::operators::generic
