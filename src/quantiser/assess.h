// Measures how far the integers are from the floats: signal to noise of tensors, and the indices of the outputs' largest values.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/core/shape.h"
#include "src/quantiser/probe.h"

namespace sluice::quantiser {

struct Noise {
  double signal = 0, error = 0;  // sums of squares

  void add(std::span<const float> wanted, std::span<const float> found) noexcept;
  /// 10 log10(signal / error); infinite without an error.
  double decibels() const noexcept;
};

/// Rows of classes: how often two tensors have the largest value at the same index. The class axis is 1 of images, else the last.
class Agreement {
 public:
  void show(const Shape& shape);
  /// Tensors come one after the other, each complete, in parts.
  void add(std::int64_t first, std::span<const float> wanted, std::span<const float> found);
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t agreeing() const noexcept { return agreeing_; }

 private:
  struct Best {
    float value = 0;
    std::int64_t place = 0;
  };
  static void offer(Best& best, float value, std::int64_t place);
  void end_tensor();

  std::int64_t inner_ = 1, classes_ = 1, count_ = 0;
  std::vector<Best> wanted_, found_;
  std::int64_t rows_ = 0, agreeing_ = 0;
};

}  // namespace sluice::quantiser
