// What batch normalisation does to a channel, once its statistics are known: one factor and one summand.
//
// The importer makes them of constant statistics and stores them (lower_dense.cc); the generic kernel makes them of those of a run
// (src/kernels/plain/normalize.cc). Both apply them as y = fma(x, scale, shift), so that the bits are the same.
#pragma once

#include <cmath>

namespace sluice::operators::generic::normalize {

struct ScaleAndShift {
  float scale = 1.0f, shift = 0.0f;
};

inline ScaleAndShift scale_and_shift(float scale, float shift, double mean, double variance, double epsilon) noexcept {
  const double factor = static_cast<double>(scale) / std::sqrt(variance + epsilon);
  return {static_cast<float>(factor), static_cast<float>(static_cast<double>(shift) - mean * factor)};
}

}  // namespace sluice::operators::generic::normalize
