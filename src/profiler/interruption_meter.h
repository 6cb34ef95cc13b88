// How much time something else takes of this processor (hypervisors, timers), by the length of a run: a loop of some microseconds is timed
// again and again, and the medians of 1, 10, 100 and 1000 turns in a row, for one turn each, are compared. They grow, since a median of short
// runs leaves out what comes seldom: by 7 % from 4 us to 4 ms on one cloud machine, of which runs of 40 us met a third.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

class InterruptionMeter {
 public:
  InterruptionMeter();
  /// Takes some 4 ms.
  void watch();
  /// What steps meet that so many threads share: whichever is interrupted, all wait for it. Nothing, where it watched a few times only.
  Interruptions met(int threads) const;

 private:
  static constexpr std::size_t kLengths = 4;
  void turn() noexcept;

  std::uint64_t steps_ = 64;  // of a turn
  volatile std::uint64_t sink_ = 1;
  std::array<std::vector<double>, kLengths> means_;  // of 1, 10, 100 and 1000 turns in a row
};

}  // namespace sluice::profiler
