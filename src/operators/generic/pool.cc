// Pools over any number of axes: the forms that kPool does not take (three axes, integers, places of maxima, powers).
#include "sluice/operators/generic/pool.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace pool;
namespace {

PlainRefusal infer_pool(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  const bool bytes = x.dtype == DType::kI8 || x.dtype == DType::kU8;
  if (!is_f32(x.dtype) && !(kind_of(node) == Pool::kMax && bytes)) return kWrongType;
  Windows w;
  if (!windows_of(node, w)) return kWrongArgument;
  if (kind_of(node) == Pool::kLp && node.integer(6) < 1) return kWrongArgument;
  out.dtype = node.result() == 1 ? DType::kI64 : x.dtype;
  return window_shape(w, x.shape[0], x.shape[1], out.shape) ? nullptr : kWrongShape;
}

// ---- over all spatial axes at once

PlainRefusal infer_global(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (!is_f32(x.dtype)) return kWrongType;
  if (x.shape.rank() < 2) return kWrongRank;
  if (kind_of(node) == Pool::kLp && node.integer(0) < 1) return kWrongArgument;
  out = {DType::kF32, x.shape};
  for (int axis = 2; axis < x.shape.rank(); ++axis) out.shape[axis] = 1;
  return nullptr;
}

// ---- MaxUnpool: values, their places, the output's shape

PlainRefusal infer_unpool(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (node.in(1).dtype != DType::kI64 || !(node.in(1).shape == x.shape)) return kWrongType;
  out.dtype = x.dtype;
  if (node.given(6))
    return static_cast<int>(node.list(6).size()) == x.shape.rank() && make_shape(node.list(6), out.shape) ? nullptr : kWrongShape;
  Windows w;
  if (!read_windows(node, x.shape, {}, w)) return kWrongArgument;
  for (std::size_t a = 0; a < static_cast<std::size_t>(w.axes); ++a) {
    w.out[a] = (w.in[a] - 1) * w.stride[a] + w.kernel[a] - w.before[a] - w.after[a];
    if (w.out[a] < 1) return kWrongArgument;
  }
  return window_shape(w, x.shape[0], x.shape[1], out.shape) ? nullptr : kWrongShape;
}

constexpr PlainOperator kPoolOperators[] = {
    {370, "MaxPool", SLUICE_WINDOW_ARGUMENTS "storage_order:i=0", infer_pool, &kMax, 2},
    {371, "AveragePool", SLUICE_WINDOW_ARGUMENTS "count_include_pad:i=0", infer_pool, &kAverage},
    {372, "LpPool", SLUICE_WINDOW_ARGUMENTS "p:i=2", infer_pool, &kLp},
    {373, "GlobalMaxPool", "", infer_global, &kMax},
    {374, "GlobalAveragePool", "", infer_global, &kAverage},
    {375, "GlobalLpPool", "p:i=2", infer_global, &kLp},
    {376, "MaxUnpool", SLUICE_WINDOW_ARGUMENTS "output_shape:I@2", infer_unpool, nullptr, 1, bound_stated},
};

}  // namespace

std::span<const PlainOperator> pool_operators() noexcept { return kPoolOperators; }

}  // namespace sluice::operators::generic
