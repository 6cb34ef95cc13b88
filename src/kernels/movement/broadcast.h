// Operands that broadcast, as runs of values beside each other: what an elementwise operator works on, whatever the shapes are.
//
//     out [300, 200, 2] = a [300, 1, 2] op b [1, 200, 2]     lines of two values are no work for a vector, but blocks of a few rows are:
//     of a block b is as it lies, and the values of a are repeated by the movement engine in a buffer
//
// Axes that all operands walk alike are one. An operand's values that follow each other, or are one value again and again, are read where
// they lie; others come in a buffer, which is kept while the same values are asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/core/shape.h"
#include "src/kernels/movement/strided_copy.h"

namespace sluice::kernels::movement {

/// An operand, with gaps or without: how far neighbours along the output's axes lie apart in it, in elements; 0 where it repeats.
struct BroadcastOperand {
  const std::byte* data = nullptr;
  std::int64_t element = 4;  // bytes
  std::array<std::int64_t, Shape::kMaxRank> strides{};
};

/// Values of an operand along a run: step 1, or 0 for one value repeated.
struct BroadcastValues {
  const std::byte* data = nullptr;
  std::int64_t step = 1;
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data);
  }
};

template <std::size_t N>
class BroadcastRuns {
 public:
  BroadcastRuns(const Shape& out, const std::array<BroadcastOperand, N>& operands, Isa isa) noexcept : operands_(operands), isa_(isa) {
    for (int axis = 0; axis < out.rank(); ++axis)
      if (out[axis] != 1) add(out[axis], static_cast<std::size_t>(axis));
    if (axes_ == 0) add(1, 0);
    inner_[axes_ - 1] = 1;
    for (std::size_t a = axes_ - 1; a-- > 0;) inner_[a] = inner_[a + 1] * extents_[a + 1];
  }

  /// body(first element, count, values) for runs that together are elements [begin, end) of the output; false ends it.
  template <class Body>
  void run(std::int64_t begin, std::int64_t end, const Body& body) noexcept {
    for (std::int64_t at = begin; at < end;) {
      const std::size_t axis = find_run(at, end);
      std::array<BroadcastValues, N> values;
      for (std::size_t n = 0; n < N; ++n) values[n] = values_of(n, axis);
      if (!body(at, count_ * inner_[axis], values)) return;
      at += count_ * inner_[axis];
    }
  }

 private:
  static constexpr std::int64_t kBufferBytes = 4096;  // all operands' buffers lie in the first cache, beside what is written
  static constexpr std::int64_t kMostOfLine = std::int64_t{1} << 16;

  void add(std::int64_t extent, std::size_t axis) noexcept {
    bool follows = axes_ > 0;
    for (std::size_t n = 0; n < N && follows; ++n) follows = steps_[n][axes_ - 1] == operands_[n].strides[axis] * extent;
    if (follows)
      extents_[axes_ - 1] *= extent;
    else
      extents_[axes_++] = extent;
    for (std::size_t n = 0; n < N; ++n) steps_[n][axes_ - 1] = operands_[n].strides[axis];
  }

  /// Where element `at` lies, and the outermost axis along which a run may go from there: `count_` places of it, all of those within.
  std::size_t find_run(std::int64_t at, std::int64_t end) noexcept {
    std::int64_t most = kBufferBytes;
    for (const BroadcastOperand& operand : operands_) most = std::min(most, kBufferBytes / operand.element);
    std::int64_t rest = at;
    offsets_.fill(0);
    std::array<std::int64_t, Shape::kMaxRank> index{};
    for (std::size_t a = 0; a < axes_; ++a) {
      index[a] = rest / inner_[a];
      rest -= index[a] * inner_[a];
      for (std::size_t n = 0; n < N; ++n) offsets_[n] += index[a] * steps_[n][a];
    }
    std::size_t axis = axes_ - 1;
    const auto places = [&](std::size_t a) {
      const std::int64_t room = a + 1 == axes_ && lines_lie_as_runs() ? kMostOfLine : most / inner_[a];
      return std::min({extents_[a] - index[a], (end - at) / inner_[a], room});
    };
    // Long lines are runs as they are.
    while (extents_[axes_ - 1] < kShortLine && axis > 0 && index[axis] == 0 && places(axis - 1) > 0 && places(axis) == extents_[axis])
      --axis;
    count_ = places(axis);
    return axis;
  }
  static constexpr std::int64_t kShortLine = 256;

  /// Has no operand gaps between the values of a line?
  bool lines_lie_as_runs() const noexcept {
    for (const auto& steps : steps_)
      if (steps[axes_ - 1] > 1) return false;
    return true;
  }

  BroadcastValues values_of(std::size_t n, std::size_t axis) noexcept {
    const BroadcastOperand& operand = operands_[n];
    const std::byte* const from = operand.data + offsets_[n] * operand.element;
    bool beside = steps_[n][axes_ - 1] == 1, same = steps_[n][axes_ - 1] == 0;
    for (std::size_t a = axis; a + 1 < axes_; ++a) {
      beside = beside && steps_[n][a] == steps_[n][a + 1] * extents_[a + 1];
      same = same && steps_[n][a] == 0;
    }
    if (beside || same) return {from, beside ? 1 : 0};
    Held& held = held_[n];
    if (held.from != from || held.axis != axis || held.count != count_) {
      StridedCopy copy;
      copy.element = operand.element;
      copy.from = from;
      copy.to = held.values;
      for (std::size_t a = axis; a < axes_; ++a)
        copy.add(a == axis ? count_ : extents_[a], steps_[n][a] * operand.element, inner_[a] * operand.element);
      movement::run(copy, isa_);
      held.from = from;
      held.axis = axis;
      held.count = count_;
    }
    return {held.values, 1};
  }

  struct Held {
    const std::byte* from = nullptr;
    std::size_t axis = 0;
    std::int64_t count = 0;
    alignas(64) std::byte values[kBufferBytes];
  };

  const std::array<BroadcastOperand, N> operands_;
  const Isa isa_;
  std::size_t axes_ = 0;
  std::array<std::int64_t, Shape::kMaxRank> extents_{}, inner_{};
  std::array<std::array<std::int64_t, Shape::kMaxRank>, N> steps_{};
  std::array<std::int64_t, N> offsets_{};
  std::int64_t count_ = 0;
  std::array<Held, N> held_;
};

}  // namespace sluice::kernels::movement
