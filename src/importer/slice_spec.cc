#include "src/importer/slice_spec.h"

#include <algorithm>

namespace sluice::importer {

SliceSpec read_slice(const NodeContext& c, const Shape& shape) {
  std::vector<std::int64_t> starts, ends, axes, steps;
  if (c.opset() < 10) {
    starts = c.integers("starts");
    ends = c.integers("ends");
    axes = c.integers("axes");
  } else {
    starts = c.constant_integers(1, "starts");
    ends = c.constant_integers(2, "ends");
    if (c.has_input(3)) axes = c.constant_integers(3, "axes");
    if (c.has_input(4)) steps = c.constant_integers(4, "steps");
  }
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.malformed("starts, ends, axes and steps must be equally long");
  SliceSpec spec = SliceSpec::whole(shape);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = c.axis(axes[i], shape.rank());
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t extent = shape[axis], step = steps[i];
    if (step == 0 || step == INT64_MIN) c.malformed("a step is zero or out of range");
    // Negative places count from the end; everything is then cut to the tensor (numpy).
    const auto place = [&](std::int64_t value, std::int64_t low, std::int64_t high) {
      if (value < 0) value = value < -extent ? low : value + extent;
      return std::clamp(value, low, high);
    };
    const std::int64_t start = step > 0 ? place(starts[i], 0, extent) : place(starts[i], -1, extent - 1);
    const std::int64_t end = step > 0 ? place(ends[i], 0, extent) : place(ends[i], -1, extent - 1);
    const std::int64_t span = step > 0 ? end - start : start - end;
    const std::int64_t stride = step > 0 ? step : -step;
    spec.start[a] = start;
    spec.step[a] = step;
    spec.extent[a] = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (spec.extent[a] <= 1) spec.step[a] = 1;
  }
  return spec;
}

std::vector<std::int64_t> split_extents(const NodeContext& c, std::int64_t extent) {
  std::vector<std::int64_t> parts = c.has_input(1) ? c.constant_integers(1, "the parts' extents") : c.integers("split");
  const auto count = static_cast<std::int64_t>(c.node().outputs.size());
  if (count == 0) c.malformed("no outputs");
  if (parts.empty()) {
    // Equal parts; since opset 18 the last may be smaller.
    const std::int64_t part = ceil_div(extent, count);
    if (c.opset() < 18 && extent % count != 0) c.malformed("the axis does not divide into equal parts");
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<std::int64_t>(extent - i * part, 0, part));
  }
  if (static_cast<std::int64_t>(parts.size()) != count) c.malformed("as many parts as outputs are needed");
  std::int64_t sum = 0;
  for (const std::int64_t part : parts)
    if (part < 0 || __builtin_add_overflow(sum, part, &sum)) c.malformed("a part's extent is out of range");
  if (sum != extent) c.malformed("the parts do not add up to the axis");
  return parts;
}

Constant sliced(const Constant& constant, const SliceSpec& spec) {
  Constant out = constant;
  std::int64_t offset = 0;
  bool empty = false;
  for (int axis = 0; axis < constant.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    out.shape[axis] = spec.extent[a];
    out.strides[a] = constant.strides[a] * spec.step[a];
    offset += constant.strides[a] * spec.start[a];
    empty = empty || spec.extent[a] == 0;
  }
  if (!empty) out.data += offset * static_cast<std::int64_t>(size_of(constant.dtype));
  return out;
}

}  // namespace sluice::importer
