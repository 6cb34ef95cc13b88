// How long something has taken.
#pragma once

#include <chrono>

namespace sluice::profiler {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace sluice::profiler
