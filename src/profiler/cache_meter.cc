#include "src/profiler/cache_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/profiler/middle.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHeld = 8 << 20;  // more than a core's own cache, less than those that are shared
constexpr std::array<double, 9> kSizes = {8, 16, 24, 32, 48, 64, 96, 128, 256};  // MiB
constexpr std::array<double, 9> kPauses = {0.25, 0.5, 1, 2, 4, 8, 16, 32, 64};   // ms
constexpr double kFarApart = 1.25;  // memory takes so many times as long as a shared cache, or there is none
constexpr int kTurns = 3;

class CacheMeter {
 public:
  explicit CacheMeter(std::span<const std::byte> memory) : memory_(memory) {}

  double others() {
    const double near = seconds_per_byte(kHeld, 0), far = seconds_per_byte(memory_.size(), 0);
    if (far < kFarApart * near) return 0;
    half_ = 0.5 * (near + far);
    const double seconds = 1e-3 * crossing(kPauses, [&](double ms) { return seconds_per_byte(kHeld, ms * 1e-3); });
    const double bytes = 0x1p20 * crossing(kSizes, [&](double mib) { return seconds_per_byte(static_cast<std::size_t>(mib * 0x1p20), 0); });
    return seconds > 0 && bytes > 0 ? bytes / seconds : 0;
  }

 private:
  /// Where `seconds_at` comes to the half, between two of `places` in proportion to the logarithm; 0: nowhere.
  template <class Places, class SecondsAt>
  double crossing(const Places& places, const SecondsAt& seconds_at) {
    double before = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double seconds = seconds_at(places[i]);
      if (seconds >= half_ && i == 0) return places[0];
      if (seconds >= half_) return places[i - 1] * std::pow(places[i] / places[i - 1], (half_ - before) / (seconds - before));
      before = seconds;
    }
    return 0;
  }

  /// The first `bytes`, read again and again with so long a pause between; the median.
  double seconds_per_byte(std::size_t bytes, double pause) {
    constexpr int kReads = 5;
    bytes = std::min(bytes, memory_.size());
    std::vector<double> seconds;
    read(bytes);
    for (int i = 0; i < kReads; ++i) {
      for (const Clock::time_point start = Clock::now(); seconds_since(start) < pause;) {
      }
      const Clock::time_point start = Clock::now();
      read(bytes);
      seconds.push_back(seconds_since(start));
    }
    return middle_of(std::move(seconds)) / static_cast<double>(bytes);
  }

  void read(std::size_t bytes) {
    std::uint64_t sums[4] = {};  // that wait for no other
    for (std::size_t at = 0; at + 4 * kLine <= bytes; at += 4 * kLine)
      for (std::size_t i = 0; i < 4; ++i) {
        std::uint64_t word;
        std::memcpy(&word, memory_.data() + at + i * kLine, sizeof word);
        sums[i] += word;
      }
    read_ = sums[0] + sums[1] + sums[2] + sums[3];
  }

  std::span<const std::byte> memory_;
  double half_ = 0;
  volatile std::uint64_t read_ = 0;  // so that what is read is read
};

}  // namespace

double measure_others(std::span<const std::byte> memory) {
  std::vector<double> rates;
  for (int turn = 0; turn < kTurns; ++turn) rates.push_back(CacheMeter(memory).others());
  return middle_of(std::move(rates));
}

}  // namespace sluice::profiler
