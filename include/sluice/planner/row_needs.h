// Which rows of an input a band of a node's output reads: what connects the bands of neighbouring nodes.
//
//     window (convolution, pooling)     row by row
//     in   |0 1 2 3 4 5 6 7|            in   |0 1 2 3|
//              [=====]  3 high              |   |
//     out  |0 1 2 3|  stride 2          out  |0 1 2 3|
//
// Rows fold images: a window stays within its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/core/tensor.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"

namespace sluice::planner {

/// The window that slides over the rows of a node's first input, or nullptr.
inline const model::Window* window_of(const model::Node& node) noexcept {
  if (node.op == model::OpKind::kConv) return &node.as<model::ConvAttributes>().window;
  if (node.op == model::OpKind::kPool) return &node.as<model::PoolAttributes>().window;
  return nullptr;
}

/// `row`, rounded up to the kernel's granule within its image.
inline std::int64_t round_row(const model::Node& node, std::int64_t granule, std::int64_t row, std::int64_t rows) noexcept {
  const model::Window* w = window_of(node);
  const std::int64_t height = w == nullptr ? rows : w->out_h;
  const std::int64_t image = row / height * height;
  return image + std::min(height, (row - image + granule - 1) / granule * granule);
}

/// Rows of input `input` that `rows` of the output read; nothing where they are not connected.
inline std::optional<RowRange> rows_read(const model::Graph& graph, const model::Node& node, std::int64_t granule, std::size_t input,
                                         RowRange rows) noexcept {
  const Shape& in = graph.tensor(node.inputs[input]).shape;
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const bool residual = node.epilogue.has_residual && input + 1 == node.inputs.size();
  const model::Window* w = window_of(node);
  if (w != nullptr && input == 0 && !residual) {
    const auto first_tap = [&](std::int64_t y) { return y * w->stride_h - w->pad_top; };
    const std::int64_t image = rows.begin / w->out_h, last_image = (rows.end - 1) / w->out_h;
    const std::int64_t top = rows.begin % w->out_h / granule * granule;
    const std::int64_t bottom = std::min(w->out_h, ((rows.end - 1) % w->out_h / granule + 1) * granule) - 1;
    return RowRange{image * w->in_h + std::clamp<std::int64_t>(first_tap(top), 0, w->in_h),
                    last_image * w->in_h + std::clamp<std::int64_t>(first_tap(bottom) + (w->kernel_h - 1) * w->dilation_h + 1, 0, w->in_h)};
  }
  if (residual || (node.op == model::OpKind::kBinary && in == out)) return rows;
  switch (node.op) {
    case model::OpKind::kUnary:
    case model::OpKind::kAffine:
    case model::OpKind::kSoftmax:
    case model::OpKind::kLayerNorm:
    case model::OpKind::kDense:
      if (input == 0 && row_extents(in).rows == row_extents(out).rows && row_extents(in).pixels == row_extents(out).pixels) return rows;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace sluice::planner
