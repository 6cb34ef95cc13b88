// How many files this process has open: what a test compares before and after.
#pragma once

#include <dirent.h>

#include <cstddef>

namespace sluice::test {

/// Of the process; the one that counts is among them each time. 0 where the system does not say.
inline std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace sluice::test
