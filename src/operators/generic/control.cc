// If and Loop whose course is known at run only, products with the weights of their bodies, and their single results.
#include "sluice/operators/generic/control.h"

#include "sluice/operators/guards.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace control;
namespace {

PlainRefusal infer_control(const PlainNode& node, PlainTensor& out) noexcept {
  Control<BodyForm> c;
  if (const PlainRefusal refusal = read_control(node, c)) return refusal;
  return infer_packed(c, out);
}

// ---- BodyDense: what a product with a constant becomes in a body

PlainRefusal infer_dense(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape &x = node.in(0).shape, &weight = node.in(1).shape;
  if (!is_f32(node.in(0).dtype) || !is_f32(node.in(1).dtype)) return kWrongType;
  if (x.rank() < 1 || weight.rank() != 2) return kWrongRank;
  if (x.back() != weight[1]) return kWrongShape;
  out = {DType::kF32, x};
  out.shape[x.rank() - 1] = weight[0];
  return nullptr;
}

// ---- TakeResult: one result, by its number

PlainRefusal infer_take(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const std::int64_t type = node.integer(kType), number = node.integer(kNumber);
  if (node.in(0).dtype != DType::kU8 || type < 0 || type >= kDTypeCount) return kWrongType;
  if (number < 0 || number >= static_cast<std::int64_t>(kMaxResults)) return kWrongArgument;
  out.dtype = static_cast<DType>(type);
  return make_shape(node.list(kShape), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal bound_take(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (const PlainRefusal refusal = infer_take(node, out)) return refusal;
  axes = static_cast<std::uint8_t>(node.integer(kAxes) & ((1 << out.shape.rank()) - 1));
  return nullptr;
}

// ---- Choose: one of two, as a condition says (guards.h)

PlainRefusal bound_choose(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  for (int i = 0; i < 3; ++i)
    if (!node.has(i)) return kMissingInput;
  const PlainTensor &yes = node.in(1), &no = node.in(2);
  if (!is_scalar(node.in(0), DType::kBool) || yes.dtype != no.dtype) return kWrongType;
  if (yes.shape.rank() != no.shape.rank()) return kWrongRank;
  Dims most;
  for (int axis = 0; axis < yes.shape.rank(); ++axis) {
    if (yes.shape[axis] != no.shape[axis]) axes = static_cast<std::uint8_t>(axes | 1u << axis);
    most.add(std::max(yes.shape[axis], no.shape[axis]));
  }
  out.dtype = yes.dtype;
  return make_shape(most.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_choose(const PlainNode& node, PlainTensor& out) noexcept {
  std::uint8_t axes = 0;
  return bound_choose(node, out, axes);
}

constexpr PlainOperator kOperators[] = {
    {560, "Control", "loop:I first:I second:I", infer_control, nullptr, 1, nullptr, false, true},
    {561, "TakeResult", "number:i=0 type:i=0 axes:i=0 shape:I", infer_take, nullptr, 1, bound_take, true},
    {kBodyDense, "BodyDense", "", infer_dense},
    {kChoose, "Choose", "", infer_choose, nullptr, 1, bound_choose, true},
};

}  // namespace

std::span<const PlainOperator> control_operators() noexcept { return kOperators; }

}  // namespace sluice::operators::generic
