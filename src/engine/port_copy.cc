#include "src/engine/port_copy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sluice/core/half.h"
#include "src/kernels/movement/loops.h"

namespace sluice::engine {
namespace {

/// A run of `count` elements from one stride to another, both in bytes.
template <class T>
void copy_strided(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

/// One place of a copy: its first element, the bytes from one to the next, and what they are.
struct Place {
  std::byte* data;
  std::int64_t stride;
  DType dtype;
};
struct ConstPlace {
  const std::byte* data;
  std::int64_t stride;
  DType dtype;
};

template <class From, class To, class Convert>
void convert_strided(ConstPlace from, Place to, std::int64_t count, const Convert& convert) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from.data + i * from.stride, sizeof value);
    const To converted = convert(value);
    std::memcpy(to.data + i * to.stride, &converted, sizeof converted);
  }
}

/// One of the two types is f32, the other another float (`Graph::dtype_of`).
void convert_run(ConstPlace from, Place to, std::int64_t count) noexcept {
  if (from.dtype == DType::kF16) return convert_strided<std::uint16_t, float>(from, to, count, float_of_f16);
  if (from.dtype == DType::kBF16) return convert_strided<std::uint16_t, float>(from, to, count, float_of_bf16);
  if (to.dtype == DType::kF16) return convert_strided<float, std::uint16_t>(from, to, count, f16_of_float);
  if (to.dtype == DType::kBF16) return convert_strided<float, std::uint16_t>(from, to, count, bf16_of_float);
  if (from.dtype == DType::kF64)
    return convert_strided<double, float>(from, to, count, [](double value) { return static_cast<float>(value); });
  return convert_strided<float, double>(from, to, count, [](float value) { return static_cast<double>(value); });
}

void copy_run(ConstPlace from, Place to, std::int64_t count) noexcept {
  if (from.dtype != to.dtype) return convert_run(from, to, count);
  const std::int64_t size = size_of(from.dtype);
  if (from.stride == size && to.stride == size) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(count * size));
    return;
  }
  switch (size) {
    case 1:
      return copy_strided<std::uint8_t>(from.data, from.stride, to.data, to.stride, count);
    case 2:
      return copy_strided<std::uint16_t>(from.data, from.stride, to.data, to.stride, count);
    case 4:
      return copy_strided<std::uint32_t>(from.data, from.stride, to.data, to.stride, count);
    default:
      return copy_strided<std::uint64_t>(from.data, from.stride, to.data, to.stride, count);
  }
}

/// A copy of fewer bytes takes less time than a thread takes to wake up; a part of one is so long that taking it costs nothing beside it.
constexpr std::int64_t kLeastShared = 256 * 1024, kSharedPart = 64 * 1024;

/// Calls `body(begin, end)` for parts of [0, count), which are `bytes` bytes together.
template <class Body>
void share(ThreadPool* pool, std::int64_t bytes, std::int64_t count, const Body& body) noexcept {
  if (pool == nullptr || pool->thread_count() == 1 || bytes < kLeastShared) return body(0, count);
  const std::int64_t parts = std::min(count, bytes / kSharedPart);
  pool->keep_to_caller(false);  // a run says it for each step
  parallel_for(*pool, parts, [&](std::int64_t i, int) noexcept { body(count * i / parts, count * (i + 1) / parts); });
}

}  // namespace

bool within_f32(DType outside, std::span<const std::byte> onnx) noexcept {
  if (outside != DType::kF64) return true;
  for (std::size_t at = 0; at + sizeof(double) <= onnx.size(); at += sizeof(double)) {
    double value;
    std::memcpy(&value, onnx.data() + at, sizeof value);
    if (std::isfinite(value) && std::isinf(static_cast<float>(value))) return false;
  }
  return true;
}

