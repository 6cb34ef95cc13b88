// A part of a node's work, and how much that is: what planner and profiler ask of operators and kernels.
#pragma once

#include <cstdint>

#include "sluice/core/interval.h"

namespace sluice {

/// The part of a node that a step does: `workspace` and `cost` are asked about one.
struct StepExtent {
  RowRange rows;
  ChannelRange channels;
  int threads = 1;
  bool derived = false;  // the derived panels of `channels` are given: the workspace need not hold them
};

/// How much work a step is. The profiler's rates turn it into time.
struct CostFeatures {
  std::uint64_t flops = 0;         // multiply and add are two
  std::uint64_t input_bytes = 0;   // activations read
  std::uint64_t output_bytes = 0;  // activations written
  std::uint64_t weight_bytes = 0;  // weights read
  friend bool operator==(const CostFeatures&, const CostFeatures&) = default;
};

}  // namespace sluice
