// Where on a shared machine a single thread is timed.
//
// To a program all processors of a kind are alike. On a shared machine one of them can be slower by a quarter than its neighbour for minutes, while
// somebody else computes on the same core: a thread that happens to be there measures another device. So one that times is kept on the quickest of
// some processors while it does.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sluice/core/affinity.h"

namespace sluice::profiler {

/// At most `most` of the processors that the calling thread may run on, the one first on which it does, then those with higher numbers, then others.
std::vector<int> processors_nearby(std::size_t most);

/// Keeps the calling thread on the quickest of some processors until the end of the scope.
class QuietProcessor {
 public:
  /// `time_anchor()` is what an anchor takes on the calling thread. Unless `wanted`, as where other threads compute or read beside it, it goes on where
  /// it is.
  template <class TimeAnchor>
  QuietProcessor(bool wanted, const TimeAnchor& time_anchor) {
    constexpr std::size_t kMost = 4;
    if (!wanted) return;
    const std::vector<int> processors = processors_nearby(kMost);
    if (processors.size() < 2) return;
    std::array<int, 1> quickest{};
    double least = std::numeric_limits<double>::infinity();
    for (const int processor : processors) {
      const ScopedAffinity there(std::span(&processor, 1));
      if (const double seconds = time_anchor(); seconds < least) {
        least = seconds;
        quickest[0] = processor;
      }
    }
    kept_.emplace(quickest);
  }

 private:
  std::optional<ScopedAffinity> kept_;
};

}  // namespace sluice::profiler
