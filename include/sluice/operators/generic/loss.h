// How a loss is folded into one value: the words of the attribute `reduction`, in the order in which its line lists them.
//
// Read by the definitions (src/operators/generic/loss.cc) and by the generic kernels (src/kernels/plain/loss.cc). The first is the default
// of ONNX; their places are stored in model files, so a new one goes to the end.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::loss {

enum Reduction : std::int64_t { kMean = 0, kSum = 1, kNone = 2 };

}  // namespace sluice::operators::generic::loss
