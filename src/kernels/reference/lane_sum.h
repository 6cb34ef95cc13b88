// The order in which sums over a row are formed, the same for every ISA.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::kernels::reference {

/// Sixteen partial sums, value i to sum i mod 16, then folded in halves.
class LaneSum {
 public:
  void add(std::int64_t i, float value) noexcept { lanes_[i % kLanes] += value; }
  void add_square(std::int64_t i, float value) noexcept { lanes_[i % kLanes] = std::fma(value, value, lanes_[i % kLanes]); }
  float total() noexcept {
    for (int half = kLanes / 2; half >= 1; half /= 2)
      for (int lane = 0; lane < half; ++lane) lanes_[lane] += lanes_[lane + half];
    return lanes_[0];
  }

 private:
  static constexpr int kLanes = 16;
  float lanes_[kLanes] = {};
};

}  // namespace sluice::kernels::reference