std::array<std::int64_t, Shape::kMaxRank> dense_strides(const Shape& shape, DType dtype) noexcept {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  std::int64_t stride = static_cast<std::int64_t>(size_of(dtype));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Result<PortCopy> PortCopy::make(const model::Graph& graph, const model::Port& port) {
  const model::Tensor& tensor = graph.tensor(port.tensor);
  const int rank = tensor.shape.rank();
  PortCopy copy;
  copy.bytes_ = tensor.bytes();
  copy.dtype_ = tensor.dtype;
  if (port.onnx_shape.rank() != rank) return fail(ErrorCode::kInvalidModel, port.name, "a port has another rank than its tensor");
  // The folding of core/tensor.h: rank 4 has pixels, all other ranks rows and channels only.
  const int row_axes = rank == 4 ? 2 : rank - 1;
  std::uint32_t named = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const int onnx_axis = port.perm[static_cast<std::size_t>(axis)];
    if (onnx_axis < 0 || onnx_axis >= rank || port.onnx_shape[onnx_axis] != tensor.shape[axis]) {
      return fail(ErrorCode::kInvalidModel, port.name, "a port's shape is not its tensor's, permuted");
    }
    if ((named >> onnx_axis & 1u) != 0) return fail(ErrorCode::kInvalidModel, port.name, "a port's permutation names an axis twice");
    named |= 1u << onnx_axis;
    Axis& step = copy.axes_[static_cast<std::size_t>(onnx_axis)];
    step.extent = tensor.shape[axis];
    if (axis == rank - 1)
      step.channels = 1;
    else if (axis < row_axes)
      step.rows = tensor.shape.count(axis + 1, row_axes);
    else
      step.pixels = 1;
  }
  copy.rank_ = std::max(rank, 1);
  copy.onnx_rank_ = rank;
  return copy;
}

std::array<std::int64_t, Shape::kMaxRank> PortCopy::strides(const RowView& view) const noexcept {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
    const Axis& step = axes_[axis];
    strides[axis] = step.rows * view.row_pitch + step.pixels * view.pixel_pitch + step.channels * size_of(view.dtype);
  }
  return strides;
}

std::size_t PortCopy::innermost_row_axis() const noexcept {
  std::size_t found = axes_.size();
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
    const Axis& a = axes_[axis];
    if (a.rows == 1 && (found == axes_.size() || a.extent > axes_[found].extent)) found = axis;
  }
  return found;
}

OutputBlock PortCopy::box(const RowView& view, std::size_t along, RowRange rows, ChannelRange channels) const noexcept {
  OutputBlock block;
  block.dtype = view.dtype;
  block.data = view.row(rows.begin) + channels.begin * static_cast<std::int64_t>(size_of(view.dtype));
  block.strides = strides(view);
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
    const Axis& a = axes_[axis];
    extents[axis] = a.extent;
    if (a.rows > 0) {
      block.begin[axis] = rows.begin / a.rows % a.extent;
      extents[axis] = axis == along ? rows.size() : 1;
    } else if (a.channels > 0) {
      block.begin[axis] = channels.begin;
      extents[axis] = channels.size();
    }
  }
  block.shape = *Shape::make({extents.data(), static_cast<std::size_t>(onnx_rank_)});  // of a shape that was made, each extent no larger
  return block;
}

/// Calls `run(address, stride, count)` for `count` elements from `first` on, addresses and strides in bytes. Axes at the end that follow
/// each other in the arena as they do in ONNX order are one run.
template <class Run>
void PortCopy::for_each_run(const RowView& view, std::int64_t first, std::int64_t count, const Run& run) const noexcept {
  const std::array<std::int64_t, Shape::kMaxRank> steps = strides(view);
  auto inner = static_cast<std::size_t>(rank_ - 1);  // the first axis of the run
  const std::int64_t stride = steps[inner];
  std::int64_t extent = axes_[inner].extent;
  for (; inner > 0 && view.ring_rows == 0 && steps[inner - 1] == extent * stride; --inner) extent *= axes_[inner - 1].extent;
  while (count > 0) {
    const std::int64_t place = first % extent, length = std::min(extent - place, count);
    std::int64_t rest = first / extent;
    std::int64_t row = 0;
    std::int64_t offset = 0;
    for (std::size_t axis = inner; axis-- > 0;) {
      const Axis& step = axes_[axis];
      const std::int64_t index = rest % step.extent;
      rest /= step.extent;
      row += index * step.rows;
      offset += index * (step.pixels * view.pixel_pitch + step.channels * size_of(view.dtype));
    }
    if (axes_[inner].rows > 0 && view.ring_rows > 0)
      row += place * axes_[inner].rows;
    else
      offset += place * stride;
    run(view.row(row) + offset, stride, length);
    first += length;
    count -= length;
  }
}

