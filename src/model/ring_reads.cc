#include "src/model/read_queue.h"

#if defined(SLUICE_HAS_IO_URING)
#include <liburing.h>

#include <array>
#include <cerrno>
#include <new>

#include "sluice/core/file.h"

namespace sluice::model {
namespace {

/// Whatever a read does not bring at once (it was short, interrupted or failed) is read again by WeightSource::read, which knows what to
/// retry and how to say what went wrong: one set of rules for both kinds of reading, and this path is rare.
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
    return open_;
  }

  void start(int slot, FileRange range, std::byte* target) noexcept override {
    reads_[static_cast<std::size_t>(slot)] = {range, target};
    // There is an entry for every slot.
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    // A direct read covers whole blocks, also of a block that the end of the file cuts.
    const std::uint64_t size = align_up(range.size.count(), source_.block());
    io_uring_prep_read(entry, source_.descriptor(), target, static_cast<unsigned>(size), range.offset.count());
    io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(slot));
    io_uring_submit(&ring_);
  }

  Ended wait(std::int64_t timeout_ns) noexcept override {
    const Arrival arrival = take(timeout_ns);
    if (arrival.slot < 0) return {};
    const Read& read = reads_[static_cast<std::size_t>(arrival.slot)];
    const std::int64_t result = file_ops().arrived(arrival.result);
    if (result >= 0 && static_cast<std::uint64_t>(result) >= read.range.size.count()) return {arrival.slot, {}};
    const Bytes done(result > 0 ? align_down(static_cast<std::uint64_t>(result), source_.block()) : 0);
    return {arrival.slot, source_.read({read.range.offset + done, read.range.size - done}, read.target + done.count())};
  }

 private:
  struct Read {
    FileRange range;
    std::byte* target = nullptr;
  };
  struct Arrival {
    int slot = -1;
    std::int64_t result = 0;
  };

  Arrival take(std::int64_t timeout_ns) noexcept {
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);  // the kernel lacked memory when it was handed over
    __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    io_uring_cqe* entry = nullptr;
    if (io_uring_wait_cqe_timeout(&ring_, &entry, &timeout) != 0 || entry == nullptr) return {};
    const Arrival arrival{static_cast<int>(io_uring_cqe_get_data64(entry)), entry->res};
    io_uring_cqe_seen(&ring_, entry);
    return arrival;
  }

  WeightSource& source_;
  io_uring ring_{};
  bool open_ = false;
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
