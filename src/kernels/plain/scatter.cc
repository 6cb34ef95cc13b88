// A copy of a tensor with values written at places that other values name. A place outside is a fault of the run; nothing is written there.
#include "sluice/operators/generic/scatter.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::scatter;
namespace {

/// Joins `count` values to those that are there.
void join(std::byte* to, const std::byte* from, std::int64_t count, DType dtype, std::int64_t reduction) noexcept {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, float>, float, std::uint64_t>;
    auto* y = reinterpret_cast<T*>(to);
    const auto* x = reinterpret_cast<const T*>(from);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto a = static_cast<Wide>(y[i]), b = static_cast<Wide>(x[i]);
      y[i] = reduction == kAdd            ? static_cast<T>(a + b)
             : reduction == kMul          ? static_cast<T>(a * b)
             : reduction == scatter::kMax ? std::max(y[i], x[i])
                                          : std::min(y[i], x[i]);
    }
  });
}

/// Writes `count` values, whose type is as large as T, or joins them to those that are there.
template <class T>
void put(const T* from, std::int64_t count, DType dtype, std::int64_t reduction, T* to) noexcept {
  if (reduction == scatter::kNone)
    std::copy_n(from, count, to);
  else
    join(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), count, dtype, reduction);
}

PlainRefusal scatter_elements(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const int axis = axis_of(node.integer(0), out.shape.rank());
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  Extents strides = strides_of(out.shape);
  const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  const std::int64_t reduction = node.integer(1);
  bool all_inside = true;
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* const updates = node.in(2).as<const T>();
    const auto scatter = [&](const auto* indices) {
      walk_lines(node.in(1).shape, std::array<Extents, 1>{strides},
                 [&](std::int64_t i, std::int64_t count, const auto& at, const auto& steps) {
                   for (std::int64_t k = 0, run = 1; k < count; k += run, run = 1) {
                     // Indices of whole rows, as graphs have them, are one value again and again.
                     while (steps[0] == 1 && k + run < count && indices[i + k + run] == indices[i + k]) ++run;
                     std::int64_t place = indices[i + k];
                     const bool inside = resolve_place(place, out.shape[axis]);
                     all_inside = all_inside && inside;
                     if (inside) put(updates + i + k, run, out.dtype, reduction, out.as<T>() + at[0] + k * steps[0] + place * stride);
                   }
                 });
    };
    node.in(1).dtype == DType::kI32 ? scatter(node.in(1).as<const std::int32_t>()) : scatter(node.in(1).as<const std::int64_t>());
  });
  return all_inside ? nullptr : kWrongIndex;
}

PlainRefusal scatter_nd(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& indices = node.in(1);
  const auto depth = static_cast<int>(indices.shape.back());
  const Extents strides = strides_of(out.shape);
  const std::int64_t tuples = indices.count() / depth, inner = out.shape.count(depth, out.shape.rank()), reduction = node.integer(0);
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  bool all_inside = true;
  with_size(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* updates = node.in(2).as<const T>();
    const auto scatter = [&](const auto* tuple) {
      for (std::int64_t t = 0; t < tuples; ++t, tuple += depth, updates += inner) {
        std::int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < depth; ++d) {
          std::int64_t place = tuple[d];
          inside = inside && resolve_place(place, out.shape[d]);
          if (inside) at += place * strides[static_cast<std::size_t>(d)];
        }
        all_inside = all_inside && inside;
        if (inside) put(updates, inner, out.dtype, reduction, out.as<T>() + at);
      }
    };
    indices.dtype == DType::kI32 ? scatter(indices.as<const std::int32_t>()) : scatter(indices.as<const std::int64_t>());
  });
  return all_inside ? nullptr : kWrongIndex;
}

// ---- TensorScatter: a cache, an update, and where in the cache each batch entry's update begins

enum TensorScatterMode : std::int64_t { kLinear = 0, kCircular = 1 };

PlainRefusal run_tensor(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& update = node.in(1).shape;
  const int axis = axis_of(node.integer(0), out.shape.rank());
  const AxisView view = axis_view(out.shape, axis);
  const std::int64_t rows = update[axis], outer_of_batch = view.outer / out.shape[0];
  const auto size = static_cast<std::int64_t>(size_of(out.dtype));
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  for (std::int64_t o = 0; o < view.outer; ++o) {
    const std::int64_t start = node.has(2) ? integer_at(node.in(2), o / outer_of_batch) : 0;
    if (start < 0 || start >= view.extent || (node.integer(1) == kLinear && start + rows > view.extent)) return kWrongIndex;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t to = (start + r) % view.extent;
      copy_elements(out.data + (o * view.extent + to) * view.inner * size, node.in(1).data + (o * rows + r) * view.inner * size, view.inner,
                    out.dtype);
    }
  }
  return nullptr;
}

constexpr GenericKernel kScatterKernels[] = {
    {"ScatterElements", scatter_elements},
    {"Scatter", scatter_elements},
    {"ScatterND", scatter_nd},
    {"TensorScatter", run_tensor},
};

}  // namespace

std::span<const GenericKernel> scatter_kernels() noexcept { return kScatterKernels; }

}  // namespace sluice::kernels::plain
