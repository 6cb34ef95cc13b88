// How much time something else takes of this processor (hypervisors, timers), by the length of a run: a loop of some microseconds is timed
// again and again, and the medians of 1, 10, 100 and 1000 turns in a row, for one turn each, are compared. They grow, since a median of short
// runs leaves out what comes seldom: by 7 % from 4 us to 4 ms on one cloud machine, of which runs of 40 us met a third.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// The times of turns, without a clock.
class InterruptedTurns {
 public:
  static constexpr std::size_t kWatched = 1000;
  /// The seconds of so many turns in a row.
  void add(std::span<const double, kWatched> seconds);
  /// What steps meet that so many threads share: whichever is interrupted, all wait for it. Nothing, where few were added.
  Interruptions met(int threads) const;

 private:
  static constexpr std::size_t kLengths = 4;
  std::array<std::vector<double>, kLengths> means_;  // of 1, 10, 100 and 1000 turns in a row
};

class InterruptionMeter {
 public:
  InterruptionMeter();
  /// Takes some 4 ms.
  void watch();
  Interruptions met(int threads) const { return turns_.met(threads); }

 private:
  void turn() noexcept;

  std::uint64_t steps_ = 64;  // of a turn
  volatile std::uint64_t sink_ = 1;
  InterruptedTurns turns_;
};

}  // namespace sluice::profiler
