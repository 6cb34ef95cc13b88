// Which of a measurement's times are those of a quiet machine.
//
// While a processor's clock is low, or somebody else computes on the same core, an anchor (step_timer.h) takes 15 to 50 % longer, for seconds or a
// minute, and what waits for memory does not: expressed in anchors, such times are those of another device. So a machine counts as quiet while
// an anchor takes at most 1.1 times what the quickest quarter of all took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "src/profiler/middle.h"

namespace sluice::profiler {

/// What a step took at one of the times that it was measured.
struct TimedOnce {
  double anchors = 0;  // in the time of the anchor then
  double seconds = 0;
  double anchor_seconds() const noexcept { return seconds / anchors; }
};

/// The longest time of an anchor on the quiet machine; 0 where none was timed.
inline double longest_quiet_anchor(std::vector<double> anchor_seconds) {
  constexpr double kAlike = 1.1;
  if (anchor_seconds.empty()) return 0;
  const auto quarter = anchor_seconds.begin() + static_cast<std::ptrdiff_t>(anchor_seconds.size() / 4);
  std::nth_element(anchor_seconds.begin(), quarter, anchor_seconds.end());
  return kAlike * *quarter;
}

/// What an anchor usually took on the quiet machine. At least one was timed.
inline double usual_quiet_anchor(std::vector<double> anchor_seconds) {
  const double longest = longest_quiet_anchor(anchor_seconds);
  std::erase_if(anchor_seconds, [&](double each) { return each > longest; });
  return usual_of(std::move(anchor_seconds));
}

/// How many anchors a step usually took on the quiet machine, whose anchors took at most `longest`. Of a step that was measured at fewer than three
/// such times the three with the shortest anchors count.
inline double quiet_time_of(std::vector<TimedOnce> times, double longest) {
  constexpr std::size_t kLeastTimes = 3;
  std::sort(times.begin(), times.end(), [](const TimedOnce& a, const TimedOnce& b) { return a.anchor_seconds() < b.anchor_seconds(); });
  std::vector<double> anchors;
  for (const TimedOnce& time : times)
    if (anchors.size() < kLeastTimes || time.anchor_seconds() <= longest) anchors.push_back(time.anchors);
  return usual_of(std::move(anchors));
}

/// The quiet machine, as all that an anchor took in a measurement has it; where none was timed, anchors are seconds.
class QuietMachine {
 public:
  explicit QuietMachine(const std::vector<double>& anchor_seconds)
      : longest_(longest_quiet_anchor(anchor_seconds)), anchor_seconds_(anchor_seconds.empty() ? 1 : usual_quiet_anchor(anchor_seconds)) {}
  double anchor_seconds() const noexcept { return anchor_seconds_; }
  double seconds_of(std::vector<TimedOnce> times) const { return quiet_time_of(std::move(times), longest_) * anchor_seconds_; }

 private:
  double longest_, anchor_seconds_;
};

}  // namespace sluice::profiler
