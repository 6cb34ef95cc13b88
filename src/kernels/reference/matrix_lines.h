// Where the lines of a product of two activations lie: [..., M, K] x [..., K, N], leading axes broadcast, pitches and rings of any kind.
#pragma once

#include "sluice/kernels/call.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {

/// A line of the output is (batch, m), counted over all batches.
class MatrixLines {
 public:
  explicit MatrixLines(const KernelCall& call) noexcept : left_(call.inputs[0]), right_(call.inputs[1]), out_(call.outputs[0]) {}

  /// Lines of one batch.
  std::int64_t batch() const noexcept { return out_.shape[rank() - 2]; }
  std::byte* out(std::int64_t line) const noexcept { return out_.view.at<std::byte>(line / out_.view.pixels, line % out_.view.pixels); }
  const std::byte* left(std::int64_t line) const noexcept { return address(left_, broadcast_index(left_.shape, index(line), rank())); }
  /// Line k of the right matrix of that line's batch.
  const std::byte* right(std::int64_t line, std::int64_t k = 0) const noexcept {
    Index at = broadcast_index(right_.shape, index(line), rank());
    at[static_cast<std::size_t>(right_.shape.rank() - 2)] = k;
    return address(right_, at);
  }
  /// Bytes from one line of a right matrix to the next, where no ring holds them.
  std::int64_t right_pitch() const noexcept { return right_.shape.rank() == 4 ? right_.view.pixel_pitch : right_.view.row_pitch; }

 private:
  int rank() const noexcept { return out_.shape.rank(); }
  Index index(std::int64_t line) const noexcept { return index_at(out_.shape, line / out_.view.pixels, line % out_.view.pixels); }

  const Operand& left_;
  const Operand& right_;
  const Operand& out_;
};

}  // namespace sluice::kernels::reference
