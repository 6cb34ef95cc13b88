// Pass: chooses the regions that run in bands to save memory. From the bottleneck outward:
//
//     bytes |         ####                    the place that needs most; round it the places where little crosses from what is made
//           |   ####  ####  ##                before to what is read after: regions begin and end there
//           | valley|       |valley
//           +------------------------ order
//
// Of all such regions, each in a few numbers of bands, the one that lowers the peak most is taken, the cheapest of those that lower it
// alike; regions in its way go. Where the same nodes come again, as in a stack of layers, all of them are cut alike at once. Where no
// other region lowers it, the one that is there is cut into more bands. Then the next bottleneck, until one cannot be lowered, the
// overhead limit is reached, or the search's work is done. Each stop is a rung of a ladder: a
// budget takes the first that fits, so that nothing is cut further than it must.
// Invariants: a rung's peak is below that of all before it; its predicted overhead is within the limit; the same request gives the same
// ladder on every machine (work is counted, not timed).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/bands/ladder.h"
#include "sluice/planner/bands/region_measures.h"
#include "sluice/planner/bands/region_mix.h"

namespace sluice::planner {

namespace detail {

class RegionSearch {
 public:
  /// `noted`: where regions go that were measured and are allowed; may be null.
  explicit RegionSearch(RegionMeasures& measures, RegionMix* noted = nullptr) : on_(measures), noted_(noted) {}

  Ladder climb(std::vector<Region> seeds) {
    Ladder ladder;
    Measure measured = on_.measure(*on_.partition(seeds));
    current_ = {std::move(seeds), std::move(measured)};
    while (may_go_on()) {
      const std::size_t peak = place_of_peak(current_.measure);
      std::optional<Choice> best = lower(peak);
      if (!best) best = cut_finer(peak);
      if (!best) best = dissolve(peak);
      if (best) {
        best = everywhere(std::move(*best), peak);
        current_ = {std::move(best->regions), std::move(best->measure)};
      } else if (!settle(peak)) {
        break;
      }
      add_rung(ladder);
    }
    return ladder;
  }

 private:
  static constexpr std::uint64_t kHeldWhole = RegionMeasures::kHeldWhole;
  static constexpr std::uint64_t kReread[] = {kHeldWhole, 512u << 10, 64u << 10};

  using Measure = RegionMeasures::Measure;
  struct Choice {
    std::vector<Region> regions;
    Measure measure;
  };
  bool may_go_on() noexcept { return rounds_++ < rules().band_rounds && !on_.worked_enough(); }
  const SearchParameters& rules() const noexcept { return on_.searching(); }

  /// What the search has now, if it needs less than the rung before it, or in place of that one if the regions are the same.
  void add_rung(Ladder& ladder) const {
    if (noted_ != nullptr) noted_->keep(current_.regions, current_.measure);
    if (current_.measure.peak >= ladder.lowest()) return;
    if (!ladder.empty() && ladder.back().regions == current_.regions)
      ladder.lower_last(current_.measure.peak);
    else
      ladder.push_back({current_.regions, current_.measure.peak});
  }

  static std::size_t place_of_peak(const Measure& m) noexcept {
    return static_cast<std::size_t>(std::max_element(m.needs.begin(), m.needs.end()) - m.needs.begin());
  }

  // ---- regions round a place

  /// Round the peak; and round concatenations whose one buffer lives there, though their last parts are made later. For that buffer to become a
  /// ring a short region is enough, which leaves the steps at the peak as they are.
  std::optional<Choice> lower(std::size_t peak) {
    std::optional<Choice> best;
    lower_round(peak, peak, best);
    if (on_.size() > rules().band_join_nodes) return best;
    for (const std::size_t join : on_.partition(current_.regions)->joins_living_at(peak))
      if (join != peak) lower_round(join, peak, best, RegionMeasures::First::kShortest);
    return best;
  }

  void lower_round(std::size_t place, std::size_t peak, std::optional<Choice>& best,
                   RegionMeasures::First order = RegionMeasures::First::kLeastBeside) {
    const auto worth = static_cast<std::uint64_t>(rules().band_gain * static_cast<double>(current_.measure.peak));
    std::size_t tried = 0;
    for (const RegionMeasures::Bounds& b : on_.bounds_round(place, worth, order)) {
      if (tried == rules().band_regions || on_.worked_enough()) break;
      if (best && b.beside >= best->measure.peak) {
        if (order == RegionMeasures::First::kLeastBeside) break;
        continue;
      }
      if (try_region(b, peak, worth, best)) ++tried;
    }
  }

