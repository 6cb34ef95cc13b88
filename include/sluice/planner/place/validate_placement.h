// The judge of placements: checks (P1) to (P5) of placement_problem.h with nothing but the definitions. For sluice-pack and for tests.
#pragma once

#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/sort.h"
#include "sluice/planner/place/placement_problem.h"

namespace sluice::planner {

/// Can offsets be computed without overflow? Problems from files pass here first. Errors: kInvalidArgument.
inline Status check_problem(const PlacementProblem& problem) {
  std::uint64_t reach = 0;  // no placement of ours is higher
  for (const Rectangle& rectangle : problem.rectangles) {
    if (rectangle.time.begin > rectangle.time.end)
      return fail(ErrorCode::kInvalidArgument, "rectangle", "a lifetime ends before it begins");
    if (rectangle.alignment == 0) return fail(ErrorCode::kInvalidArgument, "rectangle", "an alignment is at least 1");
    for (std::uint64_t part : {rectangle.size, rectangle.alignment, rectangle.fixed.value_or(0)}) {
      const auto sum = checked_add(reach, part);
      if (!sum || *sum > kUnlimitedBytes.count())
        return fail(ErrorCode::kInvalidArgument, "rectangle", "sizes, alignments and fixed offsets together must stay below 2^63");
      reach = *sum;
    }
  }
  return {};
}

namespace detail {

inline Status broken(const char* rule, std::size_t rectangle) {
  return fail(ErrorCode::kInvalidPlan, "rectangle " + std::to_string(rectangle), rule);
}

/// (P5): sweeps time with the live byte ranges in a map; a new one may touch neither of its neighbours. O(n log n).
inline Status check_overlaps(const std::vector<Rectangle>& rectangles, const std::vector<std::uint64_t>& offsets) {
  struct Event {
    std::int64_t time;
    bool begins;  // ends come first
    std::size_t rectangle;
    bool operator<(const Event& other) const noexcept { return time != other.time ? time < other.time : begins < other.begins; }
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    if (!rectangles[i].matters()) continue;
    events.push_back({rectangles[i].time.begin, true, i});
    events.push_back({rectangles[i].time.end, false, i});
  }
  sluice::sort(events.begin(), events.end());
  std::map<std::uint64_t, std::uint64_t> live;  // begin -> end
  for (const Event& event : events) {
    const std::uint64_t begin = offsets[event.rectangle];
    const std::uint64_t end = begin + rectangles[event.rectangle].size;
    if (!event.begins) {
      live.erase(begin);
      continue;
    }
    const auto above = live.lower_bound(begin);
    const bool clear_above = above == live.end() || end <= above->first;
    const bool clear_below = above == live.begin() || std::prev(above)->second <= begin;
    if (!clear_above || !clear_below) return broken("P5: rectangles that overlap in time overlap in bytes", event.rectangle);
    live.emplace(begin, end);
  }
  return {};
}

}  // namespace detail

/// Errors: kInvalidPlan, with the rule as the first word of the reason.
inline Status validate_placement(const PlacementProblem& problem, const std::vector<std::uint64_t>& offsets) {
  const std::vector<Rectangle>& rectangles = problem.rectangles;
  if (offsets.size() != rectangles.size()) return detail::broken("P1: there must be one offset for each rectangle", offsets.size());
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    if (!rectangles[i].matters()) continue;
    if (offsets[i] % rectangles[i].alignment != 0) return detail::broken("P2: an offset is no multiple of the alignment", i);
    if (rectangles[i].fixed && offsets[i] != *rectangles[i].fixed) return detail::broken("P3: a fixed rectangle lies elsewhere", i);
    const auto end = checked_add(offsets[i], rectangles[i].size);
    if (!end || *end > problem.capacity) return detail::broken("P4: a rectangle ends beyond the capacity", i);
  }
  return detail::check_overlaps(rectangles, offsets);
}

}  // namespace sluice::planner
