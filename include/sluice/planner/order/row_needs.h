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

/// How the rows of an output go with those of an input: within an image, the innermost of the axes that rows fold, by `relation`; the axes
/// outside of it are the same.
struct RowRelation {
  operators::AxisRelation relation;
  std::int64_t height = 1;        // rows of an image of the output
  std::int64_t input_height = 1;  // and of the input
  bool slides() const noexcept { return relation.kind == operators::AxisKind::kWindow; }
};

/// Which operators' rows are connected: those that take part in bands for time (OperatorDefinition::in_bands), where plans of ample budgets
/// must stay what they are, or whatever the declared relations connect, for bands that save memory.
enum class Connected : std::uint8_t { kListed, kDeclared };

/// The rows of input `input`; nothing where bands are not connected.
inline std::optional<RowRelation> row_relation(const model::Graph& graph, const model::Node& node, std::size_t input,
                                               Connected connected = Connected::kListed) noexcept {
  const operators::Relations relations(graph, node);
  if (relations.is_residual(input)) return RowRelation{operators::same(0)};
  const Shape &in = graph.tensor(node.inputs[input]).shape, &out = graph.tensor(node.outputs[0]).shape;
  const bool all = connected == Connected::kDeclared;
  if (!(all || relations.definition().in_bands) || in.rank() != out.rank() || relations.recurrence().there()) return std::nullopt;
  const operators::AxisRelations axes = relations.input(input);
  const int folded = row_axes(out);
  for (int axis = 0; axis < folded; ++axis) {
    const operators::AxisRelation& r = axes[axis];
    const bool window =
        axis + 1 == folded && r.kind == operators::AxisKind::kWindow && r.output_axis == axis && r.stride > 0 && (all || r.divisor == 1);
    if (r != operators::same(axis) && !window) return std::nullopt;
  }
  if (folded == 0) return RowRelation{operators::same(0)};
  return RowRelation{axes[folded - 1], out[folded - 1], in[folded - 1]};
}

/// Rows of the node's output between which nothing is shared: those of an image, where windows slide.
inline std::int64_t rows_of_image(const model::Graph& graph, const model::Node& node, Connected connected = Connected::kListed) noexcept {
  const auto rows = node.inputs.empty() ? std::nullopt : row_relation(graph, node, 0, connected);
  return rows && rows->slides() ? rows->height : row_extents(graph.tensor(node.outputs[0]).shape).rows;
}

/// `row`, rounded up to the kernel's granule within its image of `height` rows.
inline std::int64_t round_row(std::int64_t height, std::int64_t granule, std::int64_t row) noexcept {
  const std::int64_t image = row / height * height;
  return image + std::min(height, (row - image + granule - 1) / granule * granule);
}

/// Rows of the input that `rows` of the output read, widened to the kernel's granule within their image. What operators::positions_read
/// says of the first row and the last: partitions ask for it at each row of each band that they try, so it divides only where it must.
inline RowRange rows_read(const RowRelation& by, std::int64_t granule, RowRange rows) noexcept {
  if (!by.slides()) return rows;
  const bool one_image = rows.end <= by.height;
  const std::int64_t first_image = one_image ? 0 : rows.begin / by.height, last_image = one_image ? 0 : (rows.end - 1) / by.height;
  std::int64_t top = rows.begin - first_image * by.height, last = rows.end - 1 - last_image * by.height;
  if (granule > 1) {
    top = top / granule * granule;
    last = std::min(by.height, (last / granule + 1) * granule) - 1;
  }
  const operators::AxisRelation& window = by.relation;
  if (window.divisor != 1) {
    const auto of_first = operators::positions_read(window, {top, top + 1}, by.input_height);
    const auto of_last = operators::positions_read(window, {last, last + 1}, by.input_height);
    return {first_image * by.input_height + of_first.begin, last_image * by.input_height + of_last.end};
  }
  const std::int64_t begin = top * window.stride - window.pad_before;
  const std::int64_t end = last * window.stride - window.pad_before + (window.kernel - 1) * window.dilation + 1;
  return {first_image * by.input_height + std::clamp<std::int64_t>(begin, 0, by.input_height),
          last_image * by.input_height + std::clamp<std::int64_t>(end, 0, by.input_height)};
}

}  // namespace sluice::planner
