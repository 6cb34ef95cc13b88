// How much time something else takes of this processor (hypervisors, timers), by the length of a run: a loop of some microseconds is timed
// again and again, and the medians of 1, 3, 10, 32, 100, 316 and 1000 turns in a row, for one turn each, are compared. They grow, since a median
// of short runs leaves out what comes seldom: by 6 % from 4 us to 4 ms on one cloud machine, where 40 us are lost in each 0.7 ms: of these runs
// of 0.4 ms met a third, and of 1.3 ms nine tenths.
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
  static constexpr std::array<std::size_t, 7> kInARow = {1, 3, 10, 32, 100, 316, kWatched};
  std::array<std::vector<double>, kInARow.size()> means_;  // of so many turns
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
