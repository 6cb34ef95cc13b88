// If, Loop and Scan whose course is known at run only, and their single results.
#include "sluice/operators/generic/control.h"

#include "sluice/operators/guards.h"
#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace control;
namespace {

PlainRefusal infer_if(const PlainNode& node, PlainTensor& out) noexcept {
  Results results;
  if (const PlainRefusal refusal = read_results(node, 0, results)) return refusal;
  if (!node.has(0)) return kMissingInput;
  if (!is_scalar(node.in(0), DType::kBool)) return kWrongType;
  return infer_packed(results, out);
}

PlainRefusal infer_loop(const PlainNode& node, PlainTensor& out) noexcept {
  Loop loop;
  if (const PlainRefusal refusal = read_loop(node, loop)) return refusal;
  const auto inputs = node.inputs();
  if (loop.has_count && !is_scalar(inputs[0], DType::kI64)) return kWrongType;
  if (loop.has_condition && !is_scalar(inputs[loop.own_inputs() - 1], DType::kBool)) return kWrongType;
  return infer_packed(loop.results, out);
}

PlainRefusal infer_scan(const PlainNode& node, PlainTensor& out) noexcept {
  Scan scan;
  if (const PlainRefusal refusal = read_scan(node, scan)) return refusal;
  return infer_packed(scan.results, out);
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

// 560, 562 and 570 were nodes whose bodies lay in their arguments (src/operators/subgraphs.cc).
constexpr PlainOperator kControlOperators[] = {
    {561, "TakeResult", "number:i=0 type:i=0 axes:i=0 shape:I", infer_take, nullptr, 1, bound_take, true},
    {kChoose, "Choose", "", infer_choose, nullptr, 1, bound_choose, true},
    {kRunIf, "RunIf", "results:I", infer_if, nullptr, 1, nullptr, false, true},
    {kRunLoop, "RunLoop", "loop:I results:I", infer_loop, nullptr, 1, nullptr, false, true},
};

constexpr PlainOperator kScanOperators[] = {
    {kRunScan, "RunScan", "what:I inputs:I outputs:I results:I", infer_scan, nullptr, 1, nullptr, false, true},
};

}  // namespace

std::span<const PlainOperator> control_operators() noexcept { return kControlOperators; }
std::span<const PlainOperator> scan_operators() noexcept { return kScanOperators; }

}  // namespace sluice::operators::generic
