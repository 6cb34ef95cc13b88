// RNN, GRU and LSTM: the cell of a line of the table, names for its arguments, and the extents of one node.
//
// Read by the definitions (src/operators/generic/recurrent.cc), which refuse what does not fit, and by the generic kernels
// (src/kernels/plain/recurrent.cc). A definition's `detail` points to the cell.
//
// Invariant: when `sizes_of` refuses nothing, weights, bias and states have the extents that it gives.
#pragma once

#include "sluice/core/activation.h"
#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::recurrent {

inline constexpr Cell kRnn = Cell::kRnn, kGru = Cell::kGru, kLstm = Cell::kLstm;

// Arguments in their order.
enum Argument : std::size_t { kHidden, kDirection, kLayout, kClip, kLinear, kForget, kActivations, kAlpha, kBeta };

struct Sizes {
  std::int64_t times = 0, batches = 0, inputs = 0, hidden = 0, directions = 1, gates = 1;
  bool batch_first = false;
};

inline Cell cell_of(const PlainNode& node) noexcept { return *static_cast<const Cell*>(node.op().detail); }

inline PlainRefusal sizes_of(const PlainNode& node, Sizes& s) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  for (const int i : {0, 1, 2, 3, 5, 6, 7})
    if (node.has(i) && !is_f32(node.in(i).dtype)) return kWrongType;
  const Shape &x = node.in(0).shape, &w = node.in(1).shape, &r = node.in(2).shape;
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3) return kWrongRank;
  s.batch_first = node.integer(kLayout) != 0;
  s.times = x[s.batch_first ? 1 : 0];
  s.batches = x[s.batch_first ? 0 : 1];
  s.inputs = x[2];
  s.hidden = r[2];
  s.gates = cell_of(node) == Cell::kRnn ? 1 : cell_of(node) == Cell::kGru ? 3 : 4;
  s.directions = node.integer(kDirection) == 2 ? 2 : 1;
  if (node.integer(kHidden) != 0 && node.integer(kHidden) != s.hidden) return kWrongShape;
  if (!(w == Shape{s.directions, s.gates * s.hidden, s.inputs}) || !(r == Shape{s.directions, s.gates * s.hidden, s.hidden}))
    return kWrongShape;
  if (node.has(3) && !(node.in(3).shape == Shape{s.directions, 2 * s.gates * s.hidden})) return kWrongShape;
  if (node.has(4) && (node.in(4).dtype != DType::kI32 || node.in(4).count() != s.batches)) return kWrongShape;
  for (const int i : {5, 6})
    if (node.has(i) && node.in(i).count() != s.directions * s.batches * s.hidden) return kWrongShape;
  if (node.has(7) && !(node.in(7).shape == Shape{s.directions, 3 * s.hidden})) return kWrongShape;
  const std::size_t functions = static_cast<std::size_t>(s.directions) * (cell_of(node) == Cell::kRnn   ? 1
                                                                          : cell_of(node) == Cell::kGru ? 2
                                                                                                        : 3);
  return node.list(kActivations).size() == functions ? nullptr : kWrongArgument;
}

}  // namespace sluice::operators::generic::recurrent
