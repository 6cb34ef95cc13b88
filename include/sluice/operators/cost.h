// How much work a step of any operator is, from shapes alone: what kernels answer to the planner, and what the profiler's rates turn into
// time.
#pragma once

#include <cstdint>

#include "sluice/core/interval.h"
#include "sluice/model/graph.h"

namespace sluice::operators {

/// What part of a node a step is to do.
struct StepExtent {
  RowRange rows;
  ChannelRange channels;
  int threads = 1;
  bool derived = false;  // the derived panels of `channels` are given: the workspace need not hold them
};

/// How much work a step is.
struct CostFeatures {
  std::uint64_t flops = 0;         // multiply and add are two
  std::uint64_t input_bytes = 0;   // activations read
  std::uint64_t output_bytes = 0;  // activations written
  std::uint64_t weight_bytes = 0;  // weights read
};

/// `part` of `all` parts of a whole.
std::uint64_t share_of(std::uint64_t whole, std::int64_t part, std::int64_t all) noexcept;

CostFeatures cost_of(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept;

}  // namespace sluice::operators
