// A list of processors as the system wants it.
#pragma once

#include <sched.h>

#include <span>

namespace sluice {

/// Numbers that no system has are left out.
inline cpu_set_t cpu_set_of(std::span<const int> cpus) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

}  // namespace sluice
