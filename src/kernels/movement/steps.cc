#include "src/kernels/movement/steps.h"

#include <algorithm>
#include <array>
#include <optional>

#include "sluice/operators/parameters/movement.h"
#include "src/kernels/movement/regions.h"
#include "src/kernels/movement/strided_copy.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/padding.h"

namespace sluice::kernels::movement {
namespace {

/// How far neighbours of each axis lie apart in a view, in bytes.
using Steps = std::array<std::int64_t, Shape::kMaxRank>;

std::size_t at(int axis) noexcept { return static_cast<std::size_t>(axis); }

std::int64_t element_size(const Operand& operand) noexcept { return static_cast<std::int64_t>(size_of(operand.view.dtype)); }

bool wraps(const RowView& view) noexcept { return view.ring_rows != 0 && view.ring_rows < view.rows; }

/// Steps along the axes of `shape`, of which rows and pixels lie as `view` says.
Steps steps_along(const Shape& shape, const RowView& view) noexcept {
  Steps steps{};
  const int rank = shape.rank();
  if (rank == 0) return steps;
  steps[at(rank - 1)] = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t step = view.row_pitch;
  int axis = rank - 2;
  if (rank == 4) steps[at(axis--)] = view.pixel_pitch;
  for (; axis >= 0; step *= shape[axis--]) steps[at(axis)] = step;
  return steps;
}

/// All of an operand, whatever the step's rows: unless it is a ring that wraps.
std::optional<Steps> whole(const Operand& operand) noexcept {
  if (wraps(operand.view)) return std::nullopt;
  return steps_along(operand.shape, operand.view);
}

StridedCopy copy_between(const Operand& in, const Operand& out) noexcept {
  StridedCopy copy;
  copy.element = element_size(out);
  copy.from = in.view.data;
  copy.to = out.view.data;
  return copy;
}

/// Gathers copies and runs many at once, so that threads share them.
class Batch {
 public:
  Batch(ThreadPool* pool, Isa isa) noexcept : pool_(pool), isa_(isa) {}
  void add(const StridedCopy& copy) noexcept {
    copies_[count_++] = copy;
    if (count_ == copies_.size()) flush();
  }
  void flush() noexcept {
    run(std::span<const StridedCopy>(copies_.data(), count_), pool_, isa_);
    count_ = 0;
  }

