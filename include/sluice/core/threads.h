// Compute threads behind three functions (thread_count, parallelize, rest): a small futex pool of our own
// (docs/adr/0007-compute-threads.md says why), or in a test whatever stands in for it.
//
// Invariants: `parallelize` returns after every task ran; tasks of one call may run in any order on any thread, so results must not
// depend on which; workers sleep, not spin, between calls (the loader needs the core): they may look out for the next call for a few
// microseconds, and for none after `rest`. The caller may do all tasks itself, and does for a while where sharing them cost time. One
// caller at a time. Each thread starts with neighbouring tasks of its own (of two threads one takes the first half), so tasks that touch
// the same data in call after call find it in their core's cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sluice/core/error.h"

namespace sluice {

class ThreadPool {
 public:
  /// Runs task `index` on thread `thread` in [0, thread_count()). Must not throw.
  using Task = void (*)(void* context, std::int64_t index, int thread) noexcept;

  virtual ~ThreadPool() = default;
  virtual int thread_count() const noexcept = 0;
  virtual void parallelize(Task task, void* context, std::int64_t count) noexcept = 0;
  /// The next call will not come soon: send workers to sleep at once. Called before the caller waits for a load.
  virtual void rest() noexcept {}

  /// Until it is said otherwise, `parallel_for` leaves all tasks to the caller: a step is too short to be shared (plan::Step::alone).
  void keep_to_caller(bool alone) noexcept { alone_ = alone; }
  bool kept_to_caller() const noexcept { return alone_; }

  /// While `*stop` is set `parallel_for` skips tasks that have not begun, because their results are not needed. nullptr: never. Called by
  /// the caller, between calls.
  void stop_when(const std::atomic<bool>* stop) noexcept { stop_ = stop; }
  bool stopped() const noexcept { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  /// While `*wanted` is set, the caller of `parallel_for` calls this before each task that it does itself: a call may be long, and the
  /// caller wanted elsewhere. It may take its time and use other pools, not this one; workers go on with the tasks of the call meanwhile.
  struct Pause {
    const std::atomic<bool>* wanted = nullptr;
    void (*call)(void* context) noexcept = nullptr;
    void* context = nullptr;
  };
  /// Until it is said otherwise. Called by the caller, between calls.
  void pause_when(const Pause& pause) noexcept { pause_ = pause; }
  /// In the caller, before a task.
  void pause_if_wanted() const noexcept {
    if (pause_.wanted == nullptr || !pause_.wanted->load(std::memory_order_relaxed)) [[likely]]
      return;
    pause_.call(pause_.context);
    ++pauses_;
  }
  /// How often the caller has paused.
  std::uint64_t pauses() const noexcept { return pauses_; }

 private:
  bool alone_ = false;
  const std::atomic<bool>* stop_ = nullptr;
  Pause pause_;
  mutable std::uint64_t pauses_ = 0;
};

/// A pool of `thread_count` >= 1 threads in all, the caller's included. With one thread it starts no others. Errors: kInvalidArgument,
/// kOutOfMemory.
Result<std::unique_ptr<ThreadPool>> make_thread_pool(int thread_count);

/// Calls `body(index, thread)` for index in [0, count), unless the pool is stopped before.
template <class Body>
void parallel_for(ThreadPool& pool, std::int64_t count, const Body& body) noexcept {
  if (count == 1 || pool.thread_count() == 1 || pool.kept_to_caller()) {
    for (std::int64_t index = 0; index < count; ++index) {
      pool.pause_if_wanted();
      if (pool.stopped()) return;
      body(index, 0);
    }
    return;
  }
  struct Call {
    const ThreadPool& pool;
    const Body& body;
  } call{pool, body};
  pool.parallelize(
      [](void* context, std::int64_t index, int thread) noexcept {
        const Call& called = *static_cast<const Call*>(context);
        if (!called.pool.stopped()) called.body(index, thread);
      },
      &call, count);
}

}  // namespace sluice
