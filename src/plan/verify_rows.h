// What a step reads of its inputs, in rows: the verifier's own reading of the relations that the operators declare (operators/relation.h).
// It shares the data with the planner, which tests/operators probes, and no code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/core/tensor.h"
#include "sluice/model/graph.h"
#include "sluice/operators/definition.h"

namespace sluice::plan {

/// Winograd's squares of outputs are this high, and a step computes whole ones.
inline constexpr std::int64_t kSquareRows = 4;

/// Rows of input `input` that a step of `rows` may read; nothing where it may be any.
inline std::optional<RowRange> rows_of_input(const model::Graph& graph, const model::Node& node, std::size_t input, RowRange rows) {
  using operators::AxisKind;
  const Shape& in = graph.tensor(node.inputs[input]).shape;
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  if (in.rank() != out.rank()) return std::nullopt;
  const operators::AxisRelations axes = operators::Relations(graph, node).input(input);
  // Rows count the axes before the channels, and before the pixels of an image. All but the last of these axes must be the input's own.
  const int outer = out.rank() == 4 ? 1 : out.rank() - 2;
  for (int axis = 0; axis < outer; ++axis)
    if (axes[axis].kind != AxisKind::kSame || axes[axis].output_axis != axis) return std::nullopt;
  if (outer < 0) return rows;
  const operators::AxisRelation& row = axes[outer];
  if (row.output_axis != outer) return std::nullopt;
  if (row.kind == AxisKind::kSame) return rows;
  if (row.kind != AxisKind::kWindow || row.divisor < 1 || row.stride < 1) return std::nullopt;
  const std::int64_t height = out[outer], in_height = in[outer];
  const std::int64_t square = node.numeric == model::NumericClass::kWinograd4 ? kSquareRows : 1;
  const std::int64_t top = rows.begin % height / square * square;
  const std::int64_t bottom = std::min(height - 1, (rows.end - 1) % height / square * square + square - 1);
  const auto inside = [&](std::int64_t y) { return std::clamp<std::int64_t>(y, 0, in_height); };
  // Taps of a divided window meet inputs only where they are whole: from the first such position at or after its begin to the last before
  // its end. Both may lie before the image, where a division rounds the other way.
  const auto divided = [&](std::int64_t taps) { return taps >= 0 ? taps / row.divisor : -((-taps + row.divisor - 1) / row.divisor); };
  const std::int64_t first = inside(divided(top * row.stride - row.pad_before + row.divisor - 1));
  const std::int64_t end = inside(divided(bottom * row.stride - row.pad_before + (row.kernel - 1) * row.dilation) + 1);
  return RowRange{rows.begin / height * in_height + first, (rows.end - 1) / height * in_height + end};
}

}  // namespace sluice::plan
