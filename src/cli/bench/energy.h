// Energy as the system counts it: RAPL's package counters, or a battery's charge. Nothing where it counts none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli::bench_detail {

/// Joules since it was made.
class EnergyMeter {
 public:
  /// `root` is /sys, another folder in tests.
  explicit EnergyMeter(std::string root = "/sys");
  std::optional<double> joules() const;

 private:
  struct Counter {
    std::string path;
    std::uint64_t begin = 0;
    std::uint64_t wraps_at = 0;  // 0: it falls as energy is used (a battery)
  };
  std::vector<Counter> counters_;
};

}  // namespace sluice::cli::bench_detail
