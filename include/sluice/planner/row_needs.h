// Which rows of an input a band of a node's output reads: what connects the bands of neighbouring nodes. Derived from the relations that
// the operators declare (operators/relation.h), for rows as core/tensor.h folds them.
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
#include "sluice/model/graph.h"
#include "sluice/operators/definition.h"

namespace sluice::planner {

/// How many outer axes of a shape its rows fold.
inline int row_axes(const Shape& shape) noexcept { return shape.rank() == 4 ? 2 : std::max(shape.rank() - 1, 0); }

/// How the rows within an image, the innermost of the axes that rows fold, go with those of input `input`; nothing where bands are not
/// connected. The axes outside of it are the same.
inline std::optional<operators::AxisRelation> row_relation(const model::Graph& graph, const model::Node& node, std::size_t input) noexcept {
  const operators::Relations relations(graph, node);
  if (relations.is_residual(input)) return operators::same(0);
  const Shape &in = graph.tensor(node.inputs[input]).shape, &out = graph.tensor(node.outputs[0]).shape;
  if (!relations.definition().in_bands || in.rank() != out.rank()) return std::nullopt;
  const operators::AxisRelations axes = relations.input(input);
  const int folded = row_axes(out);
  for (int axis = 0; axis < folded; ++axis) {
    const operators::AxisRelation& r = axes[axis];
    const bool window = axis + 1 == folded && r.kind == operators::AxisKind::kWindow && r.output_axis == axis && r.divisor == 1;
    if (r != operators::same(axis) && !window) return std::nullopt;
  }
  return folded == 0 ? operators::same(0) : axes[folded - 1];
}

/// Rows of the node's output between which nothing is shared: those of an image, where windows slide.
inline std::int64_t rows_of_image(const model::Graph& graph, const model::Node& node) noexcept {
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const auto relation = node.inputs.empty() ? std::nullopt : row_relation(graph, node, 0);
  return relation && relation->kind == operators::AxisKind::kWindow ? out[row_axes(out) - 1] : row_extents(out).rows;
}

/// `row`, rounded up to the kernel's granule within its image.
inline std::int64_t round_row(const model::Graph& graph, const model::Node& node, std::int64_t granule, std::int64_t row) noexcept {
  const std::int64_t height = rows_of_image(graph, node);
  const std::int64_t image = row / height * height;
  return image + std::min(height, (row - image + granule - 1) / granule * granule);
}

/// Rows of input `input` that `rows` of the output read; nothing where they are not connected.
inline std::optional<RowRange> rows_read(const model::Graph& graph, const model::Node& node, std::int64_t granule, std::size_t input,
                                         RowRange rows) noexcept {
  const auto relation = row_relation(graph, node, input);
  if (!relation) return std::nullopt;
  if (relation->kind == operators::AxisKind::kSame) return rows;
  const Shape &in = graph.tensor(node.inputs[input]).shape, &out = graph.tensor(node.outputs[0]).shape;
  const int axis = row_axes(out) - 1;
  const std::int64_t height = out[axis], first_image = rows.begin / height, last_image = (rows.end - 1) / height;
  const std::int64_t top = rows.begin % height / granule * granule;
  const std::int64_t bottom = std::min(height, ((rows.end - 1) % height / granule + 1) * granule);
  return RowRange{first_image * in[axis] + operators::positions_read(*relation, {top, top + 1}, in[axis]).begin,
                  last_image * in[axis] + operators::positions_read(*relation, {bottom - 1, bottom}, in[axis]).end};
}

}  // namespace sluice::planner
