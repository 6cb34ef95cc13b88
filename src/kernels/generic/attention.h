// What attention makes of the scores of one query row: weights that are not yet divided by their total, and the total. The output of a
// channel is one chain over the keys of weight * value (generic/chains.h), then / total.
#pragma once

#include <cstdint>
#include <limits>

#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/lane_sum.h"

namespace sluice::kernels::generic {

/// exp(score - greatest score), in place; their total, summed as a softmax sums. A score of minus infinity has no weight; where all are,
/// there is no total: 0.
inline float weigh(float* scores, std::int64_t count) noexcept {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  float greatest = kNothing;
  for (std::int64_t t = 0; t < count; ++t) greatest = greatest < scores[t] ? scores[t] : greatest;
  reference::LaneSum sum;
  for (std::int64_t t = 0; t < count; ++t) {
    scores[t] = scores[t] == kNothing ? 0.0f : reference::exp(scores[t] - greatest);
    sum.add(t, scores[t]);
  }
  return sum.total();
}

}  // namespace sluice::kernels::generic
