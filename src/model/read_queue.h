// Several reads in flight at once: what a loader, and a profile of the disk, starts and waits for.
//
//     loader   start(slot, range, target) ... start(...)      wait() -> {slot, status}, in whatever order they end
//
// Two kinds, equal in what they do. RingReads hands reads to the kernel through io_uring: no thread, half the CPU time. ThreadReads has
// threads that call WeightSource::read: for systems and containers that refuse io_uring, for buffered reads, and for sources that are no
// files.
//
// Used by one thread. Between `start` and the `wait` that returns its slot, a read owns its target. The destructor of ThreadReads waits for
// the reads under way; that of RingReads leaves them to the kernel, which holds the pages of direct reads itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/core/error.h"
#include "sluice/model/weight.h"
#include "sluice/model/weight_source.h"

namespace sluice::model {

/// Slots that a queue has room for.
inline constexpr int kReadSlots = 32;

class ReadQueue {
 public:
  struct Ended {
    int slot = -1;  // -1: none ended in time
    Status status;
  };

  virtual ~ReadQueue() = default;

  /// Begins to read all of `range` into `target`, both as WeightSource::read wants them, for a slot in [0, kReadSlots) that is free.
  virtual void start(int slot, FileRange range, std::byte* target) noexcept = 0;
  /// Sleeps until a read has ended, at most `timeout_ns`.
  virtual Ended wait(std::int64_t timeout_ns) noexcept = 0;
};

/// nullptr where there is no io_uring (an older or guarded kernel, a build without it) or the source is not read directly.
std::unique_ptr<ReadQueue> make_ring_reads(WeightSource& source) noexcept;

/// Threads that run on `cpus` where the system allows it. Errors: kOutOfMemory.
Result<std::unique_ptr<ReadQueue>> make_thread_reads(WeightSource& source, int threads, std::span<const int> cpus = {}) noexcept;

/// Makes the queue that `method` names; kAuto: a ring, or threads if there is none. Errors name `what`. Errors: kUnsupported (kRing where
/// there is none), kOutOfMemory.
Result<std::unique_ptr<ReadQueue>> make_reads(WeightSource& source, ReadMethod method, int threads, std::span<const int> cpus,
                                              const char* what) noexcept;

}  // namespace sluice::model
