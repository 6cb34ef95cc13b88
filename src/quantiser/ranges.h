// What was seen of an activation, and the range of bytes that follows from it.
//
// A histogram over an interval that doubles when a value falls outside: bins are added in pairs then, so that any number of values takes
// the same memory and one pass. Zeros are counted apart: a byte represents them exactly, and after a Relu they are half of all values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/quantiser/quantiser.h"

namespace sluice::quantiser {

/// The range that 256 bytes represent: low <= 0 <= high.
struct Range {
  float low = 0;
  float high = 0;

  float scale() const noexcept;
  /// The byte that stands for 0.
  int zero() const noexcept;
  void include(const Range& other) noexcept;
};

class Histogram {
 public:
  /// Values that are no finite numbers are left out.
  void add(std::span<const float> values);
  /// `percentile` of all values stay inside, for kPercentile. `method` is not kAuto.
  Range range(Method method, double percentile) const;
  float lowest() const noexcept { return lowest_; }
  float highest() const noexcept { return highest_; }

 private:
  static constexpr std::size_t kBins = 4096;

  void widen(float value);
  double middle(std::size_t bin) const noexcept;
  Range cut(double percentile) const;
  Range least_error() const;
  double error_of(const Range& range) const noexcept;

  std::vector<std::uint64_t> bins_;
  double start_ = 0, width_ = 0;  // of the interval; width 0: nothing was seen but zeros
  std::uint64_t zeros_ = 0, count_ = 0;
  float lowest_ = 0, highest_ = 0;
};

}  // namespace sluice::quantiser