void PortCopy::to_arena(DType outside, std::span<const std::byte> onnx, const RowView& view, ThreadPool* pool) const noexcept {
  const std::int64_t size = size_of(outside), bytes = static_cast<std::int64_t>(onnx.size());
  if (onnx.empty()) return;  // whatever its other extents are
  const bool is_image = rank_ == 4 && axes_[1].channels > 0 && axes_[3].pixels > 0;
  if (outside != view.dtype || !is_image) {
    // Channel after channel, threads would write the same lines of pixels: with many channels two took half as long again as one.
    constexpr std::int64_t kFewChannels = 4;
    if (is_image && axes_[1].extent > kFewChannels) pool = nullptr;
    return share(pool, bytes, bytes / size, [&](std::int64_t begin, std::int64_t end) noexcept {
      const std::byte* from = onnx.data() + begin * size;
      for_each_run(view, begin, end - begin, [&](std::byte* to, std::int64_t stride, std::int64_t count) {
        copy_run({from, size, outside}, {to, stride, view.dtype}, count);
        from += count * size;
      });
    });
  }
  // Transposes a row of an image's pixels: [channel][column] to [column][channel].
  const auto [images, channels, rows, columns] = std::array{axes_[0].extent, axes_[1].extent, axes_[2].extent, axes_[3].extent};
  const auto turn =
      kernels::movement::loop_table(active_isa()).turn[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(size)))];
  share(pool, bytes, images * rows,
        [&, channels = channels, rows = rows, columns = columns](std::int64_t begin, std::int64_t end) noexcept {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t image = i / rows, row = i % rows;
            turn({.from = onnx.data() + (image * channels * rows + row) * columns * size,
                  .to = view.row(image * axes_[0].rows + row * axes_[2].rows),
                  .from_step = rows * columns * size,
                  .to_step = view.pixel_pitch,
                  .p = channels,
                  .q = columns});
          }
        });
}

void PortCopy::from_arena(DType outside, const RowView& view, std::int64_t first, std::span<std::byte> onnx) const noexcept {
  const std::int64_t size = size_of(outside);
  std::byte* to = onnx.data();
  for_each_run(view, first, static_cast<std::int64_t>(onnx.size()) / size,
               [&](const std::byte* from, std::int64_t stride, std::int64_t count) {
                 copy_run({from, stride, view.dtype}, {to, size, outside}, count);
                 to += count * size;
               });
}

void PortCopy::from_dense(DType outside, const std::byte* arena, std::int64_t first, std::span<std::byte> onnx) const noexcept {
  const std::int64_t size = size_of(outside), stride = size_of(dtype_);
  copy_run({arena + first * stride, stride, dtype_}, {onnx.data(), size, outside}, static_cast<std::int64_t>(onnx.size()) / size);
}

}  // namespace sluice::engine

namespace sluice {

void OutputBlock::copy(std::int64_t first, std::span<std::byte> out) const noexcept {
  const auto size = static_cast<std::int64_t>(size_of(port_dtype));
  const int last = shape.rank() - 1;
  const std::int64_t length = last < 0 ? 1 : shape[last];
  const std::int64_t stride = last < 0 ? 0 : strides[static_cast<std::size_t>(last)];
  std::int64_t left = static_cast<std::int64_t>(out.size()) / size;
  for (std::byte* to = out.data(); left > 0;) {
    std::int64_t rest = first / length, offset = first % length * stride;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
    }
    const std::int64_t count = std::min(length - first % length, left);
    engine::copy_run({data + offset, stride, dtype}, {to, size, port_dtype}, count);
    to += count * size;
    first += count;
    left -= count;
  }
}

}  // namespace sluice
