// A process whose memory runs out where a test says, and that knows what it holds.
//
// Linked in, it replaces `operator new` and wraps (--wrap of the linker) the calls by which the library gets memory otherwise:
// aligned_alloc, mmap, mprotect, pthread_create and io_uring's queue. All of these are counted together, in the order in which they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::test {

enum class Failing { kOnce, kFromThenOn };

/// While it lives, the `nth` request for memory (from 0) of this process fails, or that and all later ones. One at a time.
class FailingMemory {
 public:
  FailingMemory(std::int64_t nth, Failing failing) noexcept;
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();

  /// So far.
  std::int64_t failures() const noexcept;
};

/// While it lives, every request is granted, and where each came from is noted: by which calls.
class RecordedRequests {
 public:
  RecordedRequests() noexcept;
  RecordedRequests(const RecordedRequests&) = delete;
  RecordedRequests& operator=(const RecordedRequests&) = delete;
  ~RecordedRequests();

  /// Of the requests so far, in rising order: of those that came by the same chain of calls the first and the last. Where chains cannot be
  /// read, each request is its own. To be asked once it is over for whoever makes requests.
  std::vector<std::int64_t> distinct() const;
  std::int64_t count() const noexcept;
};

/// What the process has got and not given back.
struct Held {
  std::int64_t blocks = 0;        // of operator new and aligned_alloc
  std::int64_t mapped_bytes = 0;  // by mmap
  std::int64_t threads = 0;       // started and not joined
  std::size_t descriptors = 0;
  friend bool operator==(const Held&, const Held&) = default;
};
Held held() noexcept;
/// Since the beginning of the process.
std::int64_t threads_started() noexcept;

}  // namespace sluice::test
