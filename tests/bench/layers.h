// The layers that kernels are judged by: shapes of well-known networks, and what prototypes reached on them.
#pragma once

#include <vector>

#include "tests/kernels/weighted_harness.h"

namespace sluice::bench {

using kernels::test::Problem;

/// One row of the table.
struct Layer {
  const char* name;
  Problem problem;
  kernels::test::Run run;
  kernels::test::Workspace workspace;
  double prototype;  // share of the FMA peak that a prototype reached; 0: none is known
  bool cut = false;  // also in slices and in strips
};

/// The rows of this project's kernel table, then layers of SqueezeNet, MobileNetV2, EfficientNet, ResNets and transformers.
std::vector<Layer> layers();

}  // namespace sluice::bench
