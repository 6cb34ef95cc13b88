// Programs of the processors that the scheduler makes itself: CPU kernels, which are a session, and the timed processor.
//
//     worker --run--> CpuProgram --Session::run--> step, boundary, step, boundary, ...        boundary: the worker's StepHook
//                     TimedProgram --waits its time, a boundary each millisecond--> outputs computed beforehand
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "sluice/backends/backend.h"
#include "sluice/engine/engine.h"
#include "sluice/scheduler/device.h"
#include "sluice/scheduler/simulator/reality.h"

namespace sluice::scheduler {

/// `options` names the arena and the hook.
Result<std::unique_ptr<backends::Program>> make_cpu_program(std::shared_ptr<const sluice::Model> model, const SessionOptions& options);

/// One timed processor's faults, and what its programs sleep on.
class TimedClock {
 public:
  void emulate(const Fault& fault) noexcept;
  bool dead() noexcept;
  /// Ends all waiting, now and later.
  void close() noexcept;
  enum class Wake : std::uint8_t { kOver, kCancelled, kDead };
  /// Until the processor has done `work` of its time, at rest, or `cancelled`; `boundary` is called each millisecond.
  Wake work(Time work, const std::atomic<bool>& cancelled, executor::StepHook boundary) noexcept;
  /// Ends a wait so that it looks at what it was called with.
  void wake() noexcept { changed_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  double slowed_ = 1;
  bool hangs_ = false, dead_ = false, closed_ = false;
};

/// One model on a timed processor: inputs that it answers, and the answers.
struct TimedAnswers {
  std::vector<std::vector<std::byte>> inputs, outputs;
  Bytes bytes() const noexcept;
};
/// `time` may change before the first run (it follows from what others measure).
std::unique_ptr<backends::Program> make_timed_program(std::shared_ptr<const TimedAnswers> answers, std::shared_ptr<const Time> time,
                                                      std::shared_ptr<TimedClock> clock, executor::StepHook boundary);

}  // namespace sluice::scheduler
