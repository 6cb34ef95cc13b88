// Whether a call of the compute pool is shared with the workers, judged by how the calls before it went.
//
// Sharing loses where another program wants one of the processors: a worker that has lost its processor in the middle of a task makes the
// caller wait for it, and a worker that takes the caller's processor makes the caller itself wait, for milliseconds each time; the system
// does not move them apart, because all processors look busy. So lost time is counted, and the caller runs the next calls alone for
// kTimesAlone as long, and for twice as long as the last time if sharing lost again soon. One disturbance costs little more than itself; a
// program that goes on disturbs one call in kLongestAlone, which of its turns of some milliseconds are a fiftieth.
//
// Invariants: no clock is read here; a call that is not shared changes nothing; times are nanoseconds of one monotonic clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class Sharing {
 public:
  /// How one shared call went: begun, out of tasks, over (the last worker was done); how many tasks the caller did itself.
  struct Call {
    std::int64_t begin = 0;
    std::int64_t worked = 0;
    std::int64_t end = 0;
    std::int64_t tasks = 0;
  };

  /// Whether the call that begins now should be shared.
  bool wanted(std::int64_t now) const noexcept { return now >= alone_until_; }

  /// Looks at a call that was shared. `cpu` gives the processor time that the calling thread has taken so far; it is asked once in kWindow
  /// or after a pause, because it costs a system call.
  template <class Cpu>
  void ended(const Call& call, const Cpu& cpu) noexcept {
    const std::int64_t own = call.worked - call.begin, waited = call.end - call.worked;
    // A caller that came too late for a task does not know how long one takes; if it had lost its processor, the window shows that.
    if (call.tasks > 0 && waited > kMostUneven * (own / call.tasks) + kPatience) return lost(waited, call.end);
    if (window_.begin == 0 || call.begin - window_.last > kPause) {
      window_ = {call.end, call.end, cpu(), 0};
      return;
    }
    window_.last = call.end;
    window_.waited += waited;
    const std::int64_t wall = call.end - window_.begin;
    if (wall < kWindow) return;
    const std::int64_t now = cpu(), missing = std::min(wall, wall - window_.waited - (now - window_.cpu));
    window_ = {call.end, call.end, now, 0};
    if (missing > wall / kMostMissing) lost(missing, call.end);
  }

  /// A worker may take up the last task as the caller runs out of them, and tasks of one call are not equally long: two panels or three, a
  /// whole tile or what is left. A worker that is waited for longer than kMostUneven of the caller's own tasks take and kPatience, in which it
  /// may have woken up, has lost its processor.
  static constexpr std::int64_t kMostUneven = 3;
  static constexpr std::int64_t kPatience = 150'000;
  /// Calls that follow each other are looked at together: a scheduler's turn is as long as this.
  static constexpr std::int64_t kWindow = 3'000'000;
  /// A longer time between two calls does not count as lost: it is a load, a long step of one thread, or the program itself.
  static constexpr std::int64_t kPause = 100'000;
  /// An eighth of a window is lost to interrupts and noise at most.
  static constexpr std::int64_t kMostMissing = 8;
  static constexpr std::int64_t kTimesAlone = 4;
  /// A loss so soon after calls were shared again is the same disturbance, as is one within twice the last time alone.
  static constexpr std::int64_t kSoon = 4 * kWindow;
  static constexpr std::int64_t kMostDoublings = 6;
  static constexpr std::int64_t kLongestAlone = 200'000'000;

 private:
  struct Window {
    std::int64_t begin = 0;  // 0: none
    std::int64_t last = 0;   // end of the last call
    std::int64_t cpu = 0;
    std::int64_t waited = 0;
  };

  void lost(std::int64_t time, std::int64_t now) noexcept {
    const bool again = alone_until_ > 0 && now - alone_until_ < std::max(kSoon, 2 * alone_);
    doublings_ = again ? std::min(doublings_ + 1, kMostDoublings) : 0;
    alone_ = std::min(kTimesAlone * std::min(time, kLongestAlone) << doublings_, kLongestAlone);
    alone_until_ = now + alone_;
    window_ = {};
  }

  std::int64_t alone_until_ = 0;
  std::int64_t alone_ = 0;  // how long, the last time
  std::int64_t doublings_ = 0;
  Window window_;
};

}  // namespace sluice
