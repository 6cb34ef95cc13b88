// Values read at places that other values name. A place outside the tensor is a fault of the run; zeros are written for it.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

PlainRefusal check_types(const PlainNode& node) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  return is_index(node.in(1).dtype) ? nullptr : kWrongType;
}

/// The place counted from the end when negative; false, and place 0, outside.
bool resolve(std::int64_t& place, std::int64_t extent) noexcept {
  const bool inside = place >= -extent && place < extent;
  if (!inside) place = 0;
  if (place < 0) place += extent;
  return inside;
}

void copy_or_clear(std::byte* to, const std::byte* from, bool inside, std::int64_t count, DType dtype) noexcept {
  if (inside)
    copy_elements(to, from, count, dtype);
  else
    std::memset(to, 0, static_cast<std::size_t>(count) * size_of(dtype));
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

PlainRefusal run_gather(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor &data = node.in(0), &indices = node.in(1);
  const AxisView view = axis_view(data.shape, axis_of(node.integer(0), data.shape.rank()));
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  const std::int64_t count = indices.count();
  PlainRefusal fault = nullptr;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t place = integer_at(indices, k);
      const bool inside = resolve(place, view.extent);
      if (!inside) fault = kWrongIndex;
      copy_or_clear(out.data + (o * count + k) * view.inner * size, data.data + (o * view.extent + place) * view.inner * size, inside,
                    view.inner, out.dtype);
    }
  return fault;
}

// ---- GatherElements

PlainRefusal infer_elements(const PlainNode& node, PlainTensor& out) noexcept {
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

PlainRefusal run_elements(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& data = node.in(0);
  const int axis = axis_of(node.integer(0), data.shape.rank());
  Extents strides = strides_of(data.shape);
  const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  PlainRefusal fault = nullptr;
  walk(out.shape, std::array<Extents, 1>{strides}, [&](std::int64_t i, const auto& at) {
    std::int64_t place = integer_at(node.in(1), i);
    const bool inside = resolve(place, data.shape[axis]);
    if (!inside) fault = kWrongIndex;
    copy_or_clear(out.data + i * size, data.data + (at[0] + place * stride) * size, inside, 1, out.dtype);
  });
  return fault;
}

// ---- GatherND

PlainRefusal infer_nd(const PlainNode& node, PlainTensor& out) noexcept {
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

PlainRefusal run_nd(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor &data = node.in(0), &indices = node.in(1);
  const auto batch = static_cast<int>(node.integer(0));
  const auto depth = static_cast<int>(indices.shape.back());
  const Extents strides = strides_of(data.shape);
  const std::int64_t batches = data.shape.count(0, batch), batch_size = data.shape.count(batch, data.shape.rank());
  const std::int64_t tuples = indices.count() / depth, inner = data.shape.count(batch + depth, data.shape.rank());
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  PlainRefusal fault = nullptr;
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t at = t / std::max<std::int64_t>(1, tuples / batches) * batch_size;
    bool inside = true;
    for (int d = 0; d < depth; ++d) {
      std::int64_t place = integer_at(indices, t * depth + d);
      inside = inside && resolve(place, data.shape[batch + d]);
      if (inside) at += place * strides[static_cast<std::size_t>(batch + d)];
    }
    if (!inside) fault = kWrongIndex;
    copy_or_clear(out.data + t * inner * size, data.data + at * size, inside, inner, out.dtype);
  }
  return fault;
}

constexpr PlainOperator kOperators[] = {
    {250, "Gather", "axis:i=0", infer_gather, run_gather},
    {251, "GatherElements", "axis:i=0", infer_elements, run_elements},
    {252, "GatherND", "batch_dims:i=0", infer_nd, run_nd},
};

}  // namespace

std::span<const PlainOperator> gather_operators() noexcept { return kOperators; }

}  // namespace sluice::kernels::plain
