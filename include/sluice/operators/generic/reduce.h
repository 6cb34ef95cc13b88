// Reductions: which fold a line of the table stands for, and the axes that a node folds.
//
// Read by the definitions (src/operators/generic/reduce.cc), which refuse axes outside the tensor, and by the generic kernels
// (src/kernels/plain/reduce.cc). A definition's `detail` points to the fold.
//
// Invariant: axes that come at run are asked for again with their values, so a kernel never sees one outside the tensor.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::reduce {

enum class Fold : std::uint8_t { kSum, kMean, kProd, kMax, kMin, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

inline constexpr Fold kFolds[] = {Fold::kSum, Fold::kMean, Fold::kProd,   Fold::kMax,       Fold::kMin,
                                  Fold::kL1,  Fold::kL2,   Fold::kLogSum, Fold::kLogSumExp, Fold::kSumSquare};

inline Fold fold_of(const PlainNode& node) noexcept { return *static_cast<const Fold*>(node.op().detail); }

/// Bit `axis`: it is folded. Nothing listed: all, or none with noop_with_empty_axes.
inline bool folded_axes(const PlainNode& node, std::uint32_t& axes) noexcept {
  const int rank = node.in(0).shape.rank();
  axes = 0;
  if (node.list(0).empty()) {
    axes = node.integer(2) != 0 ? 0 : (1u << rank) - 1u;
    return true;
  }
  for (const std::int64_t listed : node.list(0)) {
    const int axis = axis_of(listed, rank);
    if (axis < 0) return false;
    axes |= 1u << axis;
  }
  return true;
}

/// The node's first input is there.
inline bool takes(const PlainNode& node) noexcept {
  const DType dtype = node.in(0).dtype;
  const bool order = fold_of(node) == Fold::kMax || fold_of(node) == Fold::kMin;
  return is_number(dtype) || (order && dtype == DType::kBool);
}

inline PlainRefusal infer(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  if (!takes(node)) return kWrongType;
  std::uint32_t axes = 0;
  if (!folded_axes(node, axes)) return kWrongAxis;
  Dims dims;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if ((axes >> axis & 1u) == 0)
      dims.add(x.shape[axis]);
    else if (node.integer(1) != 0)
      dims.add(1);
  }
  out.dtype = x.dtype;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- CumSum, CumProd

inline constexpr bool kProduct = true, kSum = false;

}  // namespace sluice::operators::generic::reduce
