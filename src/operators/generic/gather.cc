// Values read at places that other values name. A place outside the tensor is a fault of the run; zeros are written for it.
#include "sluice/operators/generic/elements.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
namespace {

PlainRefusal check_types(const PlainNode& node) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  return is_index(node.in(1).dtype) ? nullptr : kWrongType;
}

// ---- Gather

PlainRefusal infer_gather(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = check_types(node)) return refusal;
  const Shape &data = node.in(0).shape, &indices = node.in(1).shape;
  const int axis = axis_of(node.integer(0), data.rank());
  if (axis < 0) return kWrongAxis;
  Dims dims;
  dims.add(data, 0, axis);
  dims.add(indices, 0, indices.rank());
  dims.add(data, axis + 1, data.rank());
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- GatherElements

PlainRefusal infer_gather_elements(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = check_types(node)) return refusal;
  const Shape &data = node.in(0).shape, &indices = node.in(1).shape;
  const int axis = axis_of(node.integer(0), data.rank());
  if (axis < 0) return kWrongAxis;
  if (indices.rank() != data.rank()) return kWrongShape;
  for (int a = 0; a < data.rank(); ++a)
    if (a != axis && indices[a] > data[a]) return kWrongShape;
  out = {node.in(0).dtype, indices};
  return nullptr;
}

// ---- GatherND

PlainRefusal infer_gather_nd(const PlainNode& node, PlainTensor& out) noexcept {
  if (PlainRefusal refusal = check_types(node)) return refusal;
  const Shape &data = node.in(0).shape, &indices = node.in(1).shape;
  if (data.rank() < 1 || indices.rank() < 1) return kWrongRank;
  const std::int64_t batch = node.integer(0), depth = indices.back();
  if (batch < 0 || batch >= std::min(data.rank(), indices.rank()) || depth < 1 || depth > data.rank() - batch) return kWrongArgument;
  for (int axis = 0; axis < batch; ++axis)
    if (data[axis] != indices[axis]) return kWrongShape;
  Dims dims;
  dims.add(indices, 0, indices.rank() - 1);
  dims.add(data, static_cast<int>(batch + depth), data.rank());
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator kGatherOperators[] = {
    {250, "Gather", "axis:i=0", infer_gather},
    {251, "GatherElements", "axis:i=0", infer_gather_elements},
    {252, "GatherND", "batch_dims:i=0", infer_gather_nd},
};

}  // namespace

std::span<const PlainOperator> gather_operators() noexcept { return kGatherOperators; }

}  // namespace sluice::operators::generic
