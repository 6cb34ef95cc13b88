// Values that move as they are, into extents that may be known at run only: what is a view or a copy where extents are fixed (kReshape,
// kConcat, kSlice, kPad, kTranspose) is a plain operator where they are not.
#include "sluice/operators/generic/extents.h"

#include "sluice/core/activation.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace extents;
namespace {

// ---- Shape, Size

PlainRefusal infer_shape(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const std::int64_t rank = node.in(0).shape.rank();
  const auto cut = [&](std::int64_t place) { return std::clamp<std::int64_t>(place < 0 ? std::max(place, -rank) + rank : place, 0, rank); };
  const std::int64_t first = cut(node.integer(0)), last = cut(node.given(1) ? node.integer(1) : rank);
  out = {DType::kI64, Shape{std::max<std::int64_t>(last - first, 0)}};
  return nullptr;
}

PlainRefusal infer_size(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {DType::kI64, Shape{}};
  return nullptr;
}

// ---- Reshape, Flatten, Squeeze, Unsqueeze: the same values in other extents

PlainRefusal infer_reshape(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  Dims dims;
  std::int64_t known = 1, rest = -1;
  for (const std::int64_t wanted : node.list(0)) {
    const auto place = static_cast<int>(dims.count);
    if (place >= Shape::kMaxRank) return kWrongRank;
    std::int64_t extent = wanted;
    if (wanted == 0 && node.integer(1) == 0) {
      if (place >= x.shape.rank()) return kWrongAxis;
      extent = x.shape[place];
    }
    if (extent < -1 || (extent == -1 && rest >= 0)) return kWrongArgument;
    if (extent == -1)
      rest = place;
    else if (__builtin_mul_overflow(known, extent, &known))
      return kWrongArgument;
    dims.add(extent);
  }
  if (rest >= 0) dims.values[static_cast<std::size_t>(rest)] = known == 0 ? 0 : x.count() / known;
  out.dtype = x.dtype;
  return make_shape(dims.span(), out.shape) && out.shape.element_count() == x.count() ? nullptr : kWrongShape;
}

PlainRefusal infer_flatten(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const int axis = node.integer(0) == in.rank() ? in.rank() : axis_of(node.integer(0), in.rank());
  if (axis < 0) return kWrongAxis;
  out = {node.in(0).dtype, Shape{in.count(0, axis), in.count(axis, in.rank())}};
  return nullptr;
}

PlainRefusal infer_squeeze(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  std::uint32_t gone = 0;
  if (!listed_axes(node.list(0), in.rank(), gone)) return kWrongAxis;
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const bool listed = (gone >> axis & 1u) != 0;
    if (listed && in[axis] != 1) return "an axis to squeeze has more than one place";
    if (node.given(0) ? !listed : in[axis] != 1) dims.add(in[axis]);
  }
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_unsqueeze(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto rank = static_cast<std::size_t>(in.rank()) + node.list(0).size();
  std::uint32_t added = 0;
  if (rank > Shape::kMaxRank) return kWrongRank;
  if (!listed_axes(node.list(0), static_cast<int>(rank), added)) return kWrongAxis;
  Dims dims;
  int from = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) dims.add((added >> axis & 1u) != 0 ? 1 : in[from++]);
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- Transpose

PlainRefusal infer_transpose(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto perm = node.list(0);
  std::uint32_t seen = 0;
  if (!perm.empty() && (static_cast<int>(perm.size()) != in.rank() || !listed_axes(perm, in.rank(), seen))) return kWrongArgument;
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis)
    dims.add(in[perm.empty() ? in.rank() - 1 - axis : axis_of(perm[static_cast<std::size_t>(axis)], in.rank())]);
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- Concat

PlainRefusal infer_concat(const PlainNode& node, PlainTensor& out) noexcept {
  if (node.inputs().empty()) return kMissingInput;
  out = {node.inputs()[0].dtype, node.inputs()[0].shape};
  const int axis = axis_of(node.integer(0), out.shape.rank());
  if (axis < 0) return kWrongAxis;
  std::int64_t extent = 0;
  for (const PlainTensor& part : node.inputs()) {
    if (part.dtype != out.dtype) return kWrongType;
    if (part.shape.rank() != out.shape.rank()) return kWrongRank;
    for (int a = 0; a < out.shape.rank(); ++a)
      if (a != axis && part.shape[a] != out.shape[a]) return kWrongShape;
    if (__builtin_add_overflow(extent, part.shape[axis], &extent)) return kWrongShape;
  }
  out.shape[axis] = extent;
  return nullptr;
}

PlainRefusal infer_slice(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  Cut cut;
  if (const PlainRefusal refusal = read_cut(node, cut)) return refusal;
  out = {node.in(0).dtype, cut.extents};
  return nullptr;
}

/// No longer than the input in any axis, and as long in those that are not named.
PlainRefusal bound_slice(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  out = {node.in(0).dtype, in};
  std::uint32_t named = 0;
  if (node.has(3) || !listed_axes(node.list(2), in.rank(), named) || named == 0) named = (1u << in.rank()) - 1u;
  axes = static_cast<std::uint8_t>(named);
  return nullptr;
}

PlainRefusal infer_split(const PlainNode& node, PlainTensor& out) noexcept {
  int axis = 0;
  std::int64_t first = 0, extent = 0;
  if (const PlainRefusal refusal = read_part(node, axis, first, extent)) return refusal;
  out = {node.in(0).dtype, node.in(0).shape};
  out.shape[axis] = extent;
  return nullptr;
}

PlainRefusal bound_split(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const int axis = axis_of(node.integer(0), node.in(0).shape.rank());
  if (axis < 0) return kWrongAxis;
  out = {node.in(0).dtype, node.in(0).shape};
  axes = static_cast<std::uint8_t>(1u << axis);
  return nullptr;
}

PlainRefusal infer_pad(const PlainNode& node, PlainTensor& out) noexcept {
  Extents before;
  if (const PlainRefusal refusal = read_pads(node, before, out.shape)) return refusal;
  out.dtype = node.in(0).dtype;
  if (node.has(2) && (node.in(2).dtype != out.dtype || node.in(2).count() != 1)) return kWrongType;
  return nullptr;
}

// ---- ConstantOfShape: its value is an argument, as bits

constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kU8,  DType::kI8,  DType::kU16,
                            DType::kI16, DType::kI32, DType::kI64, DType::kF32, DType::kBool};  // by TensorProto.DataType; reals are f32

