// The folds of pools and means, value by value. The order in which a pool hands its values over is that of the window: each row from its
// first place to its last, row after row; a pool of one axis has one row.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/kernels/reference/lane_sum.h"

namespace sluice::kernels::generic {

/// The greatest value and where it lies. NaN is not greater than anything.
template <class T>
class Greatest {
 public:
  void add(T value, std::int64_t place = 0) noexcept {
    const bool greater = value_ < value;
    value_ = greater ? value : value_;
    place_ = greater || place_ < 0 ? place : place_;
  }
  T value() const noexcept { return value_; }
  /// -1: there was no value.
  std::int64_t place() const noexcept { return place_; }

 private:
  static constexpr T kLeast = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  T value_ = kLeast;
  std::int64_t place_ = -1;
};

/// Rows of so many values and more are summed in sixteen lanes (reference/lane_sum.h), where a mean is of one channel and leaves no place
/// out.
inline constexpr std::int64_t kLeastOfLanes = 16;

/// The sum of each row, then the sum of the rows: two short chains lose less than one long one, which matters for global averages.
class Mean {
 public:
  explicit Mean(bool one_channel) noexcept : one_channel_(one_channel) {}
  void add(float value) noexcept {
    row_ += value;
    lanes_.add(count_++, value);
  }
  void end_row() noexcept {
    sum_ += one_channel_ && count_ >= kLeastOfLanes ? lanes_.total() : row_;
    row_ = 0.0f;
    lanes_ = {};
    count_ = 0;
  }
  float over(std::int64_t divisor) const noexcept { return sum_ / static_cast<float>(divisor); }

 private:
  bool one_channel_;
  float sum_ = 0.0f, row_ = 0.0f;
  reference::LaneSum lanes_;
  std::int64_t count_ = 0;
};

}  // namespace sluice::kernels::generic
