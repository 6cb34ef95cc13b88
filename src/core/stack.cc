#include "src/core/stack.h"

#include <cerrno>
#include <cstdint>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sluice {
namespace {

#if defined(__linux__)
/// Whether a byte can be read. The system call reads the set of signals before it finds its first argument invalid, so nothing else
/// happens.
bool readable(std::uintptr_t address) noexcept {
  constexpr int kNoSuchAction = -1;
  constexpr std::size_t kSetBytes = 8;
  const int before = errno;
  const long result = ::syscall(SYS_rt_sigprocmask, kNoSuchAction, address & ~std::uintptr_t{kSetBytes - 1}, nullptr, kSetBytes);
  const bool there = result == 0 || errno != EFAULT;
  errno = before;
  return there;
}

/// Does the answer depend on the address? The last bytes of the address space are never mapped. A sandbox that refuses the call says the
/// same of each.
bool can_be_asked() noexcept { return !readable(~std::uintptr_t{0}); }

/// What is known of this thread's stack: the bytes from `low` to `high` are there. A stack to which the thread was switched is somewhere
/// else.
struct KnownStack {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
};
thread_local KnownStack known;
#endif

}  // namespace

bool stack_has(std::size_t bytes, bool otherwise) noexcept {
#if defined(__linux__)
  constexpr std::uintptr_t kPage = 4096;  // or more; a guard is a page or more
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here <= bytes) return false;
  const std::uintptr_t lowest = here - bytes;
  const bool is_known = known.low <= here && here <= known.high;
  if (is_known && known.low <= lowest) return true;
  if (!can_be_asked()) return otherwise;
  for (std::uintptr_t at = is_known ? known.low : here; at > lowest; at -= kPage)
    if (!readable(at)) return false;
  if (!readable(lowest)) return false;
  known = {lowest, is_known ? known.high : here};
  return true;
#else
  static_cast<void>(bytes);
  return otherwise;
#endif
}

}  // namespace sluice
