// Names for the arguments of operators on images, and how many axes they take.
//
// Read by the definitions (src/operators/generic/image.cc) and by the generic kernels (src/kernels/plain/image.cc). The node has its
// arguments in the order of these numbers, which is that of the words in the operator's line; a new one goes to the end.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic::image {

inline constexpr int kMaxGridAxes = 3;

// ---- RoiAlign: X [N, C, H, W], rois [R, 4], batch indices [R]

enum RoiArgument : std::size_t { kRoiMode, kRoiHeight, kRoiWidth, kRoiSamples, kRoiScale, kRoiCoordinates, kRoiOpset };

}  // namespace sluice::operators::generic::image
