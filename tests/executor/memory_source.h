// A WeightSource over bytes in memory that can be slow, fail or lie, as a test asks.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <span>

#include "sluice/model/weight_source.h"

namespace sluice::toy {

class MemorySource final : public model::WeightSource {
 public:
  explicit MemorySource(std::span<const std::byte> file) noexcept : file_(file) {}

  // What goes wrong. Read n is counted from 0 over the life of the source.
  std::int64_t fail_at = -1;     // this read fails with EIO
  std::int64_t corrupt_at = -1;  // this read has one wrong bit, `corrupt_byte` from its start
  std::uint64_t corrupt_byte = 0;
  bool changed = false;       // check_unchanged says so
  unsigned max_delay_us = 0;  // each read sleeps up to this
  std::int64_t reads = 0;

  Status read(model::FileRange range, std::byte* target) noexcept override {
    const std::int64_t n = reads++;
    if (max_delay_us > 0) usleep(std::uniform_int_distribution<unsigned>(0, max_delay_us)(random_));
    if (n == fail_at) return fail(make_io_error("memory", "the read failed", EIO));
    if (range.offset.count() > file_.size() || range.size.count() > file_.size() - range.offset.count()) {
      return fail(ErrorCode::kFileChanged, "memory", "the file ends before the range");
    }
    std::memcpy(target, file_.data() + range.offset.count(), range.size.count());
    if (n == corrupt_at) target[std::min(corrupt_byte, range.size.count() - 1)] ^= std::byte{1};
    return {};
  }
  std::uint32_t block() const noexcept override { return 4096; }
  bool direct() const noexcept override { return true; }
  Bytes size() const noexcept override { return Bytes(file_.size()); }
  Status check_unchanged() noexcept override {
    if (changed) return fail(ErrorCode::kFileChanged, "memory", "the file was replaced");
    return {};
  }

 private:
  std::span<const std::byte> file_;
  std::mt19937 random_{7};
};

}  // namespace sluice::toy
