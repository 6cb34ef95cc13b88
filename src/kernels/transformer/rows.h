// The inner loops of layer norms and of attention that are not products: one row at a time, the same bits on every instruction set.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::transformer {

struct RowTable {
  /// out[i] = (in[i] - mean) / sqrt(variance + epsilon) * scale[i] + shift[i]; `out` may be `in`.
  void (*layer_norm)(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n) noexcept = nullptr;
  /// As `layer_norm`, of `count` rows that lie behind each other; of a few values, rows are the lanes.
  void (*layer_norm_rows)(const float* in, const float* scale, const float* shift, float epsilon, float* out, std::int64_t n,
                          std::int64_t count) noexcept = nullptr;
  /// Scores to weights, in place: exp(factor * score - greatest). Returns the sum of the weights.
  float (*weigh)(float factor, float* scores, std::int64_t n) noexcept = nullptr;
  /// values[i] /= divisor
  void (*divide)(float* values, float divisor, std::int64_t n) noexcept = nullptr;
  /// to[k * to_pitch + t] = from[t * from_pitch + k] for t < rows, k < depth; pitches in floats.
  void (*transpose)(const float* from, std::int64_t from_pitch, std::int64_t rows, std::int64_t depth, float* to,
                    std::int64_t to_pitch) noexcept = nullptr;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const RowTable& row_table(Isa isa) noexcept;

}  // namespace sluice::kernels::transformer
