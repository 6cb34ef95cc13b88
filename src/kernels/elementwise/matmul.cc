// The product of two activations: lines of the output (its second last axis) are shared among the threads in tiles, for a block of columns
// at a time.
#include <algorithm>

#include "src/kernels/elementwise/product.h"
#include "src/kernels/elementwise/steps.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/matrix_lines.h"

namespace sluice::kernels::elementwise {
namespace {

// Columns of the right matrix that stay in the second cache while all lines pass over them.
constexpr std::int64_t kBlockFloats = 64 * 1024;
constexpr std::int64_t kBlockColumns = 64;

std::int64_t block_columns(std::int64_t depth, std::int64_t n) noexcept {
  return std::min(n, std::max<std::int64_t>(1, kBlockFloats / std::max<std::int64_t>(1, depth) / kBlockColumns) * kBlockColumns);
}

/// Lines of a unit where they are the lanes.
constexpr std::int64_t kUnitLines = 128;

/// Lines of a batch lie at one distance, and are many beside few columns.
bool lines_are_lanes(const KernelCall& call, const reference::MatrixLines& lines, const ProductTable& table) noexcept {
  const std::int64_t columns = call.outputs[0].view.channels;
  const bool rings = call.inputs[0].view.ring_rows != 0 || call.outputs[0].view.ring_rows != 0;
  return !rings && columns >= 1 && columns <= table.most_columns && lines.batch() >= table.least_lines;
}

/// Lines [first, end).
void multiply_lines(const KernelCall& call, const reference::MatrixLines& lines, const ProductTable& table,
                    Interval<std::int64_t> part) noexcept {
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t line = part.begin; line < part.end;) {
    const std::int64_t end = std::min(part.end, (line / lines.batch() + 1) * lines.batch()), next = std::min(line + 1, end - 1);
    table.columns({.left = reinterpret_cast<const float*>(lines.left(line)),
                   .left_step = (lines.left(next) - lines.left(line)) / kFloat,
                   .out = reinterpret_cast<float*>(lines.out(line)),
                   .out_step = (lines.out(next) - lines.out(line)) / kFloat,
                   .rows = end - line,
                   .right = reinterpret_cast<const float*>(lines.right(line)),
                   .right_pitch = lines.right_pitch() / kFloat,
                   .depth = call.inputs[0].view.channels,
                   .n = call.outputs[0].view.channels});
    line = end;
  }
}

}  // namespace

void matmul_step(const KernelCall& call, const ProductTable& table) noexcept {
  const RowView& right = call.inputs[1].view;
  // Rows of a ring do not lie at one distance.
  if (right.ring_rows != 0) return reference::matmul(call);
  const reference::MatrixLines lines(call);
  const RowView& out = call.outputs[0].view;
  const Interval<std::int64_t> all{call.rows.begin * out.pixels, call.rows.end * out.pixels};

  if (lines_are_lanes(call, lines, table)) {
    const auto do_lines = [&](std::int64_t i, int) noexcept {
      const std::int64_t first = all.begin + i * kUnitLines;
      multiply_lines(call, lines, table, {first, std::min(all.end, first + kUnitLines)});
    };
    const std::int64_t units = ceil_div(all.size(), kUnitLines);
    if (call.pool != nullptr) return parallel_for(*call.pool, units, do_lines);
    for (std::int64_t i = 0; i < units; ++i) do_lines(i, 0);
    return;
  }
  const std::int64_t depth = call.inputs[0].view.channels, columns = block_columns(depth, out.channels);
  const std::int64_t tiles = ceil_div(all.size(), kMaxProductRows), blocks = ceil_div(out.channels, std::max<std::int64_t>(1, columns));

  const auto do_tile = [&](std::int64_t index, int) {
    const std::int64_t column = index / tiles * columns;
    const std::int64_t first = all.begin + index % tiles * kMaxProductRows;
    const std::int64_t end = std::min(all.end, first + kMaxProductRows);
    for (std::int64_t line = first; line < end;) {
      ProductTile tile{.right = reinterpret_cast<const float*>(lines.right(line)) + column,
                       .right_pitch = lines.right_pitch() / std::int64_t{sizeof(float)},
                       .depth = depth,
                       .n = std::min(columns, out.channels - column),
                       .may_be_subnormal = true};
      const std::int64_t batch_end = (line / lines.batch() + 1) * lines.batch();
      for (; line < std::min(end, batch_end); ++line, ++tile.rows) {
        tile.left[tile.rows] = reinterpret_cast<const float*>(lines.left(line));
        tile.out[tile.rows] = reinterpret_cast<float*>(lines.out(line)) + column;
      }
      table.tile(tile);
    }
  };
  if (call.pool != nullptr) return parallel_for(*call.pool, tiles * blocks, do_tile);
  for (std::int64_t index = 0; index < tiles * blocks; ++index) do_tile(index, 0);
}

}  // namespace sluice::kernels::elementwise
