// Works out the arguments of Slice, Split and Pad for a tensor: where each part begins, how far it goes, what is before it.
//
// Read by the definitions (src/operators/generic/extents.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/extents.cc), which move the values.
//
// Invariant: whatever the arguments are, the resulting indices are inside the tensor, or the node is refused.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::extents {

/// A bit for each listed axis of `rank`; false when one lies outside or is listed twice.
inline bool listed_axes(std::span<const std::int64_t> list, int rank, std::uint32_t& axes) noexcept {
  axes = 0;
  for (const std::int64_t listed : list) {
    const int axis = axis_of(listed, rank);
    if (axis < 0 || (axes >> axis & 1u) != 0) return false;
    axes |= 1u << axis;
  }
  return true;
}

// ---- Slice, Split

struct Cut {
  Extents start{}, step{};
  Shape extents;
};

inline PlainRefusal read_cut(const PlainNode& node, Cut& cut) noexcept {
  const auto starts = node.list(0), ends = node.list(1), axes = node.list(2), steps = node.list(3);
  const auto fits = [&](auto list) { return list.empty() || list.size() == starts.size(); };
  if (ends.size() != starts.size() || !fits(axes) || !fits(steps)) return kWrongArgument;
  cut.extents = node.in(0).shape;
  cut.step.fill(1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(axes.empty() ? static_cast<std::int64_t>(i) : axes[i], cut.extents.rank());
    const std::int64_t step = steps.empty() ? 1 : steps[i];
    if (axis < 0) return kWrongAxis;
    if (step == 0 || step == INT64_MIN) return kWrongArgument;
    const std::int64_t extent = node.in(0).shape[axis];
    // Negative indices count from the end; ranges are then cut to the tensor, as in numpy.
    const auto place = [&](std::int64_t value) {
      const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
      if (value < 0) value = value < -extent ? low : value + extent;
      return std::clamp(value, low, std::max(low, high));
    };
    const std::int64_t start = place(starts[i]), end = place(ends[i]);
    const std::int64_t span = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    const auto a = static_cast<std::size_t>(axis);
    cut.start[a] = start;
    cut.extents[axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
    cut.step[a] = cut.extents[axis] <= 1 ? 1 : step;
  }
  return nullptr;
}

/// Where the node's part begins, and its extent.
inline PlainRefusal read_part(const PlainNode& node, int& axis, std::int64_t& first, std::int64_t& extent) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  axis = axis_of(node.integer(0), in.rank());
  if (axis < 0) return kWrongAxis;
  const auto parts = node.list(1);
  first = 0;
  if (parts.empty()) {
    const std::int64_t count = node.integer(2);
    if (count < 1 || node.result() >= count) return "neither the parts' extents nor their number is given";
    const std::int64_t part = in[axis] / count + (in[axis] % count != 0 ? 1 : 0);
    first = std::min(part * node.result(), in[axis]);
    extent = std::min(part, in[axis] - first);
    return nullptr;
  }
  std::int64_t sum = 0;
  if (static_cast<std::size_t>(node.result()) >= parts.size()) return kWrongArgument;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (static_cast<int>(i) == node.result()) first = sum;
    if (parts[i] < 0 || __builtin_add_overflow(sum, parts[i], &sum)) return kWrongArgument;
  }
  extent = parts[static_cast<std::size_t>(node.result())];
  return sum == in[axis] ? nullptr : "the parts do not add up to the axis";
}

// ---- Pad: a value, or the tensor mirrored, continued or repeated

enum PadMode : std::int64_t { kConstant = 0, kReflect = 1, kEdge = 2, kWrap = 3 };

/// Amounts before each axis, and the extents of the result.
inline PlainRefusal read_pads(const PlainNode& node, Extents& before, Shape& extents) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto pads = node.list(0), axes = node.list(1);
  const std::size_t count = axes.empty() ? static_cast<std::size_t>(in.rank()) : axes.size();
  std::uint32_t named = 0;
  if (pads.size() != 2 * count || !listed_axes(axes, in.rank(), named)) return kWrongArgument;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  extents = in;
  before = {};
  for (std::size_t i = 0; i < count; ++i) {
    const int axis = axes.empty() ? static_cast<int>(i) : axis_of(axes[i], in.rank());
    const std::int64_t low = pads[i], high = pads[count + i];
    if (low < -kMost || low > kMost || high < -kMost || high > kMost || in[axis] > kMost) return kWrongArgument;
    if (node.integer(2) != kConstant && (low < 0 || high < 0)) return "negative amounts need the mode constant";
    if (node.integer(2) == kReflect && std::max(low, high) >= std::max<std::int64_t>(in[axis], 1)) return kWrongArgument;
    before[static_cast<std::size_t>(axis)] = low;
    extents[axis] = std::max<std::int64_t>(in[axis] + low + high, 0);
  }
  return nullptr;
}

}  // namespace sluice::operators::generic::extents
