// What softmax and layer normalisation make of one row, whose values may lie any number of places apart. Sums are formed by LaneSum.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/lane_sum.h"

namespace sluice::kernels::generic {

/// exp(x - max) / sum, or x - max - log(sum). `out` may be `in`.
inline void softmax(const float* in, float* out, std::int64_t count, std::int64_t step, bool log) noexcept {
  float greatest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < count; ++i) greatest = greatest < in[i * step] ? in[i * step] : greatest;
  reference::LaneSum sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const float shifted = in[i * step] - greatest;
    const float e = reference::exp(shifted);
    sum.add(i, e);
    out[i * step] = log ? shifted : e;
  }
  const float total = sum.total();
  const float log_total = reference::log(total);
  for (std::int64_t i = 0; i < count; ++i) out[i * step] = log ? out[i * step] - log_total : out[i * step] / total;
}

struct Moments {
  float mean = 0.0f;
  float factor = 0.0f;  // 1 / sqrt(variance + epsilon)
};

inline Moments moments_of(const float* in, std::int64_t count, float epsilon) noexcept {
  reference::LaneSum sum, squares;
  for (std::int64_t i = 0; i < count; ++i) sum.add(i, in[i]);
  const float mean = sum.total() / static_cast<float>(count);
  for (std::int64_t i = 0; i < count; ++i) squares.add_square(i, in[i] - mean);
  return {mean, 1.0f / std::sqrt(squares.total() / static_cast<float>(count) + epsilon)};
}

inline float normalised(float x, const Moments& m, float scale, float shift) noexcept {
  return std::fma((x - m.mean) * m.factor, scale, shift);
}

}  // namespace sluice::kernels::generic
