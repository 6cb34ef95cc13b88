#include "sluice/emit/memory_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "sluice/emit/overlap_placement.h"
#include "sluice/planner/place/place.h"

namespace sluice::emit {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kRows = 0, kPixels = 1;
/// Pieces that are tried for a region that fits in pixels, coarse ones first.
constexpr std::int64_t kGranules[] = {kRows, 32, 16, 8, 4, 2, kPixels};
/// Strips that are tried for a region: more of them have almost nothing but borders.
constexpr std::int64_t kMostStrips = 16;

bool needs_overlap(const RegionCost& cost, std::uint64_t limit) { return cost.overlap && cost.sum() + cost.saved > limit; }

class Search {
 public:
  Search(const Network& network, std::uint64_t extra_macs)
      : network_(network), costs_(network), stages_(network.stages.size()), extra_macs_(extra_macs) {}

  struct Least {
    std::uint64_t sum = kNone;      // of all that a region needs
    std::uint64_t tensors = kNone;  // of its tensors alone
  };

  /// The least that the greatest region must have, over all cuts that compute nothing twice. Pieces of rows give a first limit, which rules
  /// most cuts out.
  Least least() {
    const Least rows = least_of(kRows, {});
    const Least pixels = least_of(kPixels, rows);
    return {std::min(rows.sum, pixels.sum), std::min(rows.tensors, pixels.tensors)};
  }

  /// About the same with strips, where multiply-adds may be spent: halved until it is known to one in 256.
  std::uint64_t least_in_strips(std::uint64_t whole) {
    std::uint64_t low = 0, high = whole;
    while (extra_macs_ > 0 && high - low > std::max(high / 256, kArenaAlignment)) {
      const std::uint64_t middle = low + (high - low) / 2;
      (cheapest(middle) ? high : low) = middle;
    }
    return high;
  }

  /// The cuts with the fewest multiply-adds, then pieces, whose regions each need at most `limit`; none where there are none.
  std::optional<std::vector<Region>> cheapest(std::uint64_t limit) {
    std::vector<Price> prices(stages_ + 1, Price{kNone, kNone});
    std::vector<Region> last(stages_ + 1);
    prices[0] = {};
    for (std::size_t end = 1; end <= stages_; ++end)
      for (std::size_t begin = end; begin-- > 0;) {
        if (prices[begin].macs == kNone || out_of_reach(begin, end, limit)) continue;
        const std::optional<Region> region = coarsest(begin, end, limit);
        if (!region) continue;
        const Price sum{prices[begin].macs + costs_.macs(*region), prices[begin].pieces + pieces_of(*region, limit)};
        if (sum < prices[end]) prices[end] = sum, last[end] = *region;
      }
    if (prices[stages_].macs > network_.macs + extra_macs_) return std::nullopt;
    std::vector<Region> regions;
    for (std::size_t end = stages_; end > 0; end = regions.back().first) regions.push_back(last[end]);
    std::reverse(regions.begin(), regions.end());
    return regions;
  }

  RegionCosts& costs() { return costs_; }

 private:
  struct Price {
    std::uint64_t macs = 0, pieces = 0;
    bool operator<(const Price& other) const { return std::tie(macs, pieces) < std::tie(other.macs, other.pieces); }
  };

  /// An overlap saves at most half of what is whole.
  bool out_of_reach(std::size_t begin, std::size_t end, std::uint64_t limit) const { return costs_.whole_bytes(begin, end) / 2 > limit; }

  Least least_of(std::int64_t granule, const Least& known) {
    std::vector<Least> best(stages_ + 1);
    best[0] = {0, 0};
    for (std::size_t end = 1; end <= stages_; ++end)
      for (std::size_t begin = end; begin-- > 0;) {
        if (out_of_reach(begin, end, std::max(known.sum, known.tensors))) continue;
        // Rings of rows are never smaller than those of pixels by more than a row for each: far too large ones are not walked.
        const RegionCost& cost = costs_.of({begin, end, granule});
        best[end].sum = std::min(best[end].sum, std::max(best[begin].sum, cost.sum()));
        best[end].tensors = std::min(best[end].tensors, std::max(best[begin].tensors, cost.tensors()));
        if (known.sum != kNone && cost.rings > known.sum) break;  // a longer region has these rings, too
      }
    return best[stages_];
  }

