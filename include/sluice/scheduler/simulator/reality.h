// How a device really behaves, beside what its profile expects: what makes a simulation more than the plan read aloud.
//
//     took = expected * bias(model, unit, processor) * noise * idle * thermal * slowed
//
// bias     an error of the estimate that stays: the same for each run of that unit there
// noise    one that differs from run to run
// idle     after `idle_after` without work the clock is low: what begins then takes `idle_factor` times as long, fading over `idle_ramp`
// thermal  a busy processor warms up with the time constant `thermal_time` until it takes 1 + `thermal` times as long; idle, it cools
// faults   from a moment on a processor is slowed, hangs (what it runs never ends), dies (what it runs is lost at once), or is well again
#pragma once

#include <cmath>
#include <vector>

#include "sluice/scheduler/device.h"
#include "sluice/scheduler/random.h"

namespace sluice::scheduler {

struct Fault {
  enum class Kind : std::uint8_t { kSlow, kHang, kDie, kWell };
  Time at = 0;
  ProcessorId processor{};
  Kind kind = Kind::kSlow;
  double factor = 1;  // kSlow
};

struct Reality {
  std::uint64_t seed = 1;
  double bias = 0, noise = 0;  // standard deviations of logarithms
  Time idle_after = kNever, idle_ramp = kMillisecond;
  double idle_factor = 1;
  double thermal = 0;
  Time thermal_time = 10 * kSecond;
  std::vector<Fault> faults;  // in order of time
};

/// One processor's clock, heat and faults.
class Body {
 public:
  /// How much longer than at rest a unit takes that begins now.
  double factor(const Reality& reality, Time now) noexcept {
    cool(reality, now);
    double factor = slowed * (1 + reality.thermal * heat_);
    if (reality.idle_factor > 1 && reality.idle_after < kNever) {
      const Time idle = began_ < 0 ? now : now - ended_;
      if (idle > reality.idle_after) ramp_from_ = now;
      const double left = ramp_from_ < 0 ? 0 : 1 - static_cast<double>(now - ramp_from_) / static_cast<double>(reality.idle_ramp);
      factor *= 1 + (reality.idle_factor - 1) * std::max(left, 0.0);
    }
    return factor;
  }
  void worked(const Reality& reality, Time from, Time to) noexcept {
    began_ = from;
    ended_ = changed_ = to;
    heat_ += (1 - heat_) * (1 - std::exp(-static_cast<double>(to - from) / static_cast<double>(reality.thermal_time)));
  }

  double slowed = 1;
  bool hangs = false;

 private:
  void cool(const Reality& reality, Time now) noexcept {
    if (now <= changed_) return;
    heat_ *= std::exp(-static_cast<double>(now - changed_) / static_cast<double>(reality.thermal_time));
    changed_ = now;
  }

  double heat_ = 0;  // 0: cold; 1: as hot as it gets
  Time began_ = -1, ended_ = 0, changed_ = 0, ramp_from_ = -1;
};

}  // namespace sluice::scheduler
