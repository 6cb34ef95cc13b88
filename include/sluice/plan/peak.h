// The most that a plan holds at once, and what that is: read from the plan alone, for reports and tests.
//
//     bytes |      ##            a step, and the buffers that live at it: `peak_of` counts all of them, `activation_peak` leaves out
//           |  ##  ##  ##        weights, raw and transformed
//           +---------------- steps
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/plan/plan.h"

namespace sluice::plan {

struct Peak {
  std::size_t step = 0;  // the first of those that need most
  Bytes bytes;
};

/// Does a buffer live at a step? A wrapped load's lives at both ends of the period.
inline bool lives_at(const Buffer& buffer, std::size_t step, std::size_t steps) noexcept {
  const auto at = static_cast<std::int64_t>(step);
  return buffer.whole_period || buffer.lifetime.contains(at) || buffer.lifetime.contains(at - static_cast<std::int64_t>(steps));
}

inline bool holds_weights(const Buffer& buffer) noexcept {
  return buffer.kind == BufferKind::kWeight || buffer.kind == BufferKind::kDerived;
}

inline bool holds_tensors(const Buffer& buffer) noexcept {
  return buffer.kind == BufferKind::kActivation || buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kOutput;
}

/// A workspace that lies, in time and bytes, in a buffer of tensors: between their rows.
inline bool lies_in(const Buffer& inner, const Buffer& outer) noexcept {
  return holds_tensors(outer) && inner.kind == BufferKind::kWorkspace && outer.lifetime.contains(inner.lifetime) &&
         outer.offset <= inner.offset && inner.offset + inner.size <= outer.offset + outer.size;
}

/// By buffer: does it lie in another one?
inline std::vector<bool> lie_inside(const Plan& plan) {
  std::vector<const Buffer*> outer;
  for (const Buffer& buffer : plan.buffers)
    if (holds_tensors(buffer)) outer.push_back(&buffer);
  std::vector<bool> inside;
  for (const Buffer& buffer : plan.buffers)
    inside.push_back(buffer.kind == BufferKind::kWorkspace &&
                     std::any_of(outer.begin(), outer.end(), [&](const Buffer* other) { return lies_in(buffer, *other); }));
  return inside;
}

/// The peak of those buffers that `counts` accepts, without those that lie in others. O(steps + buffers), and for each workspace O(buffers).
template <class Counts>
Peak peak_of(const Plan& plan, Counts&& counts) {
  const auto steps = static_cast<std::int64_t>(plan.steps.size());
  std::vector<std::int64_t> change(plan.steps.size() + 1, 0);
  const auto add = [&](std::int64_t begin, std::int64_t end, Bytes size) {
    begin = std::clamp<std::int64_t>(begin, 0, steps);
    end = std::clamp<std::int64_t>(end, begin, steps);
    change[static_cast<std::size_t>(begin)] += static_cast<std::int64_t>(size.count());
    change[static_cast<std::size_t>(end)] -= static_cast<std::int64_t>(size.count());
  };
  const std::vector<bool> inside = lie_inside(plan);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (inside[b] || !counts(buffer)) continue;
    if (buffer.whole_period) {
      add(0, steps, buffer.size);
      continue;
    }
    add(buffer.lifetime.begin, buffer.lifetime.end, buffer.size);
    if (buffer.lifetime.begin < 0) add(buffer.lifetime.begin + steps, steps, buffer.size);
  }
  Peak peak;
  std::int64_t live = 0;
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    live += change[step];
    if (Bytes(static_cast<std::uint64_t>(live)) > peak.bytes) peak = {step, Bytes(static_cast<std::uint64_t>(live))};
  }
  return peak;
}

/// What activations, inputs, outputs, unfinished sums and workspaces take together at most.
inline Peak activation_peak(const Plan& plan) {
  return peak_of(plan, [](const Buffer& buffer) { return !holds_weights(buffer); });
}

}  // namespace sluice::plan