  /// Takes as few strips as fit, since each further one computes more, and the largest pieces.
  std::optional<Region> coarsest(std::size_t begin, std::size_t end, std::uint64_t limit) {
    const std::uint64_t most_macs = costs_.macs({begin, end}) + extra_macs_;
    for (std::int64_t strips = 1; strips <= (extra_macs_ > 0 ? kMostStrips : 1); ++strips) {
      const Region finest{begin, end, kPixels, strips};
      if (strips > 1) {
        if (!Strips::possible(network_, finest) || costs_.macs(finest) > most_macs) return std::nullopt;
        if (costs_.least_of_strips(finest) > limit) continue;
      }
      for (const std::int64_t granule : kGranules) {
        const Region region{begin, end, granule, strips};
        if (costs_.of(region).sum() <= limit) return region;
        if (granule == kRows && costs_.of(finest).sum() > limit) break;
      }
    }
    return std::nullopt;
  }

  /// Rounds of the walk: a stage looks at those before it, so long regions cost more. A region that only fits because tensors overlap
  /// makes addresses hard to find, so another cut is better if there is one.
  std::uint64_t pieces_of(const Region& region, std::uint64_t limit) {
    constexpr std::uint64_t kOverlapPieces = 1'000'000;
    std::uint64_t pieces = needs_overlap(costs_.of(region), limit) ? kOverlapPieces : 0;
    const Strips strips(network_, region);
    for (std::int64_t strip = 0; strip < region.strips; ++strip)
      for (std::size_t i = region.first; i < region.last; ++i) {
        const Stage& stage = network_.stages[i];
        const std::int64_t in_a_row = ceil_div(strips.columns(strip, i).size(), granule_of(stage, region));
        pieces += static_cast<std::uint64_t>(stage.walked.rows * in_a_row) * (region.last - region.first == 1 ? 1 : 2);
      }
    return pieces;
  }

  const Network& network_;
  RegionCosts costs_;
  std::size_t stages_;
  std::uint64_t extra_macs_;
};

/// Addresses for all that the regions need.
class Placing {
 public:
  Placing(const Network& network, RegionCosts& costs, std::vector<Region> regions, std::uint64_t limit)
      : network_(network), costs_(costs), limit_(limit), rectangle_of_(network.storages.size()) {
    plan_.regions = std::move(regions);
    plan_.storages.resize(network.storages.size());
    plan_.scratch.resize(network.stages.size());
    plan_.kept.resize(network.stages.size());
    plan_.places.resize(plan_.regions.size());
  }

  MemoryPlan place() {
    for (std::size_t s = 0; s < network_.storages.size(); ++s) {
      plan_.storages[s].ring = network_.storages[s].bytes();
      rectangle_of_[s] = add(time_of(s), plan_.storages[s].ring, size_of(network_.storages[s].dtype));
    }
    for (std::size_t r = 0; r < plan_.regions.size(); ++r) add_region(r);
    read(solve());
    return std::move(plan_);
  }

 private:
  std::int64_t region_of(std::size_t stage) const {
    const auto after = std::upper_bound(plan_.regions.begin(), plan_.regions.end(), stage,
                                        [](std::size_t at, const Region& region) { return at < region.last; });
    return std::min<std::int64_t>(after - plan_.regions.begin(), static_cast<std::int64_t>(plan_.regions.size()) - 1);
  }
  Interval<std::int64_t> time_of(std::size_t s) const {
    return {costs_.comes_from_outside(s) ? 0 : region_of(costs_.begin_of(s)), region_of(costs_.end_of(s)) + 1};
  }

  std::size_t add(Interval<std::int64_t> time, std::uint64_t size, std::uint64_t alignment) {
    problem_.rectangles.push_back({.time = time, .size = size, .alignment = alignment});
    return problem_.rectangles.size() - 1;
  }

  void add_region(std::size_t r) {
    const Region& region = plan_.regions[r];
    const RegionCost& cost = costs_.of(region);
    const Interval<std::int64_t> time{static_cast<std::int64_t>(r), static_cast<std::int64_t>(r) + 1};
    const Strips strips(network_, region);
    for (const auto& [s, bytes] : cost.ring_bytes) {
      problem_.rectangles[rectangle_of_[s]].size = plan_.storages[s].ring = bytes;
      if (region.strips > 1) plan_.storages[s].row_pixels = strips.row_pixels(*network_.storages[s].maker);
    }
    plan_.macs += strips.macs();
    if (cost.overlap)
      pairs_.push_back(
          {rectangle_of_[cost.overlap->above], rectangle_of_[cost.overlap->below], static_cast<std::uint64_t>(cost.overlap->distance)});
    region_rectangles_.push_back({add(time, cost.scratch, kArenaAlignment), add(time, cost.places, kArenaAlignment)});
    for (std::size_t i = region.first; i < region.last; ++i)
      kept_rectangles_.push_back(add(time, network_.stages[i].kept_bytes, kArenaAlignment));
  }

