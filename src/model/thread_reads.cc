#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <vector>

#include "sluice/core/native_thread.h"
#include "src/model/read_queue.h"
#include "src/model/slot_fifo.h"

namespace sluice::model {
namespace {

// A reader's frames: a system call.
constexpr std::size_t kStackBytes = 32 * 1024;

class ThreadReads final : public ReadQueue {
 public:
  explicit ThreadReads(WeightSource& source) noexcept : source_(source) {}
  ThreadReads(const ThreadReads&) = delete;
  ThreadReads& operator=(const ThreadReads&) = delete;
  ~ThreadReads() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    asked_.notify_all();
    for (NativeThread& thread : threads_) thread.join();
  }

  Status start_threads(int count, std::span<const int> cpus) noexcept {
    for (int i = 0; i < count; ++i) {
      SLUICE_RETURN_IF_ERROR(threads_[static_cast<std::size_t>(i)].start("reader", kStackBytes, &ThreadReads::thread_main, this, cpus));
    }
    return {};
  }

  void start(int slot, FileRange range, std::byte* target) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      reads_[static_cast<std::size_t>(slot)] = {range, target, {}};
      waiting_.push(slot);
    }
    asked_.notify_one();
  }

  Ended wait(std::int64_t timeout_ns) noexcept override {
    std::unique_lock lock(mutex_);
    if (!done_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return !ended_.empty(); })) return {};
    const int slot = ended_.pop();
    return {slot, reads_[static_cast<std::size_t>(slot)].status};
  }

 private:
  struct Read {
    FileRange range;
    std::byte* target = nullptr;
    Status status;
  };

  static void thread_main(void* self) noexcept { static_cast<ThreadReads*>(self)->serve(); }

  void serve() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      const int slot = waiting_.pop();
      Read& read = reads_[static_cast<std::size_t>(slot)];
      lock.unlock();
      read.status = source_.read(read.range, read.target);
      lock.lock();
      ended_.push(slot);
      done_.notify_one();
    }
  }

  WeightSource& source_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable done_;
  SlotFifo waiting_;
  SlotFifo ended_;
  bool stopping_ = false;
  std::array<Read, kReadSlots> reads_;
  std::array<NativeThread, kReadSlots> threads_;
};

}  // namespace

Result<std::unique_ptr<ReadQueue>> make_thread_reads(WeightSource& source, int threads, std::span<const int> cpus) noexcept {
  std::unique_ptr<ThreadReads> queue(new (std::nothrow) ThreadReads(source));
  if (!queue) return fail(ErrorCode::kOutOfMemory, "reads", "no memory for the queue of reads");
  SLUICE_RETURN_IF_ERROR(queue->start_threads(threads, cpus));
  return std::unique_ptr<ReadQueue>(std::move(queue));
}

}  // namespace sluice::model
