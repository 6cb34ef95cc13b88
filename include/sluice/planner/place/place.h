// The entry point of placement: takes a problem and how hard to try, gives addresses.
//
//     dives TWA, TAW, WAT -> best fit by size, by duration, by area -> two-ended -> exact search, if allowed
//
// The first that reaches the goal ends it; otherwise the lowest of all is given. The exact search runs its three rules in turn with limits
// that double, and with several threads side by side.
//
// Invariant: the same problem and options give the same placement, on every machine and for every number of threads. Therefore the search
// is bounded by counted work, not by a clock: a limit of 50 ms is the work that a slow desktop CPU does in 50 ms, a fast one takes 20 to
// 30, and a device that is four times slower 200 ms. Where two rules succeed, the one that comes first in turn wins, not the one that ends
// first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sluice/planner/place/placement_problem.h"

namespace sluice::planner {

/// How much the exact search may do, over all its rules and threads; and, in the same unit, what other ways to better plans cost.
struct SearchLimit {
  /// Columns that the search may visit in a millisecond. At 400,000, counted on one core, the worst of the 70 points of docs/planner.md
  /// took 391 million instructions in all, 40 ms there and 74 ms on the slowest CPU seen; now it takes 286 million, which leaves that one
  /// room below 60. Plans are as good.
  static constexpr std::uint64_t kWorkPerMillisecond = 250'000;

  std::uint64_t work = 0;  // 0: no search

  static constexpr SearchLimit of_milliseconds(std::uint64_t ms) noexcept {
    constexpr std::uint64_t kMost = ~std::uint64_t{0} / kWorkPerMillisecond;
    return {std::min(ms, kMost) * kWorkPerMillisecond};
  }
};

/// kFit: any placement within the capacity. kLowest: the least height (within the capacity or not).
enum class PlaceGoal : std::uint8_t { kLowest, kFit };

struct PlaceOptions {
  PlaceGoal goal = PlaceGoal::kLowest;
  SearchLimit search;
  std::uint64_t quick_work = ~std::uint64_t{0};  // after the first of the quick rules, others only run within this, in the same unit
  int threads = 1;
  /// kFit: the exact search does not begin where the quick rules' least height is more than so many capacities.
  double search_up_to = std::numeric_limits<double>::infinity();
};

enum class PlacedBy : std::uint8_t { kDive, kBestFit, kTwoEnded, kExactSearch, kTimeOrder };
std::string_view name_of(PlacedBy by) noexcept;

struct Placed {
  Placement placement;      // valid but for (P4): compare its height with the capacity
  std::uint64_t bound = 0;  // no placement is lower
  PlacedBy by = PlacedBy::kDive;
  std::uint64_t work = 0;  // what it took, in the unit of SearchLimit
  bool settled = false;    // the goal is reached, or the search has shown that nothing reaches it (kLowest: that nothing is lower)

  double ratio() const noexcept { return bound == 0 ? 1.0 : static_cast<double>(placement.height) / static_cast<double>(bound); }
};

/// `problem` must pass check_problem, and its fixed rectangles must not overlap one another. Never fails: without a capacity there is
/// always a placement. O(pairs log n) without the search, where pairs are rectangles that overlap in time.
Placed place(const PlacementProblem& problem, const PlaceOptions& options = {});

}  // namespace sluice::planner