  /// False where it cannot run in bands.
  bool try_region(const RegionMeasures::Bounds& bounds, std::size_t peak, std::uint64_t worth, std::optional<Choice>& best) {
    std::vector<Region> regions = on_.without(current_.regions, {bounds.first, bounds.end});
    const auto place = std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.first > bounds.first; });
    const auto which = static_cast<std::size_t>(place - regions.begin());
    regions.insert(place, Region{bounds.first, bounds.end, 2, true, kHeldWhole});
    const std::unique_ptr<Partitioned> partitioned = on_.partition_in_place(std::move(regions), which);
    if (!partitioned) return false;
    struct Kind {
      std::uint64_t above;
      bool open = true;
      bool allowed = false;
    };
    std::vector<Kind> kinds;
    for (const std::uint64_t above : kReread)
      if (on_.rule().lower == Lower::kArena || above == kHeldWhole) kinds.push_back({above});
    for (const std::int64_t bands : RegionMeasures::kBands) {
      if (bands > partitioned->most_rows(which)) break;
      partitioned->set_bands(which, bands);
      if (!partitioned->valid()) break;
      for (Kind& kind : kinds) {
        const bool same = !partitioned->set_reread(which, kind.above) && kind.above != kHeldWhole;
        if (same || !kind.open) continue;
        Measure m = on_.measure(*partitioned);
        if (noted_ != nullptr) noted_->note(*partitioned, which, m);
        if (!on_.allowed(m)) {
          kind.open = !kind.allowed;  // bands that fit a cache cost less than larger ones, until the number of steps costs more
          continue;
        }
        kind.allowed = true;
        const std::uint64_t here = *std::max_element(m.needs.begin() + static_cast<std::ptrdiff_t>(bounds.first),
                                                     m.needs.begin() + static_cast<std::ptrdiff_t>(bounds.end));
        kind.open = here >= *std::max_element(m.needs.begin(), m.needs.end());
        if (m.peak < worth || (m.needs[peak] < worth && m.peak <= current_.measure.peak)) keep_better(*partitioned, std::move(m), best);
      }
      if (std::none_of(kinds.begin(), kinds.end(), [](const Kind& kind) { return kind.open; })) break;
    }
    return true;
  }

  void keep_better(const Partitioned& partitioned, Measure m, std::optional<Choice>& best) const {
    const auto cost = [](const Measure& x) { return x.seconds + x.rereading; };
    const bool lower = !best || static_cast<double>(m.peak) < rules().band_gain * static_cast<double>(best->measure.peak);
    const bool alike = best && static_cast<double>(m.peak) * rules().band_gain <= static_cast<double>(best->measure.peak);
    if (lower || (alike && cost(m) < cost(best->measure))) best = Choice{partitioned.regions(), std::move(m)};
  }

  /// The region at this position with more bands. In every try, regions with less memory beside them may have been taken before it, without
  /// use.
  std::optional<Choice> cut_finer(std::size_t peak) {
    std::optional<Choice> best;
    const Region place{peak, peak + 1};
    const auto at = std::find_if(current_.regions.begin(), current_.regions.end(), [&](const Region& r) { return r.meets(place); });
    if (at == current_.regions.end() || !at->rings) return best;
    const auto which = static_cast<std::size_t>(at - current_.regions.begin());
    const std::unique_ptr<Partitioned> finer = on_.partition(current_.regions);
    const double worth = rules().band_gain * static_cast<double>(current_.measure.peak);
    for (const std::int64_t bands : RegionMeasures::kBands) {
      if (bands <= at->bands) continue;
      if (bands > finer->most_rows(which)) break;
      finer->set_bands(which, bands);
      if (!finer->valid()) break;
      Measure m = on_.measure(*finer);
      if (!on_.allowed(m)) break;
      if (m.peak <= current_.measure.peak && static_cast<double>(m.needs[peak]) < worth) keep_better(*finer, std::move(m), best);
      if (best && best->measure.needs[peak] < best->measure.peak) break;  // another place needs more
    }
    return best;
  }

  /// Without the region at a place, if that needs less.
  std::optional<Choice> dissolve(std::size_t peak) {
    std::vector<Region> regions = on_.without(current_.regions, {peak, peak + 1});
    if (regions.size() == current_.regions.size()) return std::nullopt;
    const auto parts = on_.partition(regions);
    if (!parts->valid()) return std::nullopt;  // what shares bytes again may have no step in another region
    Measure m = on_.measure(*parts);
    if (static_cast<double>(m.peak) >= rules().band_gain * static_cast<double>(current_.measure.peak) || !on_.allowed(m))
      return std::nullopt;
    return Choice{std::move(regions), std::move(m)};
  }

