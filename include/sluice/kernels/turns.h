// How a step hears that its run is to end, and how many turns its loops (a Loop, a Scan) may take.
//
// A Loop of 2^62 turns is a sound model, and so is a convolution with a million taps: its run would end when its caller is long gone. So
// the executor opens a scope around each step; the step asks before each iteration (turn), and a long kernel looks (glances) after each
// part of its work. It is the thread's and no part of the call: bodies run operators within operators, which have no call of their own, and
// steps with bodies run on the caller's thread alone. Tasks that a kernel hands to the pool end with it (ThreadPool::stop_when).
//
// The output of a step that ended so is of no use; its run ends with kCancelled, whatever the step returns.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::kernels {

/// With the smallest body this takes some seconds; it is a hundred times the longest sequence of a published recurrent model.
inline constexpr std::int64_t kDefaultMaxTurns = 1'000'000;

/// The error of a kernel that ended because its run did.
inline constexpr const char* kRunEnded = "the run was ended";

/// Round a step. `stop` may be set by any thread; `most`: turns of all loops of the step together, those within others included. A scope
/// within another is of a run that the step's run gave way to.
class TurnsScope {
 public:
  TurnsScope(const std::atomic<bool>& stop, std::int64_t most) noexcept;
  ~TurnsScope();
  TurnsScope(const TurnsScope&) = delete;
  TurnsScope& operator=(const TurnsScope&) = delete;

 private:
  const std::atomic<bool>* outer_stop_;
  std::int64_t outer_left_;
};

/// Called before each turn of a loop: the reason why it must not run, or nullptr. Without a scope nothing is counted.
const char* take_turn() noexcept;
/// Called before each turn of a loop that ends by itself: only whether the run is to end.
const char* take_counted_turn() noexcept;

/// What says whether the run is to end, of this thread's scope; nullptr without one.
const std::atomic<bool>* stop_of_run() noexcept;

/// Looks whether the run is to end once in so much work. Made on the thread of the scope; copies may go to others.
class Glances {
 public:
  /// Operations between two glances: multiplications, comparisons, values read at a place that must be found. Of the slowest of them some
  /// ten milliseconds, of which a cancellation may take a hundred; a glance itself is nothing beside them.
  static constexpr std::int64_t kWork = std::int64_t{1} << 20;

  Glances() noexcept : stop_(stop_of_run()) {}

  /// Before about so many operations: is the run to end? Then so it is ever after.
  bool over(std::int64_t operations) noexcept {
    left_ -= operations;
    if (left_ > 0) [[likely]]
      return false;
    const bool ended = stop_ != nullptr && stop_->load(std::memory_order_relaxed);
    left_ = ended ? 0 : kWork;
    return ended;
  }

 private:
  const std::atomic<bool>* stop_;
  std::int64_t left_ = kWork;
};

}  // namespace sluice::kernels
