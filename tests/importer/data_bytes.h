// What this process has of writable memory of its own, which RLIMIT_DATA bounds. Not under sanitizers, which have data of their own.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace sluice::test {

inline std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.rfind("VmData:", 0) == 0) return std::stoull(line.substr(7)) * 1024;
  return 0;
}

}  // namespace sluice::test
