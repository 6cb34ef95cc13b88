// The time slices of threads: how long a thread computes before the system looks for others that want its processor, and when it wakes.
#pragma once

#include <cstdint>

namespace sluice {

/// Some three times the usual length. The price of a long slice: if another program keeps the processor busy, a thread that wakes up waits
/// longer for its own slice; with the 100 ms that the system would grant, workers beside a busy program seemed to hang.
inline constexpr std::int64_t kLongTurnNs = 10'000'000;
/// For a thread that works a few microseconds at a time and is waited for: it also runs before threads with slices of the usual length.
inline constexpr std::int64_t kShortTurnNs = 100'000;

/// Lets the calling thread compute in turns of `nanoseconds`, from 0.1 to 100 ms. Its share of the processor stays what it is; but a thread
/// that wakes up, and has slices of the usual length (some 3 ms), runs at once and need not wait for the slice to end. It is for threads
/// that compute while others must respond. Linux from 6.12 on; elsewhere, and where the system refuses, nothing changes.
void work_in_turns_of(std::int64_t nanoseconds) noexcept;

/// Lets the calling thread wake up when its waits end, where Linux lets it sleep up to 50 us longer to save energy.
void wake_on_time() noexcept;

/// The value of the calling thread; 0 if the system does not say.
std::int64_t turn_of_this_thread() noexcept;

}  // namespace sluice
