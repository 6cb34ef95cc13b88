// Between the caller's tensor (ONNX order, dense) and the arena's view of it (physical order, any pitch).
//
//     ONNX      [N, C, H, W]    dense       physical axis i is ONNX axis perm[i]: perm = {0, 2, 3, 1}
//     physical  [N, H, W, C]    RowView
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/core/error.h"
#include "sluice/core/tensor.h"
#include "sluice/model/graph.h"

namespace sluice::engine {

/// How to walk a port's two orders together: strides of the ONNX tensor, in elements, along the physical axes.
class PortCopy {
 public:
  /// Errors: kInvalidModel when the port's shapes and permutation disagree.
  static Result<PortCopy> make(const model::Graph& graph, const model::Port& port);

  Bytes bytes() const noexcept { return bytes_; }
  /// Both sides hold `bytes()`; `view` is the arena's view of the port's tensor.
  void to_arena(const std::byte* onnx, const RowView& view) const noexcept;
  void from_arena(const RowView& view, std::byte* onnx) const noexcept;

 private:
  template <class Body>
  void for_each_row(const Body& body) const noexcept;
  template <class Run>
  void for_each_run(const RowView& view, const Run& run) const noexcept;

  Bytes bytes_;
  Shape rows_;                                              // extents of the physical axes that make the rows
  std::array<std::int64_t, Shape::kMaxRank> row_stride_{};  // of each of them
  std::int64_t pixel_stride_ = 0;
  std::int64_t channel_stride_ = 1;
};

}  // namespace sluice::engine
