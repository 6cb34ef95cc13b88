// The two clocks of a run.
#pragma once

#include <time.h>

#include <cstdint>

namespace sluice::executor {

inline std::int64_t read_clock(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
inline std::int64_t wall_now_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }
/// CPU time of all threads of the process.
inline std::int64_t cpu_now_ns() noexcept { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace sluice::executor
