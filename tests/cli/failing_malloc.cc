// Preloaded into a program: the request for memory of the number that SLUICE_FAIL_ALLOCATION says (from 1) fails, once, wherever it comes
// from: static initialisers, too, which no test that is linked to a program reaches.
#include <errno.h>

#include <atomic>
#include <cstdlib>

namespace {

std::atomic<long> failing{-1};
std::atomic<long> seen{0};

bool fails() noexcept {
  if (failing < 0) {
    const char* number = std::getenv("SLUICE_FAIL_ALLOCATION");
    failing = number == nullptr ? 0 : std::strtol(number, nullptr, 10);
  }
  if (++seen != failing) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) noexcept { return fails() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) noexcept { return fails() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* memory, std::size_t size) noexcept { return fails() ? nullptr : __libc_realloc(memory, size); }
void* memalign(std::size_t alignment, std::size_t size) noexcept { return fails() ? nullptr : __libc_memalign(alignment, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return fails() ? nullptr : __libc_memalign(alignment, size); }

}  // extern "C"
