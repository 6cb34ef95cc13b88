// A counter that one thread advances and one other thread waits for: how compute and loader keep step.
//
//     loader:   loads.advance()            compute:  loads.wait_for(3)     returns once three loads have ended
//
// A wait is {lane, count}. Inside a run two lanes, loads and steps, are all the synchronisation between loads and steps, and it stays so: a
// plan is one sequence of steps, each run by all compute threads, and no step waits for another by a counter of its own. (The loader has
// three more lanes, by which it is handed whole runs.) Several processors get a plan for each part of a graph and a scheduler between them,
// not a plan of many lanes.
//
// Invariants: the count only rises; one thread advances, one thread waits; nothing spins: a waiter sleeps in the kernel, and an advance
// that nobody waits for costs two uncontended atomic operations and no system call. All that the advancing thread wrote before `advance`
// is visible after `wait_for` returned true.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class Lane {
 public:
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }

  void advance() noexcept {
    const std::uint64_t now = count_.load(std::memory_order_relaxed) + 1;
    // Sequentially consistent, as in wait_for: either the waiter sees the new count or we see what it awaits. Exchanges, not stores:
    // they cost the same on x86-64, and an emulator that translates store-release too weakly (QEMU 7.2) keeps their order.
    count_.exchange(now, std::memory_order_seq_cst);
    std::uint64_t awaited = awaited_.load(std::memory_order_seq_cst);
    if (awaited <= now && awaited_.compare_exchange_strong(awaited, kNobody)) wake();
  }

  /// Sleeps until the count is at least `target`; false when `interrupt` came first.
  bool wait_for(std::uint64_t target) noexcept {
    for (;;) {
      const std::uint32_t seen = wakeups_.load(std::memory_order_acquire);
      awaited_.exchange(target, std::memory_order_seq_cst);
      const bool reached = count_.load(std::memory_order_seq_cst) >= target;
      if (reached || interrupted_.load(std::memory_order_acquire)) {
        awaited_.store(kNobody, std::memory_order_relaxed);
        return reached;
      }
      wakeups_.wait(seen, std::memory_order_acquire);
    }
  }

  /// Ends a wait that cannot be fulfilled, now and until `rearm`.
  void interrupt() noexcept {
    interrupted_.store(true, std::memory_order_release);
    wake();
  }
  /// Only while nobody waits or advances.
  void rearm() noexcept { interrupted_.store(false, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  void wake() noexcept {
    wakeups_.fetch_add(1, std::memory_order_acq_rel);
    wakeups_.notify_all();
  }

  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> awaited_{kNobody};
  // 32 bits: the width of a futex, so that the system call waits on this very word.
  std::atomic<std::uint32_t> wakeups_{0};
  std::atomic<bool> interrupted_{false};
};

}  // namespace sluice
