// Values that move as they are, into extents that may be known at run only: what is a view or a copy where extents are fixed (kReshape,
// kConcat, kSlice, kPad, kTranspose) is a plain operator where they are not.
#include "sluice/operators/generic/extents.h"

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/rows.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/move.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::extents;
namespace {

PlainRefusal run_copy(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  copy_elements(out.data, node.in(0).data, out.count(), out.dtype);
  return nullptr;
}

PlainRefusal run_shape(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& shape = node.in(0).shape;
  const std::int64_t start = node.integer(0), rank = shape.rank();
  const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? std::max(start, -rank) + rank : start, 0, rank);
  for (std::int64_t i = 0; i < out.count(); ++i) out.as<std::int64_t>()[i] = shape[static_cast<int>(first + i)];
  return nullptr;
}

PlainRefusal run_size(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  *out.as<std::int64_t>() = node.in(0).count();
  return nullptr;
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

PlainRefusal run_split(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  int axis = 0;
  std::int64_t first = 0, extent = 0;
  if (const PlainRefusal refusal = read_part(node, axis, first, extent)) return refusal;
  move_block(node, node.in(0), out, axis_view(out.shape, axis), {first, node.in(0).shape[axis]}, {0, extent});
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

PlainRefusal run_fill(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const std::int64_t bits = node.integer(2);
  const std::size_t size = size_of(out.dtype);
  for (std::int64_t i = 0; i < out.count(); ++i) std::memcpy(out.data + static_cast<std::size_t>(i) * size, &bits, size);
  return nullptr;
}

PlainRefusal run_function(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Activation activation{static_cast<Function>(node.integer(0)), static_cast<float>(node.real(1)), static_cast<float>(node.real(2))};
  elementwise::run_table(active_isa()).unary(activation, node.in(0).as<const float>(), out.as<float>(), out.count());
  return nullptr;
}

PlainRefusal run_softmax(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const bool old = node.integer(1) < 13, log = *static_cast<const bool*>(node.op().detail);
  const int axis = axis_of(node.given(0) ? node.integer(0) : old ? 1 : -1, out.shape.rank());
  AxisView view = axis_view(out.shape, axis);
  if (old) view = {view.outer, view.extent * view.inner, 1};  // before opset 13 all axes from `axis` on are one
  const elementwise::RunTable& runs = elementwise::run_table(active_isa());
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t i = 0; i < view.inner; ++i) {
      const std::int64_t first = o * view.extent * view.inner + i;
      if (view.inner == 1)
        runs.softmax(log, node.in(0).as<const float>() + first, out.as<float>() + first, view.extent);
      else
        generic::softmax(node.in(0).as<const float>() + first, out.as<float>() + first, view.extent, view.inner, log);
    }
  return nullptr;
}

constexpr GenericKernel kExtentsKernels[] = {
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

std::span<const GenericKernel> extents_kernels() noexcept { return kExtentsKernels; }

}  // namespace sluice::kernels::plain
