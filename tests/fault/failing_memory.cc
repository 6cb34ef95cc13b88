#include "tests/fault/failing_memory.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>

#include "tests/engine/open_descriptors.h"

namespace sluice::test {
namespace {

constexpr std::int64_t kNever = -1;

std::atomic<bool> armed{false};
std::atomic<std::int64_t> failing_request{kNever};
std::atomic<bool> all_later{false};
std::atomic<std::int64_t> requests_seen{0};
std::atomic<std::int64_t> requests_failed{0};

// Chains of calls, as hashes, of the requests that are noted; later ones count as chains of their own.
std::array<std::uint64_t, 1 << 18> chains;
std::atomic<bool> recording{false};

std::atomic<std::int64_t> live_blocks{0};
std::atomic<std::int64_t> live_mapped_bytes{0};
std::atomic<std::int64_t> live_threads{0};
std::atomic<std::int64_t> all_threads{0};

/// Which calls led here, as one number; `number` itself where they cannot be read.
std::uint64_t chain_of_calls(std::int64_t number) noexcept {
  constexpr int kDeepest = 96, kFewest = 4;
  std::array<void*, kDeepest> calls;
  const int depth = backtrace(calls.data(), kDeepest);
  if (depth < kFewest) return static_cast<std::uint64_t>(number);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < depth; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(calls[static_cast<std::size_t>(i)])) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Whether a request for memory is granted.
bool granted() noexcept {
  if (!armed.load(std::memory_order_relaxed)) return true;
  const std::int64_t number = requests_seen++;
  if (recording.load(std::memory_order_relaxed)) {
    if (static_cast<std::size_t>(number) < chains.size()) chains[static_cast<std::size_t>(number)] = chain_of_calls(number);
    return true;
  }
  const std::int64_t failing = failing_request.load(std::memory_order_relaxed);
  if (number != failing && !(all_later.load(std::memory_order_relaxed) && number > failing)) return true;
  ++requests_failed;
  return false;
}

void* counted(void* memory) noexcept {
  if (memory != nullptr) ++live_blocks;
  return memory;
}

}  // namespace

FailingMemory::FailingMemory(std::int64_t nth, Failing failing) noexcept {
  failing_request = nth;
  all_later = failing == Failing::kFromThenOn;
  requests_seen = requests_failed = 0;
  armed = true;
}
FailingMemory::~FailingMemory() { armed = false; }
std::int64_t FailingMemory::failures() const noexcept { return requests_failed; }

RecordedRequests::RecordedRequests() noexcept {
  void* call = nullptr;
  backtrace(&call, 1);  // loads what it needs, once
  requests_seen = 0;
  recording = armed = true;
}
RecordedRequests::~RecordedRequests() { armed = recording = false; }
std::int64_t RecordedRequests::count() const noexcept { return requests_seen; }
std::vector<std::int64_t> RecordedRequests::distinct() const {
  armed = false;
  const std::int64_t seen = requests_seen;
  std::map<std::uint64_t, std::int64_t> last;
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 0; n < seen; ++n) {
    const bool noted = static_cast<std::size_t>(n) < chains.size();
    if (!noted || last.insert_or_assign(chains[static_cast<std::size_t>(n)], n).second) numbers.push_back(n);
  }
  for (const auto& [chain, n] : last) numbers.push_back(n);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::int64_t threads_started() noexcept { return all_threads; }
Held held() noexcept { return {live_blocks, live_mapped_bytes, live_threads, open_descriptors()}; }

}  // namespace sluice::test

using sluice::test::counted;
using sluice::test::granted;

extern "C" {

void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void __real_free(void* memory);
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, std::size_t size);
int __real_mprotect(void* address, std::size_t size, int protection);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument);
int __real_pthread_join(pthread_t thread, void** result);

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return granted() ? counted(__real_aligned_alloc(alignment, size)) : nullptr;
}
void __wrap_free(void* memory) {
  if (memory != nullptr) --sluice::test::live_blocks;
  __real_free(memory);
}
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset) {
  if (!granted()) return errno = ENOMEM, MAP_FAILED;
  void* const mapped = __real_mmap(address, size, protection, flags, file, offset);
  if (mapped != MAP_FAILED) sluice::test::live_mapped_bytes += static_cast<std::int64_t>(size);
  return mapped;
}
int __wrap_munmap(void* address, std::size_t size) {
  sluice::test::live_mapped_bytes -= static_cast<std::int64_t>(size);
  return __real_munmap(address, size);
}
int __wrap_mprotect(void* address, std::size_t size, int protection) {
  // Taking rights away takes no memory.
  if (protection != PROT_NONE && !granted()) return errno = ENOMEM, -1;
  return __real_mprotect(address, size, protection);
}
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) {
  if (!granted()) return EAGAIN;
  const int status = __real_pthread_create(thread, attributes, main, argument);
  if (status == 0) ++sluice::test::live_threads, ++sluice::test::all_threads;
  return status;
}
int __wrap_pthread_join(pthread_t thread, void** result) {
  --sluice::test::live_threads;
  return __real_pthread_join(thread, result);
}
#if defined(SLUICE_HAS_IO_URING)
int __real_io_uring_queue_init_params(unsigned entries, void* ring, void* parameters);
int __wrap_io_uring_queue_init_params(unsigned entries, void* ring, void* parameters) {
  return granted() ? __real_io_uring_queue_init_params(entries, ring, parameters) : -ENOMEM;
}
#endif

}  // extern "C"

// All forms: a sanitizer brings those that are missing, which know nothing of these.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return granted() ? counted(std::malloc(size == 0 ? 1 : size)) : nullptr;
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto to = static_cast<std::size_t>(alignment);
  return granted() ? counted(__real_aligned_alloc(to, (size + to - 1) / to * to)) : nullptr;
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  void* const memory = operator new(size, alignment, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return operator new(size, std::nothrow); }
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return operator new(size, alignment, std::nothrow);
}

void operator delete(void* memory) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { __wrap_free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { __wrap_free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { __wrap_free(memory); }
void operator delete[](void* memory) noexcept { __wrap_free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { __wrap_free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { __wrap_free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { __wrap_free(memory); }