  /// Uses the planner's placement, which does not know overlapping pairs, if it is good enough.
  planner::Placement solve() const {
    const planner::Placed apart =
        planner::place(problem_, {.goal = planner::PlaceGoal::kLowest, .search = planner::SearchLimit::of_milliseconds(10)});
    if (apart.placement.height <= limit_ || pairs_.empty()) return apart.placement;
    planner::Placement overlapping = OverlapPlacement(problem_.rectangles, pairs_).lowest(limit_);
    return overlapping.height < apart.placement.height ? overlapping : apart.placement;
  }

  void read(const planner::Placement& placement) {
    for (std::size_t s = 0; s < plan_.storages.size(); ++s) plan_.storages[s].offset = placement.offsets[rectangle_of_[s]];
    for (std::size_t r = 0; r < plan_.regions.size(); ++r) {
      plan_.places[r] = placement.offsets[region_rectangles_[r].places];
      for (std::size_t i = plan_.regions[r].first; i < plan_.regions[r].last; ++i)
        plan_.scratch[i] = placement.offsets[region_rectangles_[r].scratch];
    }
    for (std::size_t i = 0; i < plan_.kept.size(); ++i) plan_.kept[i] = placement.offsets[kept_rectangles_[i]];
    plan_.arena_bytes = planner::round_up_to(placement.height, kArenaAlignment);
  }

  struct RegionRectangles {
    std::size_t scratch, places;
  };

  const Network& network_;
  RegionCosts& costs_;
  std::uint64_t limit_;
  std::vector<std::size_t> rectangle_of_;  // by storage
  std::vector<RegionRectangles> region_rectangles_;
  std::vector<std::size_t> kept_rectangles_;  // by stage
  std::vector<OverlapPair> pairs_;
  planner::PlacementProblem problem_;
  MemoryPlan plan_;
};

/// Gaps between rectangles may cost a little: then the regions must need less.
std::optional<MemoryPlan> placed_within(const Network& network, Search& search, std::uint64_t least, std::uint64_t limit) {
  constexpr int kTries = 4;
  std::uint64_t regions_limit = limit;
  for (int i = 0; i < kTries && regions_limit >= least; ++i) {
    auto regions = search.cheapest(regions_limit);
    if (!regions) return std::nullopt;
    MemoryPlan plan = Placing(network, search.costs(), std::move(*regions), regions_limit).place();
    if (plan.arena_bytes <= limit) return plan;
    const std::uint64_t excess = plan.arena_bytes - limit;
    if (regions_limit == least) return std::nullopt;
    regions_limit = regions_limit - std::min(excess, regions_limit) < least ? least : regions_limit - excess;
  }
  return std::nullopt;
}

MemoryPlan smallest(const Network& network, Search& search, std::uint64_t least) {
  MemoryPlan best = Placing(network, search.costs(), *search.cheapest(least), least).place();
  // Cuts that are not the tightest may leave fewer gaps.
  for (std::uint64_t percent = 101; least * percent / 100 < best.arena_bytes; ++percent) {
    const std::uint64_t limit = least * percent / 100;
    MemoryPlan plan = Placing(network, search.costs(), *search.cheapest(limit), limit).place();
    if (plan.arena_bytes < best.arena_bytes) best = std::move(plan);
  }
  constexpr int kTries = 8;
  for (int i = 0; i < kTries && best.arena_bytes > least + kArenaAlignment; ++i) {
    auto plan = placed_within(network, search, least, best.arena_bytes - kArenaAlignment);
    if (!plan) break;
    best = std::move(*plan);
  }
  // The same RAM may be reached with fewer multiply-adds.
  if (best.macs > network.macs)
    if (auto cheaper = placed_within(network, search, least, best.arena_bytes)) best = std::move(*cheaper);
  return best;
}

}  // namespace

Result<MemoryPlan> plan_memory(const Network& network, const MemoryLimits& limits) {
  Search search(network, limits.extra_macs);
  const Search::Least least = search.least();
  const std::uint64_t sum = search.least_in_strips(least.sum), limit = limits.arena_bytes;
  MemoryPlan plan = smallest(network, search, sum);
  if (plan.arena_bytes > limit) return fail(make_error(ErrorCode::kBudgetTooSmall, "arena", "no plan fits", plan.arena_bytes, limit));
  if (auto coarser = placed_within(network, search, sum, limit)) plan = std::move(*coarser);
  plan.lower_bound_bytes = least.tensors;
  return plan;
}

MemoryPlan plan_smallest(const Network& network, std::uint64_t extra_macs) {
  Search search(network, extra_macs);
  const Search::Least least = search.least();
  MemoryPlan plan = smallest(network, search, search.least_in_strips(least.sum));
  plan.lower_bound_bytes = least.tensors;
  return plan;
}

}  // namespace sluice::emit
