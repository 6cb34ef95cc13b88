// Folds over axes: sums and their kin, places of extremes, running sums.
#include "sluice/operators/generic/reduce.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace reduce;
namespace {

/// Axes that come at run time: each may be folded or not, but how many are listed is known.
PlainRefusal bound(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!takes(node)) return kWrongType;
  const Shape& in = node.in(0).shape;
  out = {node.in(0).dtype, in};
  axes = static_cast<std::uint8_t>((1u << in.rank()) - 1u);
  if (node.integer(1) != 0) return nullptr;
  const auto listed = static_cast<int>(std::min<std::int64_t>(node.in(1).count(), in.rank()));
  Dims dims;
  for (int axis = 0; axis + listed < in.rank(); ++axis) {
    std::int64_t most = 0;
    for (int from = axis; from <= axis + listed; ++from) most = std::max(most, in[from]);
    dims.add(most);
  }
  axes = static_cast<std::uint8_t>((1u << dims.count) - 1u);
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator line(std::uint16_t number, std::string_view name, Fold fold) noexcept {
  return {number, name, "axes:I@1 keepdims:i=1 noop_with_empty_axes:i=0", reduce::infer, &kFolds[static_cast<std::size_t>(fold)], 1, bound,
          false,  true};
}

// ---- ArgMax, ArgMin

constexpr bool kLargest = true, kSmallest = false;

PlainRefusal infer_arg(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (!is_number(x.dtype)) return kWrongType;
  const int axis = axis_of(node.integer(0), x.shape.rank());
  if (axis < 0) return kWrongAxis;
  if (x.shape[axis] == 0) return "an input is empty";
  Dims dims;
  dims.add(x.shape, 0, axis);
  if (node.integer(1) != 0) dims.add(1);
  dims.add(x.shape, axis + 1, x.shape.rank());
  out.dtype = DType::kI64;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_running(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  if (!is_number(node.in(0).dtype)) return kWrongType;
  if (!node.given(0) || axis_of(node.integer(0), node.in(0).shape.rank()) < 0) return kWrongAxis;
  out = {node.in(0).dtype, node.in(0).shape};
  return nullptr;
}

constexpr PlainOperator kReduceOperators[] = {
    line(170, "ReduceSum", Fold::kSum),
    line(171, "ReduceMean", Fold::kMean),
    line(172, "ReduceProd", Fold::kProd),
    line(173, "ReduceMax", Fold::kMax),
    line(174, "ReduceMin", Fold::kMin),
    line(175, "ReduceL1", Fold::kL1),
    line(176, "ReduceL2", Fold::kL2),
    line(177, "ReduceLogSum", Fold::kLogSum),
    line(178, "ReduceLogSumExp", Fold::kLogSumExp),
    line(179, "ReduceSumSquare", Fold::kSumSquare),
    {180, "ArgMax", "axis:i=0 keepdims:i=1 select_last_index:i=0", infer_arg, &kLargest},
    {181, "ArgMin", "axis:i=0 keepdims:i=1 select_last_index:i=0", infer_arg, &kSmallest},
    {182, "CumSum", "axis:i@1 exclusive:i=0 reverse:i=0", infer_running, &reduce::kSum, 1, bound_as_input},
    {183, "CumProd", "axis:i@1 exclusive:i=0 reverse:i=0", infer_running, &kProduct, 1, bound_as_input},
};

}  // namespace

std::span<const PlainOperator> reduce_operators() noexcept { return kReduceOperators; }

}  // namespace sluice::operators::generic
