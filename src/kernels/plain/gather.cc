// Values read at places that other values name. A place outside the tensor is a fault of the run; zeros are written for it.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
namespace {

void copy_or_clear(std::byte* to, const std::byte* from, bool inside, std::int64_t count, DType dtype) noexcept {
  if (inside)
    copy_elements(to, from, count, dtype);
  else
    std::memset(to, 0, static_cast<std::size_t>(count) * size_of(dtype));
}

/// A place is looked up once; then all that lies there moves: a few outer places one by one, many as a strided copy.
PlainRefusal run_gather(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  constexpr std::int64_t kManyPlaces = 16;
  const PlainTensor &data = node.in(0), &indices = node.in(1);
  const AxisView view = axis_view(data.shape, axis_of(node.integer(0), data.shape.rank()));
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  const std::int64_t count = indices.count(), run = view.inner * size;
  PlainRefusal fault = nullptr;
  Glances glances;
  for (std::int64_t k = 0; k < count && !glances.over(view.outer * view.inner); ++k) {
    std::int64_t place = integer_at(indices, k);
    const bool inside = resolve_place(place, view.extent);
    if (!inside) fault = kWrongIndex;
    if (inside && view.outer >= kManyPlaces) {
      move_block(node, data, out, {view.outer, 1, view.inner}, {place, view.extent}, {k, count});
      continue;
    }
    for (std::int64_t o = 0; o < view.outer; ++o)
      copy_or_clear(out.data + (o * count + k) * run, data.data + (o * view.extent + place) * run, inside, view.inner, out.dtype);
  }
  return fault;
}

/// Along the last axis, `step` elements of the data apart; a place of the gathered axis is `stride` elements.
template <class T, class Index>
bool gather_row(const T* from, const Index* places, std::int64_t count, std::int64_t extent, std::int64_t stride, std::int64_t step,
                T* to) noexcept {
  if (extent == 0) {  // no place is one
    std::fill_n(to, count, T{});
    return count == 0;
  }
  // Without jumps: what lies outside reads place 0, and its value is dropped.
  unsigned outside = 0;
  for (std::int64_t i = 0; i < count; ++i, from += step) {
    const std::int64_t stated = places[i], place = stated + (stated >> 63 & extent);
    const bool inside = static_cast<std::uint64_t>(place) < static_cast<std::uint64_t>(extent);
    outside |= inside ? 0u : 1u;
    const T value = from[inside ? place * stride : 0];
    to[i] = inside ? value : T{};
  }
  return outside == 0;
}

PlainRefusal gather_elements(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor &data = node.in(0), &indices = node.in(1);
  const int axis = axis_of(node.integer(0), data.shape.rank());
  Extents strides = strides_of(data.shape);
  const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  Shape rows = out.shape;
  const std::int64_t count = rows.back(), step = strides[static_cast<std::size_t>(rows.rank() - 1)];
  rows[rows.rank() - 1] = 1;
  bool all_inside = true;
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    walk(rows, std::array<Extents, 1>{strides}, [&](std::int64_t row, const auto& at) {
      const auto gather = [&](const auto* places) {
        return gather_row(data.as<const T>() + at[0], places + row * count, count, data.shape[axis], stride, step,
                          out.as<T>() + row * count);
      };
      const bool inside =
          indices.dtype == DType::kI32 ? gather(indices.as<const std::int32_t>()) : gather(indices.as<const std::int64_t>());
      all_inside = all_inside && inside;
    });
  });
  return all_inside ? nullptr : kWrongIndex;
}

PlainRefusal gather_nd(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor &data = node.in(0), &indices = node.in(1);
  const auto batch = static_cast<int>(node.integer(0));
  const auto depth = static_cast<int>(indices.shape.back());
  const Extents strides = strides_of(data.shape);
  const std::int64_t batches = data.shape.count(0, batch), batch_size = data.shape.count(batch, data.shape.rank());
  const std::int64_t tuples = indices.count() / depth, inner = data.shape.count(batch + depth, data.shape.rank());
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  PlainRefusal fault = nullptr;
  Glances glances;
  for (std::int64_t t = 0; t < tuples && !glances.over(inner + depth); ++t) {
    std::int64_t at = t / std::max<std::int64_t>(1, tuples / batches) * batch_size;
    bool inside = true;
    for (int d = 0; d < depth; ++d) {
      std::int64_t place = integer_at(indices, t * depth + d);
      inside = inside && resolve_place(place, data.shape[batch + d]);
      if (inside) at += place * strides[static_cast<std::size_t>(batch + d)];
    }
    if (!inside) fault = kWrongIndex;
    copy_or_clear(out.data + t * inner * size, data.data + at * size, inside, inner, out.dtype);
  }
  return fault;
}

constexpr GenericKernel kGatherKernels[] = {
    {"Gather", run_gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
};

}  // namespace

std::span<const GenericKernel> gather_kernels() noexcept { return kGatherKernels; }

}  // namespace sluice::kernels::plain
