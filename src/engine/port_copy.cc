#include "src/engine/port_copy.h"

#include <cstring>

namespace sluice::engine {
namespace {

/// A run of `count` elements from one stride to another, both in bytes.
template <class T>
void copy_strided(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

void copy_run(DType dtype, const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
              std::int64_t count) noexcept {
  const std::int64_t size = size_of(dtype);
  if (from_stride == size && to_stride == size) {
    std::memcpy(to, from, static_cast<std::size_t>(count * size));
    return;
  }
  switch (size) {
    case 1:
      return copy_strided<std::uint8_t>(from, from_stride, to, to_stride, count);
    case 2:
      return copy_strided<std::uint16_t>(from, from_stride, to, to_stride, count);
    case 4:
      return copy_strided<std::uint32_t>(from, from_stride, to, to_stride, count);
    default:
      return copy_strided<std::uint64_t>(from, from_stride, to, to_stride, count);
  }
}

}  // namespace

Result<PortCopy> PortCopy::make(const model::Graph& graph, const model::Port& port) {
  const model::Tensor& tensor = graph.tensor(port.tensor);
  const int rank = tensor.shape.rank();
  PortCopy copy;
  copy.bytes_ = tensor.bytes();
  // Strides of the ONNX tensor along its own axes, then along the physical ones.
  std::array<std::int64_t, Shape::kMaxRank> stride{};
  if (port.onnx_shape.rank() != rank) return fail(ErrorCode::kInvalidModel, port.name, "a port has another rank than its tensor");
  for (int axis = 0; axis < rank; ++axis) {
    const int onnx_axis = port.perm[static_cast<std::size_t>(axis)];
    if (onnx_axis < 0 || onnx_axis >= rank || port.onnx_shape[onnx_axis] != tensor.shape[axis]) {
      return fail(ErrorCode::kInvalidModel, port.name, "a port's shape is not its tensor's, permuted");
    }
    for (int earlier = 0; earlier < axis; ++earlier) {
      if (port.perm[static_cast<std::size_t>(earlier)] == onnx_axis) {
        return fail(ErrorCode::kInvalidModel, port.name, "a port's permutation names an axis twice");
      }
    }
    stride[static_cast<std::size_t>(axis)] = port.onnx_shape.count(onnx_axis + 1, rank);
  }
  if (rank == 0) return copy;
  // The folding of core/tensor.h: rank 4 has pixels, all other ranks rows and channels only.
  const int row_axes = rank == 4 ? 2 : rank - 1;
  for (int axis = 0; axis < row_axes; ++axis) copy.row_stride_[static_cast<std::size_t>(axis)] = stride[static_cast<std::size_t>(axis)];
  copy.rows_ = *Shape::make(tensor.shape.dims().first(static_cast<std::size_t>(row_axes)));
  if (rank == 4) copy.pixel_stride_ = stride[2];
  copy.channel_stride_ = stride[static_cast<std::size_t>(rank - 1)];
  return copy;
}

/// Calls `body(row, onnx_element)` for each physical row in order, with the ONNX element that the row begins with.
template <class Body>
void PortCopy::for_each_row(const Body& body) const noexcept {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::int64_t element = 0;
  const std::int64_t rows = rows_.element_count();
  for (std::int64_t row = 0; row < rows; ++row) {
    body(row, element);
    for (int axis = rows_.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      element += row_stride_[a];
      if (++index[a] < rows_[axis]) break;
      element -= index[a] * row_stride_[a];
      index[a] = 0;
    }
  }
}

// Within a row the shorter of the two loops is the outer one: three channels of 224 pixels, or 1000 channels of one pixel.
template <class Run>
void PortCopy::for_each_run(const RowView& view, const Run& run) const noexcept {
  const std::int64_t size = size_of(view.dtype);
  for_each_row([&](std::int64_t row, std::int64_t element) {
    std::byte* physical = view.row(row);
    if (view.channels < view.pixels) {
      for (std::int64_t c = 0; c < view.channels; ++c) {
        run(physical + c * size, view.pixel_pitch, (element + c * channel_stride_) * size, pixel_stride_ * size, view.pixels);
      }
    } else {
      for (std::int64_t p = 0; p < view.pixels; ++p) {
        run(physical + p * view.pixel_pitch, size, (element + p * pixel_stride_) * size, channel_stride_ * size, view.channels);
      }
    }
  });
}

void PortCopy::to_arena(const std::byte* onnx, const RowView& view) const noexcept {
  for_each_run(view, [&](std::byte* physical, std::int64_t physical_stride, std::int64_t offset, std::int64_t onnx_stride,
                         std::int64_t count) { copy_run(view.dtype, onnx + offset, onnx_stride, physical, physical_stride, count); });
}

void PortCopy::from_arena(const RowView& view, std::byte* onnx) const noexcept {
  for_each_run(view, [&](std::byte* physical, std::int64_t physical_stride, std::int64_t offset, std::int64_t onnx_stride,
                         std::int64_t count) { copy_run(view.dtype, physical, physical_stride, onnx + offset, onnx_stride, count); });
}

}  // namespace sluice::engine