  /// The region at a place needs less than the search counts once its rows are placed one by one: that counts from here on, so that other
  /// peaks are lowered, too. False, and nothing changes: it counts already, or saves too little.
  bool settle(std::size_t peak) {
    const auto at = std::find_if(current_.regions.begin(), current_.regions.end(),
                                 [&](const Region& r) { return r.rings && r.first <= peak && peak < r.end; });
    if (at == current_.regions.end()) return false;
    if (on_.settled(*at)) return false;
    const std::unique_ptr<Partitioned> parts = on_.partition(current_.regions);
    const std::uint64_t saved = parts->saved_by_rows(static_cast<std::size_t>(at - current_.regions.begin()));
    if (static_cast<double>(saved) < (1 - rules().band_gain) * static_cast<double>(current_.measure.peak)) return false;
    on_.settle(*at, saved);
    current_.measure = on_.measure(*parts);
    return true;
  }

  // ---- the same nodes elsewhere

  /// The region round `peak` again wherever the same nodes follow each other and need as much, if all of these together are allowed.
  Choice everywhere(Choice choice, std::size_t peak) {
    const auto of_peak =
        std::find_if(choice.regions.begin(), choice.regions.end(), [&](const Region& r) { return r.first <= peak && peak < r.end; });
    if (of_peak == choice.regions.end()) return choice;
    const Region pattern = *of_peak;
    const std::size_t length = pattern.end - pattern.first;
    std::vector<Region> regions = choice.regions;
    for (std::size_t first = 0; first + length <= on_.size(); ++first) {
      if (!on_.alike(pattern.first, first, length)) continue;
      const std::uint64_t need = current_.measure.needs[first + (peak - pattern.first)];
      if (static_cast<double>(need) < rules().band_gain * static_cast<double>(current_.measure.peak)) continue;
      Region copy = pattern;
      copy.first = first;
      copy.end = first + length;
      const bool free = std::none_of(regions.begin(), regions.end(), [&](const Region& r) {
        return r.rings && r.meets(copy) && (r.first != copy.first || r.end != copy.end);  // the same nodes may be cut finer
      });
      if (!free) continue;
      regions = on_.without(regions, copy);
      regions.insert(std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.first > copy.first; }), copy);
    }
    if (regions == choice.regions) return choice;
    const std::unique_ptr<Partitioned> all = on_.partition(regions);
    if (!all->valid()) return choice;
    Measure m = on_.measure(*all);
    if (!on_.allowed(m) || m.peak > choice.measure.peak) return choice;
    return {std::move(regions), std::move(m)};
  }

  RegionMeasures& on_;
  RegionMix* const noted_;
  int rounds_ = 0;
  Choice current_;
};

}  // namespace detail

/// `whole`: of `order`, without chains. `seeds`: regions to begin with, which may go. It begins without any, too, and keeps what ends lower: those
/// that exist already count in what regions may cost. The rule's work is for both, half of it for each, and what the first leaves for the second.
inline Ladder partition_ladder(const Problem& whole, const std::vector<NodeId>& order, bool keep_inputs, std::vector<Region> seeds,
                               const PartitionRule& rule) {
  detail::RegionMeasures measures(whole, order, keep_inputs, rule);
  if (!seeds.empty()) measures.allow(rule.work / 2);
  Ladder bare = detail::RegionSearch(measures).climb({});
  if (seeds.empty()) return bare;
  measures.allow(rule.work - std::min(rule.work, measures.worked()));
  measures.begin();
  Ladder ladder = detail::RegionSearch(measures).climb(std::move(seeds));
  return bare.lowest() < ladder.lowest() ? bare : ladder;
}

/// The same for the least activations. Limits of the overhead below the rule's are tried before it, always the same ones, and nothing that was
/// found is forgotten: a larger limit never ends higher.
inline Ladder least_ladder(const Problem& whole, const std::vector<NodeId>& order, bool keep_inputs, const std::vector<Region>& seeds,
                           const PartitionRule& rule) {
  constexpr double kLimits[] = {0.05, 0.2, 1, 4};
  detail::RegionMeasures measures(whole, order, keep_inputs, rule);
  detail::RegionMix mix(measures);
  double former = 0;
  for (const double limit : kLimits) {
    measures.limit(limit);
    measures.begin();
    detail::RegionSearch(measures, &mix).climb({});
    measures.begin();
    if (!seeds.empty()) detail::RegionSearch(measures, &mix).climb(seeds);
    measures.begin();
    mix.lower(limit, true);
    measures.begin();
    for (const double part : {0.0, 0.2, 0.4, 0.6, 0.8}) mix.lower(former + part * (limit - former), false);
    former = limit;
    if (limit >= rule.max_overhead) break;
  }
  return mix.ladder(rule.max_overhead);
}

}  // namespace sluice::planner
