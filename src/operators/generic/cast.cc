// Casts, and operators that only copy or repeat values.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

PlainRefusal infer_cast(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!type_of(node.integer(0), out.dtype)) return "the type it casts to is not supported";
  out.shape = node.in(0).shape;
  return nullptr;
}

PlainRefusal infer_bit_cast(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = infer_cast(node, out)) return refusal;
  if (node.integer(0) == 10 || node.integer(0) == 11) return "supported are types of the run time: f32, integers and bool";
  return size_of(out.dtype) == size_of(node.in(0).dtype) ? nullptr : "the two types differ in size";
}

// ---- Expand, Tile

/// Numpy's rule between the input's shape and the wanted one.
PlainRefusal infer_expand(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  Shape wanted;
  if (!make_shape(node.list(0), wanted) || !broadcast_to(node.in(0).shape, wanted, out.shape)) return kWrongShape;
  out.dtype = node.in(0).dtype;
  return nullptr;
}

PlainRefusal infer_tile(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto repeats = node.list(0);
  if (static_cast<int>(repeats.size()) != in.rank()) return "there must be one repeat for each axis";
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis) {
    std::int64_t extent = 0;
    const std::int64_t times = repeats[static_cast<std::size_t>(axis)];
    if (times < 0 || __builtin_mul_overflow(in[axis], times, &extent)) return kWrongArgument;
    dims.add(extent);
  }
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator kCastOperators[] = {
    {150, "Cast", "to:i", infer_cast},
    {151, "BitCast", "to:i", infer_bit_cast},
    {152, "Expand", "shape:I@1", infer_expand, nullptr, 1, bound_stated},
    {153, "Tile", "repeats:I@1", infer_tile, nullptr, 1, bound_stated},
};

}  // namespace

std::span<const PlainOperator> cast_operators() noexcept { return kCastOperators; }

}  // namespace sluice::operators::generic