PlainRefusal fill_type(const PlainNode& node, PlainTensor& out) noexcept {
  const std::int64_t type = node.integer(1);
  if (type < 1 || type >= static_cast<std::int64_t>(std::size(kTypes)) || type == 8) return kWrongType;
  out.dtype = kTypes[type];
  return nullptr;
}

PlainRefusal infer_fill(const PlainNode& node, PlainTensor& out) noexcept {
  if (const PlainRefusal refusal = fill_type(node, out)) return refusal;
  return make_shape(node.list(0), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal bound_fill(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  const PlainRefusal refusal = fill_type(node, out);
  return refusal != nullptr ? refusal : kStateBound;
}

// ---- the functions of kUnary, and Softmax

PlainRefusal infer_function(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (node.integer(0) < 0 || node.integer(0) >= kFunctionCount) return kWrongArgument;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

constexpr bool kLog = true, kNoLog = false;

PlainRefusal infer_softmax(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (axis_of(node.given(0) ? node.integer(0) : node.integer(1) < 13 ? 1 : -1, node.in(0).shape.rank()) < 0) return kWrongAxis;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

constexpr PlainOperator kExtentsOperators[] = {
    {500, "Shape", "start:i=0 end:i", infer_shape, nullptr, 1, nullptr, false, true},
    {501, "Size", "", infer_size, nullptr, 1, nullptr, false, true},
    {502, "Reshape", "shape:I@1 allowzero:i=0", infer_reshape, nullptr, 1, bound_stated},
    {503, "Flatten", "axis:i=1", infer_flatten},
    {504, "Squeeze", "axes:I@1", infer_squeeze, nullptr, 1, bound_stated},
    {505, "Unsqueeze", "axes:I@1", infer_unsqueeze, nullptr, 1, bound_stated},
    {506, "Transpose", "perm:I", infer_transpose},
    {507, "Concat", "axis:i=1", infer_concat, nullptr, 1, nullptr, false, true},
    {508, "Slice", "starts:I@1 ends:I@2 axes:I@3 steps:I@4", infer_slice, nullptr, 1, bound_slice},
    {509, "Split", "axis:i=0 split:I@1 num_outputs:i=0", infer_split, nullptr, 128, bound_split},
    {510, "Pad", "pads:I@1 axes:I@3 mode:s=constant|reflect|edge|wrap value:f=0", infer_pad, nullptr, 1, bound_stated, false, true},
    {511, "FillOfShape", "shape:I@0 type:i=1 bits:i=0", infer_fill, nullptr, 1, bound_fill},
    {512, "ApplyFunction", "function:i=0 a:f=0 b:f=0", infer_function},
    {513, "Softmax", "axis:i #", infer_softmax, &kNoLog},
    {514, "LogSoftmax", "axis:i #", infer_softmax, &kLog},
};

}  // namespace

std::span<const PlainOperator> extents_operators() noexcept { return kExtentsOperators; }

}  // namespace sluice::operators::generic
