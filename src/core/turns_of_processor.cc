#include "src/core/turns_of_processor.h"

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#endif

namespace sluice {

#if defined(__linux__)
void wake_on_time() noexcept { static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL)); }
#else
void wake_on_time() noexcept {}
#endif

#if defined(__linux__) && defined(SYS_sched_setattr) && defined(SYS_sched_getattr)

namespace {

/// The kernel's own structure (sched_setattr(2)); glibc of Debian 12 does not declare it.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // the time slice of the usual policy
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

bool read_attributes(SchedulingAttributes& attributes) noexcept {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0;
}

}  // namespace

void work_in_turns_of(std::int64_t nanoseconds) noexcept {
  SchedulingAttributes attributes;
  if (!read_attributes(attributes) || attributes.policy != 0) return;  // another policy was chosen on purpose
  attributes.size = sizeof(attributes);
  attributes.runtime = static_cast<std::uint64_t>(nanoseconds);
  static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
}

std::int64_t turn_of_this_thread() noexcept {
  SchedulingAttributes attributes;
  return read_attributes(attributes) && attributes.policy == 0 ? static_cast<std::int64_t>(attributes.runtime) : 0;
}

#else

void work_in_turns_of(std::int64_t) noexcept {}
std::int64_t turn_of_this_thread() noexcept { return 0; }

#endif

}  // namespace sluice
