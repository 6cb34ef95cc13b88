// The compute pool: a small pool of our own on futexes (std::atomic::wait). docs/adr/0007-compute-threads.md compares it with pthreadpool.
#include "sluice/core/threads.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <new>
#include <vector>

#include "sluice/core/native_thread.h"
#include "src/core/out_of_memory.h"
#include "src/core/sharing.h"

namespace sluice {
namespace {

// How long a thread polls for the next call (a worker) or for the last worker (the caller) before it sleeps. Calls follow each other
// within a few microseconds inside a kernel, and between steps within the time of those that one thread does alone, mostly less than 100 us;
// waking a sleeper costs 5 us of the waker and up to 50 us until it runs.
constexpr std::int64_t kLookOutNs = 100'000;

// How long it polls between two calls of sched_yield: a yield that changes nothing costs 0.3 to 1.2 us, in which a change goes unseen.
constexpr std::int64_t kPollNs = 10'000;

// Workers run leaf kernels: their frames are a few KiB, and each stack page touched counts against the budget.
constexpr std::size_t kWorkerStackBytes = 128 * 1024;

void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::int64_t time_of(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
std::int64_t now_ns() noexcept { return time_of(CLOCK_MONOTONIC); }

/// Polls `done` for a bounded time and returns its last result.
template <class Done>
bool look_out_for(const Done& done) noexcept {
  constexpr int kPollsBetweenClocks = 16;
  std::int64_t now = now_ns();
  const std::int64_t end = now + kLookOutNs;
  do {
    const std::int64_t yield_at = now + kPollNs;
    do {
      for (int i = 0; i < kPollsBetweenClocks; ++i) {
        if (done()) return true;
        pause_core();
      }
      now = now_ns();
    } while (now < yield_at);
    sched_yield();  // the thread that we wait for may be queued on this very core
  } while (now < end);
  return done();
}

/// Each thread has a run of neighbouring tasks of its own, so that what a thread wrote in one call lies in its cache in the next; a thread
/// that is through takes from the others' runs. A generation number wakes the workers; `call_` says whether a call is open and how many
/// workers are in it. A worker that wakes late finds the call closed and stays out, so a call never waits for a core that another program
/// has taken: the threads that are there do all the tasks. A worker that loses its core inside a task it has taken is waited for; sharing.h
/// says how long the workers then stay out.
class FutexPool final : public ThreadPool {
 public:
  static Result<std::unique_ptr<ThreadPool>> make(int thread_count) {
    std::unique_ptr<FutexPool> pool(new (std::nothrow) FutexPool(thread_count));
    if (!pool) return fail(ErrorCode::kOutOfMemory, "thread pool", "no memory for the pool");
    SLUICE_RETURN_IF_ERROR(pool->start());
    return std::unique_ptr<ThreadPool>(std::move(pool));
  }

  ~FutexPool() override {
    stopping_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
    for (Worker& worker : workers_) worker.thread.join();
  }

  int thread_count() const noexcept override { return thread_count_; }

  void parallelize(Task task, void* context, std::int64_t count) noexcept override {
    if (count <= 0) return;
    const std::int64_t begin = now_ns();
    if (!sharing_.wanted(begin)) {
      for (std::int64_t index = 0; index < count; ++index) {
        pause_if_wanted();
        task(context, index, 0);
      }
      return;
    }
    task_ = task;
    context_ = context;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      const auto thread = static_cast<std::int64_t>(i);
      shares_[i].next.store(count * thread / thread_count_, std::memory_order_relaxed);
      shares_[i].end = count * (thread + 1) / thread_count_;
    }
    resting_.store(false, std::memory_order_relaxed);
    call_.store(kOpen, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    const std::uint64_t pauses_before = pauses();
    const std::int64_t tasks = work(0, [&] { pause_if_wanted(); });
    const std::int64_t worked = now_ns();
    close_call();
    // What it did meanwhile says nothing of the call.
    if (pauses() == pauses_before) sharing_.ended({begin, worked, now_ns(), tasks}, [] { return time_of(CLOCK_THREAD_CPUTIME_ID); });
  }

  void rest() noexcept override { resting_.store(true, std::memory_order_relaxed); }

 private:
  struct Worker {
    FutexPool* pool = nullptr;
    int index = 0;
    NativeThread thread;
  };

  /// Tasks of one thread, on a cache line of their own.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  explicit FutexPool(int thread_count)
      : thread_count_(thread_count),
        workers_(static_cast<std::size_t>(thread_count - 1)),
        shares_(static_cast<std::size_t>(thread_count)) {}

  Status start() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].pool = this;
      workers_[i].index = static_cast<int>(i) + 1;
      SLUICE_RETURN_IF_ERROR(workers_[i].thread.start("thread pool", kWorkerStackBytes, &FutexPool::worker_main, &workers_[i]));
    }
    return {};
  }

  /// No worker comes in any more, and those inside have ended.
  void close_call() noexcept {
    std::uint32_t inside = call_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    if (inside == 0 || look_out_for([&] { return call_.load(std::memory_order_acquire) == 0; })) return;
    while ((inside = call_.load(std::memory_order_acquire)) != 0) call_.wait(inside, std::memory_order_acquire);
  }

  static void worker_main(void* argument) noexcept {
    const Worker& worker = *static_cast<Worker*>(argument);
    FutexPool& pool = *worker.pool;
    for (std::uint32_t seen = 0;;) {
      look_out_for(
          [&] { return pool.generation_.load(std::memory_order_relaxed) != seen || pool.resting_.load(std::memory_order_relaxed); });
      pool.generation_.wait(seen);
      const std::uint32_t now = pool.generation_.load(std::memory_order_acquire);
      if (now == seen) continue;
      seen = now;
      if (pool.stopping_.load()) return;
      pool.join_call(worker.index);
    }
  }

  void join_call(int thread) noexcept {
    std::uint32_t call = call_.load(std::memory_order_relaxed);
    do {
      if ((call & kOpen) == 0) return;
    } while (!call_.compare_exchange_weak(call, call + 1, std::memory_order_acq_rel, std::memory_order_relaxed));
    work(thread, [] {});
    if (call_.fetch_sub(1, std::memory_order_acq_rel) == 1) call_.notify_one();
  }

  /// Returns how many tasks it did.
  template <class BeforeTask>
  std::int64_t work(int thread, const BeforeTask& before_task) noexcept {
    std::int64_t done = 0;
    for (int i = 0; i < thread_count_; ++i) {
      Share& share = shares_[static_cast<std::size_t>((thread + i) % thread_count_)];
      while (true) {
        before_task();  // of which it has not taken one: others may do it
        const std::int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
        if (index >= share.end) break;
        task_(context_, index, thread);
        ++done;
      }
    }
    return done;
  }

  static constexpr std::uint32_t kOpen = 1u << 31;

  const int thread_count_;
  std::vector<Worker> workers_;
  std::vector<Share> shares_;
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> call_{0};  // kOpen while tasks may be taken, plus the workers inside
  std::atomic<bool> resting_{false};
  std::atomic<bool> stopping_{false};
  Task task_ = nullptr;
  void* context_ = nullptr;
  Sharing sharing_;  // the caller's alone
};

}  // namespace

Result<std::unique_ptr<ThreadPool>> make_thread_pool(int thread_count) {
  if (thread_count < 1 || thread_count > 1024) {
    return fail(ErrorCode::kInvalidArgument, "thread pool", "the number of threads must lie between 1 and 1024");
  }
  return or_out_of_memory("thread pool", [&] { return FutexPool::make(thread_count); });
}

}  // namespace sluice