 private:
  ThreadPool* pool_;
  Isa isa_;
  std::array<StridedCopy, 8> copies_;
  std::size_t count_ = 0;
};

void run_here(const KernelCall& call, Isa isa, const StridedCopy& copy) noexcept { run(copy, call.pool, isa); }

/// The first row behind `row` that does not follow it in memory.
std::int64_t end_of_run(const RowView& view, std::int64_t row, std::int64_t end) noexcept {
  return wraps(view) ? std::min(end, row - row % view.ring_rows + view.ring_rows) : end;
}

/// Along the channels: rows by rows, up to where one of the operands wraps.
void concat_channels(const KernelCall& call, Isa isa) noexcept {
  const Operand& out = call.outputs[0];
  Batch batch(call.pool, isa);
  for (std::int64_t row = call.rows.begin; row < call.rows.end;) {
    std::int64_t end = end_of_run(out.view, row, call.rows.end);
    for (const Operand& in : call.inputs) end = end_of_run(in.view, row, end);
    std::byte* to = out.view.row(row);
    for (const Operand& in : call.inputs) {
      StridedCopy copy = copy_between(in, out);
      copy.from = in.view.row(row);
      copy.to = to;
      copy.add(end - row, in.view.row_pitch, out.view.row_pitch);
      copy.add(out.view.pixels, in.view.pixel_pitch, out.view.pixel_pitch);
      copy.add(in.view.channels, copy.element, copy.element);
      batch.add(copy);
      to += in.view.channels * copy.element;
    }
    row = end;
  }
  batch.flush();
}

/// Axes of a padded tensor from `first` on. False: an axis has too many pieces.
bool add_padded_axes(const KernelCall& call, int first, const Steps& from, const Steps& to, StridedCopy& copy,
                     std::array<Pieces, Shape::kMaxRank>& pieces) noexcept {
  const auto& a = call.parameters<operators::PadParameters>();
  const Shape &in = call.inputs[0].shape, &out = call.outputs[0].shape;
  for (int axis = first; axis < out.rank(); ++axis) {
    const std::int64_t before = a.before[at(axis)], extent = in[axis];
    copy.add(out[axis], from[at(axis)], to[at(axis)]);
    // Beside constants places go on, so that those before and behind the tensor differ (Pieces::find).
    const auto place = [&](std::int64_t i) {
      return a.mode == PadMode::kConstant ? i - before : reference::pad_source(a.mode, i - before, extent);
    };
    if (!pieces[at(axis - first)].find(out[axis], extent, place)) return false;
  }
  return true;
}

/// The row that a row of the padded tensor is made of; -1: none.
std::int64_t padded_row(const KernelCall& call, int row_axes, std::int64_t row) noexcept {
  const auto& a = call.parameters<operators::PadParameters>();
  const Shape &in = call.inputs[0].shape, &out = call.outputs[0].shape;
  std::int64_t source = 0, stride = 1;
  for (int axis = row_axes - 1; axis >= 0; stride *= in[axis--]) {
    const std::int64_t place = reference::pad_source(a.mode, row % out[axis] - a.before[at(axis)], in[axis]);
    if (place < 0 || place >= in[axis]) return -1;
    source += place * stride;
    row /= out[axis];
  }
  return source;
}

/// Some rows, and rows of rings: one after the other.
void pad_rows(const KernelCall& call, Isa isa) noexcept {
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  const int rank = out.shape.rank(), row_axes = rank - (rank == 4 ? 2 : 1);
  if (row_axes < 1) return reference::pad(call);
  StridedCopy copy = copy_between(in, out);
  std::array<Pieces, Shape::kMaxRank> pieces;
  if (!add_padded_axes(call, row_axes, steps_along(in.shape, in.view), steps_along(out.shape, out.view), copy, pieces))
    return reference::pad(call);
  const auto outside = reference::element_of(out.view.dtype, call.parameters<operators::PadParameters>().value);
  for (std::int64_t row = call.rows.begin; row < call.rows.end; ++row) {
    StridedCopy of_row = copy;
    of_row.to = out.view.row(row);
    const std::int64_t source = padded_row(call, row_axes, row);
    if (source >= 0) {
      of_row.from = in.view.row(source);
      for_each_region(of_row, pieces, outside.data(), [&](const StridedCopy& region) { run_here(call, isa, region); });
    } else {
      of_row.from = outside.data();
      for (int i = 0; i < of_row.rank; ++i) of_row.axes[at(i)].from = 0;
      run_here(call, isa, of_row);
    }
  }
}

}  // namespace

void concat_step(const KernelCall& call, Isa isa) noexcept {
  const Operand& out = call.outputs[0];
  const int axis = call.parameters<operators::ConcatParameters>().axis, rank = out.shape.rank();
  if (axis == rank - 1) return concat_channels(call, isa);
  const auto wrapping = [](const Operand& operand) { return wraps(operand.view); };
  const bool part = call.rows.size() != out.view.rows || wrapping(out) || std::any_of(call.inputs.begin(), call.inputs.end(), wrapping);
  if (part) return reference::concat(call);
  const Steps to = steps_along(out.shape, out.view);
  Batch batch(call.pool, isa);
  std::int64_t first = 0;
  for (const Operand& in : call.inputs) {
    const Steps from = steps_along(in.shape, in.view);
    StridedCopy copy = copy_between(in, out);
    copy.to += first * to[at(axis)];
    for (int a = 0; a < rank; ++a) copy.add(in.shape[a], from[at(a)], to[at(a)]);
    batch.add(copy);
    first += in.shape[axis];
  }
  batch.flush();
}

void slice_step(const KernelCall& call, Isa isa) noexcept {
  const auto& a = call.parameters<operators::SliceParameters>();
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  const auto from = whole(in), to = whole(out);
  if (!from || !to) return reference::slice(call);
  StridedCopy copy = copy_between(in, out);
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    copy.from += a.start[at(axis)] * (*from)[at(axis)];
    copy.add(out.shape[axis], a.step[at(axis)] * (*from)[at(axis)], (*to)[at(axis)]);
  }
  run_here(call, isa, copy);
}

void pad_step(const KernelCall& call, Isa isa) noexcept {
  const auto& a = call.parameters<operators::PadParameters>();
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  const auto from = whole(in), to = whole(out);
  if (!from || !to || call.rows.size() != out.view.rows) return pad_rows(call, isa);
  StridedCopy copy = copy_between(in, out);
  std::array<Pieces, Shape::kMaxRank> pieces;
  if (!add_padded_axes(call, 0, *from, *to, copy, pieces)) return reference::pad(call);
  const auto outside = reference::element_of(out.view.dtype, a.value);
  for_each_region(copy, pieces, outside.data(), [&](const StridedCopy& region) { run_here(call, isa, region); });
}

void transpose_step(const KernelCall& call, Isa isa) noexcept {
  const auto& perm = call.parameters<operators::TransposeParameters>().perm;
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  const auto from = whole(in), to = whole(out);
  if (!from || !to) return reference::transpose(call);
  StridedCopy copy = copy_between(in, out);
  for (int axis = 0; axis < out.shape.rank(); ++axis) copy.add(out.shape[axis], (*from)[at(perm[at(axis)])], (*to)[at(axis)]);
  run_here(call, isa, copy);
}

/// One side has no gaps, so it lies as the other's rows, pixels and channels do.
void reshape_step(const KernelCall& call, Isa isa) noexcept {
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  if (wraps(in.view) || wraps(out.view) || !(in.view.dense() || out.view.dense())) return reference::reshape(call);
  const RowView& shaped = in.view.dense() ? out.view : in.view;
  StridedCopy copy = copy_between(in, out);
  const std::int64_t size = copy.element, pixel = shaped.channels * size, row = shaped.pixels * pixel;
  const auto add = [&](std::int64_t extent, std::int64_t pitch, std::int64_t dense) {
    in.view.dense() ? copy.add(extent, dense, pitch) : copy.add(extent, pitch, dense);
  };
  add(shaped.rows, shaped.row_pitch, row);
  add(shaped.pixels, shaped.pixel_pitch, pixel);
  add(shaped.channels, size, size);
  run_here(call, isa, copy);
}

}  // namespace sluice::kernels::movement
