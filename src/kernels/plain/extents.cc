// Values that move as they are, into extents that may be known at run only: what is a view or a copy where extents are fixed (kReshape,
// kConcat, kSlice, kPad, kTranspose) is a plain operator where they are not.
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/reference/functions.h"

namespace sluice::kernels::plain {
namespace {

PlainRefusal run_copy(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

// ---- Shape, Size

PlainRefusal infer_shape(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const std::int64_t rank = node.in(0).shape.rank();
  const auto cut = [&](std::int64_t place) { return std::clamp<std::int64_t>(place < 0 ? std::max(place, -rank) + rank : place, 0, rank); };
  const std::int64_t first = cut(node.integer(0)), last = cut(node.given(1) ? node.integer(1) : rank);
  out = {DType::kI64, Shape{std::max<std::int64_t>(last - first, 0)}};
  return nullptr;
}

PlainRefusal run_shape(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& shape = node.in(0).shape;
  const std::int64_t start = node.integer(0), rank = shape.rank();
  const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? std::max(start, -rank) + rank : start, 0, rank);
  for (std::int64_t i = 0; i < out.count(); ++i) out.as<std::int64_t>()[i] = shape[static_cast<int>(first + i)];
  return nullptr;
}

PlainRefusal infer_size(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  out = {DType::kI64, Shape{}};
  return nullptr;
}

PlainRefusal run_size(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  *out.as<std::int64_t>() = node.in(0).count();
  return nullptr;
}

// ---- Reshape, Flatten, Squeeze, Unsqueeze: the same values in other extents

PlainRefusal infer_reshape(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  Dims dims;
  std::int64_t known = 1, rest = -1;
  for (const std::int64_t wanted : node.list(0)) {
    const auto place = static_cast<int>(dims.count);
    if (place >= Shape::kMaxRank) return kWrongRank;
    std::int64_t extent = wanted;
    if (wanted == 0 && node.integer(1) == 0) {
      if (place >= x.shape.rank()) return kWrongAxis;
      extent = x.shape[place];
    }
    if (extent < -1 || (extent == -1 && rest >= 0)) return kWrongArgument;
    if (extent == -1)
      rest = place;
    else if (__builtin_mul_overflow(known, extent, &known))
      return kWrongArgument;
    dims.add(extent);
  }
  if (rest >= 0) dims.values[static_cast<std::size_t>(rest)] = known == 0 ? 0 : x.count() / known;
  out.dtype = x.dtype;
  return make_shape(dims.span(), out.shape) && out.shape.element_count() == x.count() ? nullptr : kWrongShape;
}

PlainRefusal infer_flatten(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const int axis = node.integer(0) == in.rank() ? in.rank() : axis_of(node.integer(0), in.rank());
  if (axis < 0) return kWrongAxis;
  out = {node.in(0).dtype, Shape{in.count(0, axis), in.count(axis, in.rank())}};
  return nullptr;
}

/// A bit for each listed axis of `rank`; false when one lies outside or is listed twice.
bool listed_axes(std::span<const std::int64_t> list, int rank, std::uint32_t& axes) noexcept {
  axes = 0;
  for (const std::int64_t listed : list) {
    const int axis = axis_of(listed, rank);
    if (axis < 0 || (axes >> axis & 1u) != 0) return false;
    axes |= 1u << axis;
  }
  return true;
}

PlainRefusal infer_squeeze(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  std::uint32_t gone = 0;
  if (!listed_axes(node.list(0), in.rank(), gone)) return kWrongAxis;
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const bool listed = (gone >> axis & 1u) != 0;
    if (listed && in[axis] != 1) return "an axis to squeeze has more than one place";
    if (node.given(0) ? !listed : in[axis] != 1) dims.add(in[axis]);
  }
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_unsqueeze(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto rank = static_cast<std::size_t>(in.rank()) + node.list(0).size();
  std::uint32_t added = 0;
  if (rank > Shape::kMaxRank) return kWrongRank;
  if (!listed_axes(node.list(0), static_cast<int>(rank), added)) return kWrongAxis;
  Dims dims;
  int from = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) dims.add((added >> axis & 1u) != 0 ? 1 : in[from++]);
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- Transpose

PlainRefusal infer_transpose(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  const auto perm = node.list(0);
  std::uint32_t seen = 0;
  if (!perm.empty() && (static_cast<int>(perm.size()) != in.rank() || !listed_axes(perm, in.rank(), seen))) return kWrongArgument;
  Dims dims;
  for (int axis = 0; axis < in.rank(); ++axis)
    dims.add(in[perm.empty() ? in.rank() - 1 - axis : axis_of(perm[static_cast<std::size_t>(axis)], in.rank())]);
  out.dtype = node.in(0).dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal run_transpose(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  const int rank = x.shape.rank();
  const auto perm = node.list(0);
  const Extents own = strides_of(x.shape);
  Extents strides{};
  for (int axis = 0; axis < rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    strides[a] = own[static_cast<std::size_t>(perm.empty() ? rank - 1 - axis : axis_of(perm[a], rank))];
  }
  move_strided(node, x, out, strides);
  return nullptr;
}

// ---- Concat

PlainRefusal infer_concat(const PlainNode& node, PlainTensor& out) noexcept {
  if (node.inputs().empty()) return kMissingInput;
  out = {node.inputs()[0].dtype, node.inputs()[0].shape};
  const int axis = axis_of(node.integer(0), out.shape.rank());
  if (axis < 0) return kWrongAxis;
  std::int64_t extent = 0;
  for (const PlainTensor& part : node.inputs()) {
    if (part.dtype != out.dtype) return kWrongType;
    if (part.shape.rank() != out.shape.rank()) return kWrongRank;
    for (int a = 0; a < out.shape.rank(); ++a)
      if (a != axis && part.shape[a] != out.shape[a]) return kWrongShape;
    if (__builtin_add_overflow(extent, part.shape[axis], &extent)) return kWrongShape;
  }
  out.shape[axis] = extent;
  return nullptr;
}

PlainRefusal run_concat(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const int axis = axis_of(node.integer(0), out.shape.rank());
  std::int64_t first = 0;
  for (const PlainTensor& part : node.inputs()) {
    const AxisView block = axis_view(part.shape, axis);
    move_block(node, part, out, block, {0, block.extent}, {first, out.shape[axis]});
    first += block.extent;
  }
  return nullptr;
}

// ---- Slice, Split

struct Cut {
  Extents start{}, step{};
  Shape extents;
};

PlainRefusal read_cut(const PlainNode& node, Cut& cut) noexcept {
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
    // Negative places count from the end; everything is then cut to the tensor (numpy).
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

PlainRefusal infer_slice(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  Cut cut;
  if (const PlainRefusal refusal = read_cut(node, cut)) return refusal;
  out = {node.in(0).dtype, cut.extents};
  return nullptr;
}

/// No longer than the input in any axis, and as long in those that are not named.
PlainRefusal bound_slice(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const Shape& in = node.in(0).shape;
  out = {node.in(0).dtype, in};
  std::uint32_t named = 0;
  if (node.has(3) || !listed_axes(node.list(2), in.rank(), named) || named == 0) named = (1u << in.rank()) - 1u;
  axes = static_cast<std::uint8_t>(named);
  return nullptr;
}

PlainRefusal run_slice(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  Cut cut;
  if (const PlainRefusal refusal = read_cut(node, cut)) return refusal;
  Extents strides = strides_of(x.shape);
  std::int64_t first = 0;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    first += cut.start[a] * strides[a];
    strides[a] *= cut.step[a];
  }
  move_strided(node, x, out, strides, first);
  return nullptr;
}

/// Where the node's part begins, and its extent.
PlainRefusal read_part(const PlainNode& node, int& axis, std::int64_t& first, std::int64_t& extent) noexcept {
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

PlainRefusal infer_split(const PlainNode& node, PlainTensor& out) noexcept {
  int axis = 0;
  std::int64_t first = 0, extent = 0;
  if (const PlainRefusal refusal = read_part(node, axis, first, extent)) return refusal;
  out = {node.in(0).dtype, node.in(0).shape};
  out.shape[axis] = extent;
  return nullptr;
}

PlainRefusal bound_split(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  const int axis = axis_of(node.integer(0), node.in(0).shape.rank());
  if (axis < 0) return kWrongAxis;
  out = {node.in(0).dtype, node.in(0).shape};
  axes = static_cast<std::uint8_t>(1u << axis);
  return nullptr;
}

PlainRefusal run_split(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  int axis = 0;
  std::int64_t first = 0, extent = 0;
  if (const PlainRefusal refusal = read_part(node, axis, first, extent)) return refusal;
  move_block(node, node.in(0), out, axis_view(out.shape, axis), {first, node.in(0).shape[axis]}, {0, extent});
  return nullptr;
}

// ---- Pad: a value, or the tensor mirrored, continued or repeated

enum PadMode : std::int64_t { kConstant = 0, kReflect = 1, kEdge = 2, kWrap = 3 };

/// Amounts before each axis, and the extents of the result.
PlainRefusal read_pads(const PlainNode& node, Extents& before, Shape& extents) noexcept {
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

PlainRefusal infer_pad(const PlainNode& node, PlainTensor& out) noexcept {
  Extents before;
  if (const PlainRefusal refusal = read_pads(node, before, out.shape)) return refusal;
  out.dtype = node.in(0).dtype;
  if (node.has(2) && (node.in(2).dtype != out.dtype || node.in(2).count() != 1)) return kWrongType;
  return nullptr;
}

PlainRefusal run_pad(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const PlainTensor& x = node.in(0);
  Extents before;
  Shape extents;
  if (const PlainRefusal refusal = read_pads(node, before, extents)) return refusal;
  const std::int64_t mode = node.integer(2);
  if (mode != kConstant && x.count() == 0) return "an input has no elements in this run";
  const auto place = [&](int axis, std::int64_t i) {
    const std::int64_t at = i - before[static_cast<std::size_t>(axis)], extent = x.shape[axis];
    if (mode == kEdge) return std::clamp<std::int64_t>(at, 0, extent - 1);
    if (mode == kReflect) return at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at;
    return mode == kWrap ? (at % extent + extent) % extent : at;
  };
  const auto value = static_cast<float>(node.real(3));  // before opset 11; other types have none
  std::array<std::byte, 8> outside{};
  if (node.has(2))
    std::memcpy(outside.data(), node.in(2).data, size_of(out.dtype));
  else if (is_f32(out.dtype))
    std::memcpy(outside.data(), &value, sizeof value);
  move_by_places(node, x, out, place, outside.data());
  return nullptr;
}

// ---- ConstantOfShape: its value is an argument, as bits

constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kU8,  DType::kI8,  DType::kU16,
                            DType::kI16, DType::kI32, DType::kI64, DType::kF32, DType::kBool};  // by TensorProto.DataType; reals are f32

PlainRefusal fill_type(const PlainNode& node, PlainTensor& out) noexcept {
  const std::int64_t type = node.integer(1);
  if (type < 1 || type >= static_cast<std::int64_t>(std::size(kTypes)) || type == 8) return kWrongType;
  out.dtype = kTypes[type];
  return nullptr;
}

PlainRefusal infer_fill(const PlainNode& node, PlainTensor& out) noexcept {
  if (const PlainRefusal refusal = fill_type(node, out)) return refusal;
  return make_shape(node.list(0), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal bound_fill(const PlainNode& node, PlainTensor& out, std::uint8_t&) noexcept {
  const PlainRefusal refusal = fill_type(node, out);
  return refusal != nullptr ? refusal : kStateBound;
}

PlainRefusal run_fill(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const std::int64_t bits = node.integer(2);
  const std::size_t size = size_of(out.dtype);
  for (std::int64_t i = 0; i < out.count(); ++i) std::memcpy(out.data + static_cast<std::size_t>(i) * size, &bits, size);
  return nullptr;
}

// ---- the functions of kUnary, and Softmax

PlainRefusal infer_function(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (node.integer(0) < 0 || node.integer(0) >= kFunctionCount) return kWrongArgument;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

PlainRefusal run_function(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Activation activation{static_cast<Function>(node.integer(0)), static_cast<float>(node.real(1)), static_cast<float>(node.real(2))};
  for (std::int64_t i = 0; i < out.count(); ++i) out.as<float>()[i] = reference::apply(activation, node.in(0).as<const float>()[i]);
  return nullptr;
}

constexpr bool kLog = true, kNoLog = false;

PlainRefusal infer_softmax(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_f32(node.in(0).dtype)) return kWrongType;
  if (axis_of(node.given(0) ? node.integer(0) : node.integer(1) < 13 ? 1 : -1, node.in(0).shape.rank()) < 0) return kWrongAxis;
  out = {DType::kF32, node.in(0).shape};
  return nullptr;
}

PlainRefusal run_softmax(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const bool old = node.integer(1) < 13, log = *static_cast<const bool*>(node.op().detail);
  const int axis = axis_of(node.given(0) ? node.integer(0) : old ? 1 : -1, out.shape.rank());
  AxisView view = axis_view(out.shape, axis);
  if (old) view = {view.outer, view.extent * view.inner, 1};  // before opset 13 all axes from `axis` on are one
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const std::int64_t first = o * view.extent * view.inner + i;
      const float* const x = node.in(0).as<const float>() + first;
      float* const y = out.as<float>() + first;
      float most = -HUGE_VALF;
      for (std::int64_t k = 0; k < view.extent; ++k) most = std::max(most, x[k * view.inner]);
      double sum = 0;
      for (std::int64_t k = 0; k < view.extent; ++k) sum += std::exp(static_cast<double>(x[k * view.inner] - most));
      for (std::int64_t k = 0; k < view.extent; ++k) {
        const double d = static_cast<double>(x[k * view.inner] - most);
        y[k * view.inner] = static_cast<float>(log ? d - std::log(sum) : std::exp(d) / sum);
      }
    }
  return nullptr;
}

constexpr PlainOperator kOperators[] = {
    {500, "Shape", "start:i=0 end:i", infer_shape, nullptr, 1, nullptr, false, true},
    {501, "Size", "", infer_size, nullptr, 1, nullptr, false, true},
    {502, "Reshape", "shape:I@1 allowzero:i=0", infer_reshape, nullptr, 1, bound_stated},
    {503, "Flatten", "axis:i=1", infer_flatten},
    {504, "Squeeze", "axes:I@1", infer_squeeze, nullptr, 1, bound_stated},
    {505, "Unsqueeze", "axes:I@1", infer_unsqueeze, nullptr, 1, bound_stated},
    {506, "Transpose", "perm:I", infer_transpose},
    {507, "Concat", "axis:i=1", infer_concat, nullptr, 1, nullptr, false, true},
    {508, "Slice", "starts:I@1 ends:I@2 axes:I@3 steps:I@4", infer_slice, nullptr, 1, bound_slice},
    {509, "Split", "axis:i=0 split:I@1 num_outputs:i=0", infer_split, nullptr, 128, bound_split},
    {510, "Pad", "pads:I@1 axes:I@3 mode:s=constant|reflect|edge|wrap value:f=0", infer_pad, nullptr, 1, bound_stated, false, true},
    {511, "FillOfShape", "shape:I@0 type:i=1 bits:i=0", infer_fill, nullptr, 1, bound_fill},
    {512, "ApplyFunction", "function:i=0 a:f=0 b:f=0", infer_function},
    {513, "Softmax", "axis:i #", infer_softmax, &kNoLog},
    {514, "LogSoftmax", "axis:i #", infer_softmax, &kLog},
};

constexpr GenericKernel kKernels[] = {
    {"Shape", run_shape},
    {"Size", run_size},
    {"Reshape", run_copy},
    {"Flatten", run_copy},
    {"Squeeze", run_copy},
    {"Unsqueeze", run_copy},
    {"Transpose", run_transpose},
    {"Concat", run_concat},
    {"Slice", run_slice},
    {"Split", run_split},
    {"Pad", run_pad},
    {"FillOfShape", run_fill},
    {"ApplyFunction", run_function},
    {"Softmax", run_softmax},
    {"LogSoftmax", run_softmax},
};

}  // namespace

std::span<const PlainOperator> extents_operators() noexcept { return kOperators; }
std::span<const GenericKernel> extents_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
