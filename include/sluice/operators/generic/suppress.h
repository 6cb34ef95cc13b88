// NonMaxSuppression: names for its arguments, and the numbers of boxes, classes and results of one node.
//
// Read by the definition (src/operators/generic/suppress.cc), which gives the most results, and by the generic kernel
// (src/kernels/plain/suppress.cc), which writes how many there are.
//
// Invariant: the three numbers are those of both inputs.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::suppress {

// Boxes [batch, boxes, 4], scores [batch, classes, boxes]; result [selected, 3]: batch, class, box.
enum Argument : std::size_t { kMost, kOverlap, kScore, kCentre };

struct Counts {
  std::int64_t batches = 0, classes = 0, boxes = 0;
};

inline PlainRefusal read_counts(const PlainNode& node, Counts& counts) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const PlainTensor &boxes = node.in(0), &scores = node.in(1);
  if (!is_f32(boxes.dtype) || !is_f32(scores.dtype)) return kWrongType;
  if (boxes.shape.rank() != 3 || scores.shape.rank() != 3) return kWrongRank;
  if (boxes.shape[2] != 4 || boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2]) return kWrongShape;
  counts = {boxes.shape[0], scores.shape[1], boxes.shape[1]};
  return nullptr;
}

}  // namespace sluice::operators::generic::suppress
