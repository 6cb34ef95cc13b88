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

}  // namespace

void matmul_step(const KernelCall& call, ProductRun product) noexcept {
  const RowView& right = call.inputs[1].view;
  // Rows of a ring do not lie at one distance.
  if (right.ring_rows != 0) return reference::matmul(call);
  const reference::MatrixLines lines(call);
  const RowView& out = call.outputs[0].view;
  const Interval<std::int64_t> all{call.rows.begin * out.pixels, call.rows.end * out.pixels};

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
                       .n = std::min(columns, out.channels - column)};
      const std::int64_t batch_end = (line / lines.batch() + 1) * lines.batch();
      for (; line < std::min(end, batch_end); ++line, ++tile.rows) {
        tile.left[tile.rows] = reinterpret_cast<const float*>(lines.left(line));
        tile.out[tile.rows] = reinterpret_cast<float*>(lines.out(line)) + column;
      }
      product(tile);
    }
  };
  if (call.pool != nullptr) return parallel_for(*call.pool, tiles * blocks, do_tile);
  for (std::int64_t index = 0; index < tiles * blocks; ++index) do_tile(index, 0);
}

}  // namespace sluice::kernels::elementwise
