// A WeightSource over bytes in memory that can be slow, fail or lie, as a test asks.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <random>
#include <span>

#include "sluice/model/weight_source.h"

namespace sluice::toy {

class MemorySource : public model::WeightSource {
 public:
  explicit MemorySource(std::span<const std::byte> file) noexcept : file_(file) {}

  // What goes wrong. Read n is counted from 0 over the life of the source.
  std::int64_t fail_at = -1;                    // this read fails with EIO
  std::atomic<std::int64_t> corrupt_byte = -1;  // reads of this byte of the file get a wrong bit
  std::int64_t stuck_at = -1;                   // this read does not end before `release`
  std::atomic<bool> changed = false;            // check_unchanged says so
  unsigned max_delay_us = 0;                    // each read sleeps up to this
  std::atomic<std::int64_t> reads = 0;

  Status read(model::FileRange range, std::byte* target) noexcept override {
    const std::int64_t n = reads++;
    if (max_delay_us > 0) usleep(draw_delay());
    if (n == stuck_at) released_.wait(false);
    if (n == fail_at) return fail(make_io_error("memory", "the read failed", EIO));
    if (range.offset.count() > file_.size() || range.size.count() > file_.size() - range.offset.count()) {
      return fail(ErrorCode::kFileChanged, "memory", "the file ends before the range");
    }
    std::memcpy(target, file_.data() + range.offset.count(), range.size.count());
    const std::int64_t at = corrupt_byte - static_cast<std::int64_t>(range.offset.count());
    if (corrupt_byte >= 0 && at >= 0 && static_cast<std::uint64_t>(at) < range.size.count()) target[at] ^= std::byte{1};
    return {};
  }
  void release() noexcept {
    released_ = true;
    released_.notify_all();
  }
  std::uint32_t block() const noexcept override { return 4096; }
  bool direct() const noexcept override { return true; }
  Bytes size() const noexcept override { return Bytes(file_.size()); }
  Status check_unchanged() noexcept override {
    if (changed) return fail(ErrorCode::kFileChanged, "memory", "the file was replaced");
    return {};
  }

 private:
  unsigned draw_delay() noexcept {
    const std::lock_guard lock(mutex_);
    return std::uniform_int_distribution<unsigned>(0, max_delay_us)(random_);
  }

  std::span<const std::byte> file_;
  std::atomic<bool> released_ = false;
  std::mutex mutex_;
  std::mt19937 random_{7};
};

/// A source whose asynchronous reads are of a pipe: they do not end before `release`, and then bring nothing.
class PipeSource final : public MemorySource {
 public:
  mutable std::atomic<int> asked = 0;  // for the descriptor: by each read that begins, too

  explicit PipeSource(std::span<const std::byte> file) noexcept : MemorySource(file) { made_ = pipe(ends_.data()) == 0; }
  ~PipeSource() override {
    release();
    if (made_) close(ends_[0]);
  }
  int descriptor() const noexcept override {
    ++asked;
    return made_ ? ends_[0] : -1;
  }
  void release() noexcept {
    if (made_ && ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool made_ = false;
};

}  // namespace sluice::toy
