// What a step reads of its inputs, in rows, written from the operators' definitions: the verifier's own word on bands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/core/tensor.h"
#include "sluice/model/graph.h"

namespace sluice::plan {

/// Winograd's squares of outputs are this high, and a step computes whole ones.
inline constexpr std::int64_t kSquareRows = 4;

/// Rows of input `input` that a step of `rows` may read; nothing where it may be any.
inline std::optional<RowRange> rows_of_input(const model::Graph& graph, const model::Node& node, std::size_t input, RowRange rows) {
  const RowExtents in = row_extents(graph.tensor(node.inputs[input]).shape);
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  const bool same_grid = in.rows == out.rows && in.pixels == out.pixels;
  if (node.epilogue.has_residual && input + 1 == node.inputs.size()) return same_grid ? std::optional(rows) : std::nullopt;
  const model::Window* window = nullptr;
  switch (node.op) {
    case model::OpKind::kConv:
      window = &node.as<model::ConvAttributes>().window;
      break;
    case model::OpKind::kPool:
      window = &node.as<model::PoolAttributes>().window;
      break;
    case model::OpKind::kBinary:
      return graph.tensor(node.inputs[input]).shape == graph.tensor(node.outputs[0]).shape ? std::optional(rows) : std::nullopt;
    case model::OpKind::kUnary:
    case model::OpKind::kAffine:
    case model::OpKind::kSoftmax:
    case model::OpKind::kLayerNorm:
    case model::OpKind::kDense:
      return input == 0 && same_grid ? std::optional(rows) : std::nullopt;
    default:
      return std::nullopt;
  }
  if (input != 0 || window->out_h < 1 || window->in_h < 1) return std::nullopt;
  const std::int64_t square = node.numeric == model::NumericClass::kWinograd4 ? kSquareRows : 1;
  const std::int64_t top = rows.begin % window->out_h / square * square;
  const std::int64_t bottom = std::min(window->out_h - 1, (rows.end - 1) % window->out_h / square * square + square - 1);
  const auto inside = [&](std::int64_t y) { return std::clamp<std::int64_t>(y, 0, window->in_h); };
  const std::int64_t first = inside(top * window->stride_h - window->pad_top);
  const std::int64_t end = inside(bottom * window->stride_h - window->pad_top + (window->kernel_h - 1) * window->dilation_h + 1);
  return RowRange{rows.begin / window->out_h * window->in_h + first, (rows.end - 1) / window->out_h * window->in_h + end};
}

}  // namespace sluice::plan
