// Copies between the caller's tensor (ONNX order, dense) and the arena's view of it (physical order, any pitch).
//
//     ONNX      [N, C, H, W]    dense       physical axis i is ONNX axis perm[i]: perm = {0, 2, 3, 1}
//     physical  [N, H, W, C]    RowView
//
// Elements are walked in runs along the last ONNX axis: of outputs in ONNX order, so that a part of a tensor costs what a part is. Input
// images are transposed a row of pixels at a time, all its channels, because these share cache lines of the arena. Where the caller's
// values are f16, bf16 or f64 and the arena's f32, each is converted during the copy, without a buffer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/core/error.h"
#include "sluice/core/interval.h"
#include "sluice/core/tensor.h"
#include "sluice/core/threads.h"
#include "sluice/engine/output_block.h"
#include "sluice/model/graph.h"

namespace sluice::engine {

/// The strides, in bytes, of a tensor whose elements follow each other in ONNX order.
std::array<std::int64_t, Shape::kMaxRank> dense_strides(const Shape& shape, DType dtype) noexcept;

/// Whether the arena can hold these: of f64 none is finite and beyond the range of f32.
bool within_f32(DType outside, std::span<const std::byte> onnx) noexcept;

class PortCopy {
 public:
  /// Errors: kInvalidModel when the port's shapes and permutation disagree.
  static Result<PortCopy> make(const model::Graph& graph, const model::Port& port);

  /// The size of all elements in the arena.
  Bytes bytes() const noexcept { return bytes_; }
  DType dtype() const noexcept { return dtype_; }
  /// The size of all elements in the caller's type.
  Bytes bytes_as(DType dtype) const noexcept { return Bytes(bytes_.count() / size_of(dtype_) * size_of(dtype)); }
  /// Bytes from one element to the next along each ONNX axis.
  std::array<std::int64_t, Shape::kMaxRank> strides(const RowView& view) const noexcept;
  // `outside` is the type of `onnx`: the tensor's, or f16, bf16 or f64 of an f32 tensor.

  /// All elements. `view` is the arena's view of the port's tensor, whole: no ring. The threads of `pool`, if any, share a large tensor,
  /// an image as they share the rows of a step, so that each core has its own part in its cache when the first step begins.
  void to_arena(DType outside, std::span<const std::byte> onnx, const RowView& view, ThreadPool* pool = nullptr) const noexcept;
  /// Copies as many elements as `onnx` holds, from element `first` of the ONNX order on.
  void from_arena(DType outside, const RowView& view, std::int64_t first, std::span<std::byte> onnx) const noexcept;
  /// Does the same with a tensor at `arena` that is in ONNX order without gaps.
  void from_dense(DType outside, const std::byte* arena, std::int64_t first, std::span<std::byte> onnx) const noexcept;

  /// Calls `take(block)` with rows x channels of `view` as boxes in ONNX order, one for each run of rows along the innermost of the axes
  /// that rows fold, until one is not taken. Of a block all but its port and the port's type is filled in.
  template <class Take>
  Status for_each_box(const RowView& view, RowRange rows, ChannelRange channels, const Take& take) const noexcept {
    const std::size_t along = innermost_row_axis();
    const std::int64_t height = along < axes_.size() ? axes_[along].extent : 1;
    for (std::int64_t row = rows.begin; row < rows.end;) {
      const std::int64_t count = std::min(height - row % height, rows.end - row);
      SLUICE_RETURN_IF_ERROR(take(box(view, along, {row, row + count}, channels)));
      row += count;
    }
    return {};
  }

 private:
  std::size_t innermost_row_axis() const noexcept;  // one past the last: none
  OutputBlock box(const RowView& view, std::size_t along, RowRange rows, ChannelRange channels) const noexcept;

  /// One step along an ONNX axis goes this far in the physical tensor; one of the three is not zero.
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t rows = 0;
    std::int64_t pixels = 0;
    std::int64_t channels = 0;
  };

  template <class Run>
  void for_each_run(const RowView& view, std::int64_t first, std::int64_t count, const Run& run) const noexcept;

  Bytes bytes_;
  DType dtype_ = DType::kF32;
  int rank_ = 1;       // a scalar has one axis of one element
  int onnx_rank_ = 0;  // and no extent
  std::array<Axis, Shape::kMaxRank> axes_{};
};

}  // namespace sluice::engine
