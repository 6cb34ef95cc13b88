#include "src/profiler/interruption_meter.h"

#include <algorithm>
#include <numeric>

#include "src/profiler/middle.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {
namespace {

constexpr double kTurnSeconds = kLeastInterrupted;

}  // namespace

InterruptionMeter::InterruptionMeter() {
  constexpr int kTries = 50;
  double least = 0;
  while (least < kTurnSeconds && steps_ < (1u << 24)) {
    steps_ *= 2;
    least = 1;
    for (int i = 0; i < kTries; ++i) {
      const Clock::time_point start = Clock::now();
      turn();
      least = std::min(least, seconds_since(start));
    }
  }
  steps_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(steps_) * kTurnSeconds / least));
}

/// Each step waits for the one before.
void InterruptionMeter::turn() noexcept {
  std::uint64_t value = sink_;
  for (std::uint64_t i = 0; i < steps_; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  sink_ = value;
}

void InterruptionMeter::watch() {
  std::array<double, InterruptedTurns::kWatched> seconds{};
  const double cpu_before = cpu_seconds();
  Clock::time_point before = Clock::now();
  for (double& each : seconds) {
    turn();
    const Clock::time_point after = Clock::now();
    each = std::chrono::duration<double>(after - before).count();
    before = after;
  }
  // What other programs took is no part of samples, which are of the processor's time, and changes from one minute to the next.
  constexpr double kOwn = 0.97;
  const double wall = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (cpu_seconds() - cpu_before >= kOwn * wall) turns_.add(seconds);
}

void InterruptedTurns::add(std::span<const double, kWatched> seconds) {
  for (std::size_t length = 0; length < kInARow.size(); ++length) {
    const std::size_t in_a_row = kInARow[length];
    for (std::size_t first = 0; first + in_a_row <= kWatched; first += in_a_row) {
      const auto begin = seconds.begin() + static_cast<std::ptrdiff_t>(first);
      means_[length].push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(in_a_row), 0.0) / static_cast<double>(in_a_row));
    }
  }
}

Interruptions InterruptedTurns::met(int threads) const {
  constexpr std::size_t kLeastTimes = 20;
  constexpr double kMost = 0.15;  // more is no usual state of a machine
  Interruptions made;
  if (means_.back().size() < kLeastTimes) return made;
  const double of_one = middle_of(means_.front()), all = middle_of(means_.back()) / of_one - 1;
  if (!(all > 0) || all > kMost) return made;
  made.share = std::min(all * threads, kMost);
  double before = 0;
  for (std::size_t i = 0; i < made.met.size(); ++i)
    before = made.met[i] = std::clamp((middle_of(means_[i + 1]) / of_one - 1) / all, before, 1.0);
  return made;
}

}  // namespace sluice::profiler
