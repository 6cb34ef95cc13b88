// Values chosen by their size or place: TopK, Hardmax, OneHot, Trilu, ReverseSequence, CenterCropPad, EyeLike.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

// ---- TopK: values, then places; of equals the first in line comes first

PlainRefusal infer_top_k(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  const int axis = axis_of(node.integer(1), x.shape.rank());
  if (!is_number(x.dtype)) return kWrongType;
  if (axis < 0) return kWrongAxis;
  const std::int64_t k = node.integer(0);
  if (k < 0 || k > x.shape[axis]) return "k is more than the axis has";
  out = {node.result() == 0 ? x.dtype : DType::kI64, x.shape};
  out.shape[axis] = k;
  return nullptr;
}

PlainRefusal bound_top_k(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const int axis = axis_of(node.integer(1), node.in(0).shape.rank());
  if (!is_number(node.in(0).dtype)) return kWrongType;
  if (axis < 0) return kWrongAxis;
  out = {node.result() == 0 ? node.in(0).dtype : DType::kI64, node.in(0).shape};
  axes = static_cast<std::uint8_t>(1u << axis);
  return nullptr;
}

// ---- Hardmax: one where the maximum is

PlainRefusal infer_hardmax(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (axis_of(node.given(0) ? node.integer(0) : -1, node.in(0).shape.rank()) < 0) return kWrongAxis;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

// ---- OneHot

PlainRefusal infer_one_hot(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(2) || !node.given(0)) return kMissingInput;
  const PlainTensor& indices = node.in(0);
  if (!is_number(indices.dtype) || node.in(2).count() != 2) return kWrongType;
  const int axis = axis_of(node.integer(1), indices.shape.rank() + 1);
  if (axis < 0) return kWrongAxis;
  if (node.integer(0) < 1) return "the depth is not positive";
  Dims dims;
  dims.add(indices.shape, 0, axis);
  dims.add(node.integer(0));
  dims.add(indices.shape, axis, indices.shape.rank());
  out.dtype = node.in(2).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal bound_one_hot(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  if (!node.has(2)) return kMissingInput;
  out.dtype = node.in(2).dtype;
  return kStateBound;
}

// ---- Trilu

PlainRefusal infer_trilu(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (node.in(0).shape.rank() < 2) return kWrongRank;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

// ---- ReverseSequence

PlainRefusal infer_reverse(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const std::int64_t time = node.integer(0), batch = node.integer(1);
  if (in.rank() < 2 || time == batch || time < 0 || time > 1 || batch < 0 || batch > 1) return kWrongArgument;
  if (!is_index(node.in(1).dtype) || !(node.in(1).shape == Shape{in[static_cast<int>(batch)]})) return kWrongShape;
  out = {node.in(0).dtype, in};
  return nullptr;
}

// ---- CenterCropPad

/// Extents wanted, by axis.
bool crop_extents(const PlainNode& node, Shape& shape) noexcept {
  const auto wanted = node.list(0), axes = node.list(1);
  if (!axes.empty() ? wanted.size() != axes.size() : static_cast<int>(wanted.size()) != shape.rank()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int axis = axes.empty() ? static_cast<int>(i) : axis_of(axes[i], shape.rank());
    if (axis < 0 || wanted[i] < 0) return false;
    shape[axis] = wanted[i];
  }
  return true;
}

PlainRefusal infer_crop(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {node.in(0).dtype, node.in(0).shape};
  return crop_extents(node, out.shape) ? nullptr : kWrongArgument;
}

// ---- EyeLike

PlainRefusal infer_eye(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (node.in(0).shape.rank() != 2) return kWrongRank;
  out = {node.in(0).dtype, node.in(0).shape};
  if (node.given(0) && !type_of(node.integer(0), out.dtype)) return "the type that it makes is not supported";
  return is_number(out.dtype) ? nullptr : kWrongType;
}

constexpr PlainOperator kSelectOperators[] = {
    {200, "TopK", "k:i@1 axis:i=-1 largest:i=1 sorted:i=1", infer_top_k, nullptr, 2, bound_top_k},
    {201, "Hardmax", "axis:i #", infer_hardmax},
    {202, "OneHot", "depth:i@1 axis:i=-1", infer_one_hot, nullptr, 1, bound_one_hot},
    {203, "Trilu", "k:i@1=0 upper:i=1", infer_trilu, nullptr, 1, bound_as_input},
    {204, "ReverseSequence", "time_axis:i=0 batch_axis:i=1", infer_reverse},
    {205, "CenterCropPad", "shape:I@1 axes:I", infer_crop, nullptr, 1, bound_stated},
    {206, "EyeLike", "dtype:i k:i=0", infer_eye},
};

}  // namespace

std::span<const PlainOperator> select_operators() noexcept { return kSelectOperators; }

}  // namespace sluice::operators::generic
