#include "src/model/read_queue.h"

#if defined(SLUICE_HAS_IO_URING)
#include <liburing.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "sluice/core/file.h"
#include "src/model/slot_fifo.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kNapNs = 200'000;  // between looks at completions that cannot be waited for: a read takes this long

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Whether the system may accept entries, or a wait for them, at another time.
bool passes(int error) noexcept { return error == -EINTR || error == -EAGAIN || error == -EBUSY || error == -ENOMEM; }

/// Whatever a read does not bring at once (it was short, interrupted or failed) is read again by WeightSource::read, which knows what to
/// retry and how to say what went wrong: one set of rules for both kinds of reading, and this path is rare.
///
/// A sandbox may start at any time and refuse to let the ring be entered. Then the kernel may have taken some entries and not others:
///
///     entries  | taken: they write to their targets, and end in memory that we share | waiting_: nobody will ever read them |
///
/// From the first refusal on the ring is not entered any more, so that nothing in it is taken late. What was taken is looked for in the
/// shared memory; all else, and all that comes, is read by `wait` on the calling thread: the reads then overlap with computing, not with
/// each other. Threads would need memory that no budget counts and system calls that a sandbox may refuse (docs/adr/0018).
class RingReads final : public ReadQueue {
 public:
  explicit RingReads(WeightSource& source) noexcept : source_(source) {}
  RingReads(const RingReads&) = delete;
  RingReads& operator=(const RingReads&) = delete;

  ~RingReads() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  bool open() noexcept {
    io_uring_params parameters{};
    // Completions are delivered when this thread next enters the kernel, not by interrupting it. Kernels before 5.19 do not know the flag.
    parameters.flags = IORING_SETUP_COOP_TASKRUN;
    int status = io_uring_queue_init_params(kReadSlots, &ring_, &parameters);
    if (status == -EINVAL) {
      parameters = {};
      status = io_uring_queue_init_params(kReadSlots, &ring_, &parameters);
    }
    open_ = status == 0;
    return open_ && may_be_entered();
  }

  void start(int slot, FileRange range, std::byte* target) noexcept override {
    reads_[static_cast<std::size_t>(slot)] = {range, target};
    waiting_.push(slot);
    if (refused_) return;
    // There is an entry for every slot.
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    // A direct read covers whole blocks, also of a block that the end of the file cuts.
    const std::uint64_t size = align_up(range.size.count(), source_.block());
    io_uring_prep_read(entry, source_.descriptor(), target, static_cast<unsigned>(size), range.offset.count());
    io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(slot));
    submit();
  }

  Ended wait(std::int64_t timeout_ns) noexcept override {
    std::int64_t end_ns = 0;
    for (std::int64_t left_ns = timeout_ns;; left_ns = end_ns - now_ns()) {
      if (!refused_ && !waiting_.empty()) submit();  // the kernel lacked something when they were handed over
      if (io_uring_cq_ready(&ring_) > 0) return take_arrival();
      // Nothing more will come, and the kernel had enough time.
      if (left_ns <= 0 && taken_ == 0 && !waiting_.empty()) refused_ = true;
      if (refused_ && !waiting_.empty()) return read_here(waiting_.pop(), Bytes());
      if (left_ns <= 0) return {};
      if (end_ns == 0) end_ns = now_ns() + timeout_ns;
      rest(left_ns);
    }
  }

 private:
  struct Read {
    FileRange range;
    std::byte* target = nullptr;
  };

  /// A ring that may be made but not entered is of no use. A no-op entry finds that out, and ends as it is submitted.
  bool may_be_entered() noexcept {
    io_uring_prep_nop(io_uring_get_sqe(&ring_));
    if (enter() != 1 || io_uring_cq_ready(&ring_) != 1) return false;
    io_uring_cq_advance(&ring_, 1);
    return true;
  }

  int enter() noexcept {
    const int refusal = file_ops().enter_ring();
    return refusal != 0 ? refusal : io_uring_submit(&ring_);
  }

  /// Submits the waiting entries to the kernel, and counts how many of them it took: it takes them in order.
  void submit() noexcept {
    const int result = enter();
    for (; waiting_.size() > io_uring_sq_ready(&ring_); ++taken_) waiting_.pop();
    if (result < 0 && !passes(result)) refused_ = true;
  }

  /// Sleeps until something may have changed, at most `most_ns`.
  void rest(std::int64_t most_ns) noexcept {
    if (!refused_ && taken_ > 0) {
      __kernel_timespec timeout{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
      io_uring_cqe* entry = nullptr;
      const int refusal = file_ops().enter_ring();
      const int result = refusal != 0 ? refusal : io_uring_wait_cqe_timeout(&ring_, &entry, &timeout);
      if (result == 0 || result == -ETIME || result == -EINTR) return;
      if (!passes(result)) refused_ = true;
    }
    // A system call like any other, in which the kernel also delivers completions.
    const std::int64_t nap_ns = std::min(most_ns, kNapNs);
    const timespec nap{0, static_cast<long>(nap_ns)};
    nanosleep(&nap, nullptr);
  }

  Ended take_arrival() noexcept {
    io_uring_cqe* entry = nullptr;
    io_uring_peek_cqe(&ring_, &entry);
    const auto slot = static_cast<int>(io_uring_cqe_get_data64(entry));
    const std::int64_t result = file_ops().arrived(entry->res);
    io_uring_cqe_seen(&ring_, entry);
    --taken_;
    const Bytes size = reads_[static_cast<std::size_t>(slot)].range.size;
    if (result >= 0 && static_cast<std::uint64_t>(result) >= size.count()) return {slot, {}};
    return read_here(slot, Bytes(result > 0 ? align_down(static_cast<std::uint64_t>(result), source_.block()) : 0));
  }

  /// Reads what is missing after `done` bytes.
  Ended read_here(int slot, Bytes done) noexcept {
    const Read& read = reads_[static_cast<std::size_t>(slot)];
    return {slot, source_.read({read.range.offset + done, read.range.size - done}, read.target + done.count())};
  }

  WeightSource& source_;
  io_uring ring_{};
  bool open_ = false;
  bool refused_ = false;  // to enter the ring: never again
  int taken_ = 0;         // entries that the kernel has, or has ended
  SlotFifo waiting_;      // those that it has not taken
  std::array<Read, kReadSlots> reads_;
};

}  // namespace

std::unique_ptr<ReadQueue> make_ring_reads(WeightSource& source) noexcept {
  if (!source.direct() || source.descriptor() < 0) return nullptr;
  std::unique_ptr<RingReads> queue(new (std::nothrow) RingReads(source));
  if (!queue || !queue->open()) return nullptr;
  return queue;
}

}  // namespace sluice::model

#else

namespace sluice::model {
std::unique_ptr<ReadQueue> make_ring_reads(WeightSource&) noexcept { return nullptr; }
}  // namespace sluice::model

#endif
