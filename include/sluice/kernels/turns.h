// How a step that takes turns (a Loop, a Scan) hears that its run is to end, and how many turns it may take.
//
// A Loop of 2^62 turns is a sound model, and its run would end when its caller is long gone. So whoever runs a step opens a scope round it,
// and the step asks before each turn. It is the thread's and no part of the call: bodies run operators within operators, which have no call
// of their own, and steps with bodies run on the caller's thread alone.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::kernels {

/// Some seconds of the smallest body; a hundred times the longest sequence of a published recurrent model.
inline constexpr std::int64_t kDefaultMaxTurns = 1'000'000;

/// Round a step. `stop` may be set by any thread; `most`: turns of all loops of the step together, those within others included.
class TurnsScope {
 public:
  TurnsScope(const std::atomic<bool>& stop, std::int64_t most) noexcept;
  ~TurnsScope();
  TurnsScope(const TurnsScope&) = delete;
  TurnsScope& operator=(const TurnsScope&) = delete;
};

/// Before each turn of a loop: why there is to be none, or nullptr. Without a scope nothing is counted.
const char* take_turn() noexcept;
/// Before each turn of what ends by itself: only whether the run is to end.
const char* take_counted_turn() noexcept;

}  // namespace sluice::kernels
