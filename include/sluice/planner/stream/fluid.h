// Pass: fluid gates, the earliest that the bytes alone allow, and with them the bound on latency: addresses are ignored, as if weights were
// water.
//
//     capacity  ----------------------------------
//               |      |####|      |             |      H(t) = what loads may have brought in all by step t:
//               | free |####| free |             |             capacity - kept - fixed(t) + loads given up before t
//               |______|fixed______|_____________|
//                  t ->                                 load k fits gate g if S(k), the bytes of all loads up to k,
//                                                       is at most H(t) for each t in [g, first use of k]
//
// Loads lie in whole blocks, and a block that holds a byte of a fixed buffer holds no load: of what is free in a step whole blocks count.
// S rises with k, so what blocks a load blocks every later one, and of two steps the later one with the smaller H hides the other: a queue
// of the steps that are not hidden answers all loads in O(steps + loads).
// In a period that follows a period the steps before its begin are those of the run before: three runs in a row give the gates of the
// third, negative ones too.
// Invariants: gates never fall; gate <= first use. No plan with the same loads in the same order and the same kept bytes is faster than
// `simulate` says of these gates, because each of its gates is at least the fluid one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "sluice/planner/place/layout.h"
#include "sluice/planner/stream/simulate.h"

namespace sluice::planner {

struct FluidGates {
  Gates gates;
  bool fits = true;      // no load is too large even at its first use, nor beside those in use later on, and it is not crowded
  bool crowded = false;  // some step's fixed buffers alone are too large
};

/// Bytes of fixed buffers in each step.
inline std::vector<std::uint64_t> live_by_step(const FixedLayout& layout, const Schedule& schedule) {
  std::vector<std::uint64_t> live(schedule.steps.size() + 1, 0);  // differences first; they wrap and come back
  for (const Rectangle& item : layout.items) {
    if (item.size == 0) continue;
    live[static_cast<std::size_t>(schedule.steps_of[static_cast<std::size_t>(item.time.begin)].begin)] += item.size;
    live[static_cast<std::size_t>(schedule.steps_of[static_cast<std::size_t>(item.time.end - 1)].end)] -= item.size;
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

namespace detail {

class FluidSweep {
 public:
  FluidSweep(const Schedule& schedule, const std::vector<std::uint64_t>& fixed, std::uint64_t room, Run kind)
      : schedule_(schedule), fixed_(fixed), room_(room), prologue_(kind == Run::kPrologue) {
    freed_.resize(schedule.steps.size() + 1, 0);
    for (const LoadSpec& load : schedule.loads)
      if (counts(load)) freed_[static_cast<std::size_t>(load.uses.end)] += static_cast<std::int64_t>(load.region_bytes());
  }

  FluidGates run(int runs) {
    FluidGates result{Gates(schedule_.loads.size(), 0)};
    result.crowded = std::any_of(fixed_.begin(), fixed_.end(), [&](std::uint64_t bytes) { return bytes > room_; });
    const std::int64_t steps = schedule_.step_count();
    for (int r = 0; r < runs; ++r) {
      std::int64_t pushed = 0;
      for (std::size_t k = 0; k < schedule_.loads.size(); ++k) {
        const LoadSpec& load = schedule_.loads[k];
        if (!counts(load)) {
          result.gates[k] = std::max<std::int64_t>(gate_ - r * steps, 0);
          continue;
        }
        for (; pushed <= load.uses.begin; ++pushed) push(r * steps, pushed);
        brought_ += static_cast<std::int64_t>(load.region_bytes());
        for (; !queue_.empty() && queue_.front().limit < brought_; queue_.pop_front()) gate_ = std::max(gate_, queue_.front().step + 1);
        const std::int64_t latest = r * steps + load.uses.begin;
        fits_ = fits_ && gate_ <= latest;
        gate_ = std::min(gate_, latest);
        result.gates[k] = gate_ - r * steps;
      }
      for (; pushed < steps; ++pushed) push(r * steps, pushed);
      given_up_ += freed_[static_cast<std::size_t>(steps)];
    }
    result.fits = fits_;
    return result;
  }

 private:
  bool counts(const LoadSpec& load) const noexcept { return prologue_ ? !load.resident : load.streamed(); }

  void push(std::int64_t origin, std::int64_t step) {
    given_up_ += freed_[static_cast<std::size_t>(step)];
    const std::uint64_t fixed = fixed_[static_cast<std::size_t>(step)];
    const auto left = fixed > room_ ? -static_cast<std::int64_t>(align_up(fixed - room_, kBlockBytes))
                                    : static_cast<std::int64_t>(align_down(room_ - fixed, kBlockBytes));
    const std::int64_t limit = left + given_up_;
    fits_ = fits_ && brought_ <= limit;  // each load so far has been given up or is in use
    while (!queue_.empty() && queue_.back().limit >= limit) queue_.pop_back();
    queue_.push_back({origin + step, limit});
  }

  struct Limit {
    std::int64_t step;
    std::int64_t limit;
  };
  const Schedule& schedule_;
  const std::vector<std::uint64_t>& fixed_;
  const std::uint64_t room_;
  const bool prologue_;
  std::vector<std::int64_t> freed_;  // by step: bytes of loads whose last use is the step before
  std::deque<Limit> queue_;          // steps that may block a load yet to come: limits rise
  std::int64_t given_up_ = 0;
  std::int64_t brought_ = 0;
  std::int64_t gate_ = 0;
  bool fits_ = true;
};

}  // namespace detail

/// `room`: the capacity less what is kept. `wrap`: loads of a period may go in the tail of the run before.
inline FluidGates fluid_gates(const Schedule& schedule, const std::vector<std::uint64_t>& fixed, std::uint64_t room, Run kind, bool wrap) {
  constexpr int kRuns = 3;
  FluidGates fluid = detail::FluidSweep(schedule, fixed, room, kind).run(wrap ? kRuns : 1);
  if (!wrap) return fluid;
  // A load's region is its own from gate to last use: it cannot begin before its last use in the run before.
  std::int64_t former = -schedule.step_count();
  for (std::size_t k = 0; k < fluid.gates.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    if (!load.streamed()) continue;
    fluid.gates[k] = former = std::max({fluid.gates[k], former, load.uses.end - schedule.step_count()});
  }
  return fluid;
}

}  // namespace sluice::planner
