// How a scattered value is combined with the one that is there: the words of the attribute `reduction`, in the order in which its line
// lists them.
//
// Read by the definitions (src/operators/generic/scatter.cc) and by the generic kernels (src/kernels/plain/scatter.cc). Their numbers are
// stored in model files, so a new one goes to the end.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::scatter {

enum Reduction : std::int64_t { kNone = 0, kAdd = 1, kMul = 2, kMax = 3, kMin = 4 };

}  // namespace sluice::operators::generic::scatter
