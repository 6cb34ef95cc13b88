// Pass: puts regions together that were measured one by one, so that the peak is the lowest within a limit of overhead.
//
//     pool      every region that any search has measured       planner/bands/region_pool.h
//     mix       the cheapest of them below some peak, measured as a whole: what it needs more than was said is corrected in the pool
//     wider     where nothing in the pool is lower, regions are measured round the place that stands in the way: the one that no region
//               leads over, or what costs most
//
// The search that goes from bottleneck to bottleneck (planner/bands/memory_partition.h) keeps what it took first; this exchanges it.
// Invariants: what is kept was measured as a whole, and nothing that is kept is lost. Graphs of more nodes than SearchParameters::band_join_nodes
// have no mix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/bands/ladder.h"
#include "sluice/planner/bands/region_measures.h"
#include "sluice/planner/bands/region_pool.h"

namespace sluice::planner::detail {

class RegionMix {
 public:
  using Measure = RegionMeasures::Measure;

  explicit RegionMix(RegionMeasures& measures) : on_(measures), pool_(measures.whole().needs) {}

  /// A region that was measured among others.
  void note(const Partitioned& partitioned, std::size_t which, const Measure& m) {
    const Region& region = partitioned.regions()[which];
    if (too_large() || pool_.has(region)) return;
    const std::uint64_t need = most_of(m, region), beside = on_.beside(region.first, region.end);
    const std::size_t length = region.end - region.first;
    const std::size_t kind = pool_.add_kind({region, on_.extra_seconds(partitioned, which), on_.settled(region), on_.saved(region)});
    for (std::size_t first = 0; first + length <= on_.size(); ++first)
      if (on_.alike(region.first, first, length))
        pool_.add_piece({kind, first, need - std::min(need, beside) + on_.beside(first, first + length)});
  }

  /// A whole partition that was measured: kept unless another one is as low in as little time.
  void keep(const std::vector<Region>& regions, const Measure& m) {
    const auto no_worse = [](const auto& a, const auto& b) { return a.peak <= b.peak && a.seconds <= b.seconds; };
    if (std::any_of(found_.begin(), found_.end(), [&](const Found& found) { return no_worse(found, m); })) return;
    std::erase_if(found_, [&](const Found& found) { return no_worse(m, found); });
    found_.push_back({kinds_.pack(regions), m.peak, m.seconds});
  }

  /// As low as it goes within a limit of overhead and the work that `measures` has. `wider`: with regions that are not in the pool yet.
  void lower(double max_overhead, bool wider) {
    if (too_large()) return;
    const double extra = on_.whole().seconds * max_overhead;
    for (int round = 0; round < kMostRounds && !on_.worked_enough(); ++round) {
      on_.work(pool_.looked_at() / kPiecesToNode);
      const std::uint64_t peak = lowest(extra);
      if (const std::optional<std::uint64_t> most = pool_.least(extra, peak)) {
        try_way(pool_.cheapest(*most));
      } else if (!wider || !widen_below(peak)) {
        return;
      }
    }
  }

  /// What was found within a limit, each lower than the one before.
  Ladder ladder(double max_overhead) const {
    const double limit = on_.whole().seconds * (1 + max_overhead);
    std::vector<const Found*> within;
    for (const Found& found : found_)
      if (found.seconds <= limit && found.peak < on_.whole().peak) within.push_back(&found);
    sluice::stable_sort(within.begin(), within.end(),
                        [](const Found* a, const Found* b) { return a->peak != b->peak ? a->peak > b->peak : a->seconds > b->seconds; });
    Ladder ladder;
    for (std::size_t i = 0; i < within.size(); ++i)
      if (i + 1 == within.size() || within[i + 1]->peak < within[i]->peak)  // of two alike the later one, which takes less time
        ladder.push_back({kinds_.unpack(within[i]->regions), within[i]->peak});
    return ladder;
  }

 private:
  static constexpr int kMostRounds = 1000;

  bool too_large() const noexcept { return on_.size() > on_.searching().band_join_nodes; }

  struct Found {
    std::vector<RegionKinds::Packed> regions;
    std::uint64_t peak;
    double seconds;
  };

  static std::uint64_t most_of(const Measure& m, const Region& region) {
    return *std::max_element(m.needs.begin() + static_cast<std::ptrdiff_t>(region.first),
                             m.needs.begin() + static_cast<std::ptrdiff_t>(region.end));
  }

  std::uint64_t lowest(double extra) const noexcept {
    std::uint64_t peak = on_.whole().peak;
    for (const Found& found : found_)
      if (found.seconds <= on_.whole().seconds + extra) peak = std::min(peak, found.peak);
    return peak;
  }

  /// Measures it as a whole and corrects what the pool says of it.
  void try_way(const RegionPool::Way& way) {
    const std::vector<Region> regions = pool_.regions(way);
    const std::unique_ptr<Partitioned> parts = on_.partition(regions);
    if (!parts->valid()) {  // what shares bytes with a tensor of another region
      for (const auto& at : way.pieces) pool_.piece(at).need = kNever;
      return;
    }
    for (std::size_t r = 0; r < regions.size(); ++r) {
      const RegionPool::Kind& kind = pool_.kind(pool_.piece(way.pieces[r]).kind);
      if (kind.saved > 0 && !on_.settled(regions[r])) on_.settle(regions[r], kind.saved);
    }
    const Measure m = on_.measure(*parts);
    keep(regions, m);
    std::vector<bool> inside(on_.size(), false);
    for (std::size_t r = 0; r < regions.size(); ++r) {
      RegionPool::Piece& piece = pool_.piece(way.pieces[r]);
      piece.need = std::max(piece.need, most_of(m, regions[r]));
      std::fill(inside.begin() + static_cast<std::ptrdiff_t>(regions[r].first),
                inside.begin() + static_cast<std::ptrdiff_t>(regions[r].end), true);
    }
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (!inside[i]) pool_.correct_whole(i, m.needs[i]);
    const double more = m.seconds - on_.whole().seconds - way.extra;  // rounding, or a copy that only others make necessary
    if (more > 0 && !way.pieces.empty()) pool_.kind(pool_.piece(way.pieces.front()).kind).extra += more;
  }

  /// Measures more regions, because nothing leads below `peak`. False: there are none.
  bool widen_below(std::uint64_t peak) {
    const auto part = [&](double share) { return static_cast<std::uint64_t>(share * static_cast<double>(peak)); };
    for (const double share : {on_.searching().band_gain, 0.9, 0.8, 0.7})
      if (widen(part(share))) return true;
    return widen_anywhere(part(on_.searching().band_gain));
  }

  /// Round each place that needs more, in the order of what they need.
  bool widen_anywhere(std::uint64_t target) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < on_.size(); ++i)
      if (pool_.whole(i) > target) places.push_back(i);
    sluice::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return pool_.whole(a) > pool_.whole(b); });
    return std::any_of(places.begin(), places.end(), [&](std::size_t place) { return widen_round(place, target); });
  }

  bool widen(std::uint64_t target) {
    const RegionPool::Way way = pool_.cheapest(target);
    if (way.stuck != RegionPool::kNone) return widen_round(way.stuck, target);
    std::vector<RegionPool::Piece> dearest;
    for (const auto& at : way.pieces) dearest.push_back(pool_.piece(at));
    sluice::stable_sort(dearest.begin(), dearest.end(), [&](const RegionPool::Piece& a, const RegionPool::Piece& b) {
      return pool_.kind(a.kind).extra > pool_.kind(b.kind).extra;
    });
    return std::any_of(dearest.begin(), dearest.end(), [&](const RegionPool::Piece& piece) {
      const Region region = pool_.region(piece);
      std::size_t place = region.first;
      for (std::size_t i = region.first; i < region.end; ++i)
        if (pool_.whole(i) > pool_.whole(place)) place = i;
      return widen_round(place, target);
    });
  }

  bool widen_round(std::size_t place, std::uint64_t target) {
    if (settle_round(place, target)) return true;
    std::size_t tried = 0;
    for (const RegionMeasures::Bounds& b : on_.bounds_round(place, target)) {
      if (tried == on_.searching().band_regions || on_.worked_enough()) break;
      if (!tried_.insert({on_.pattern(b.first, b.end), b.beside}).second) continue;
      if (measure_alone(b.first, b.end)) ++tried;
    }
    return tried > 0;
  }

  /// Regions over a place that need little more than `target`, until one needs no more once its rows are placed one by one.
  bool settle_round(std::size_t place, std::uint64_t target) {
    constexpr std::size_t kMost = 4;
    std::vector<RegionPool::Piece> near;
    for (std::size_t first = place + 1; first-- > 0;)
      for (const RegionPool::Piece& piece : pool_.pieces_at(first))
        if (first + pool_.length(piece) > place && piece.need > target && piece.need / 3 * 2 <= target && !pool_.kind(piece.kind).settled)
          near.push_back(piece);
    sluice::stable_sort(near.begin(), near.end(), [](const RegionPool::Piece& a, const RegionPool::Piece& b) { return a.need < b.need; });
    for (std::size_t i = 0; i < std::min(near.size(), kMost); ++i) {
      const std::unique_ptr<Partitioned> alone = on_.partition({pool_.region(near[i])});
      on_.work(on_.size() * 8 + (alone->valid() ? alone->steps_of(0) * 4 : 0));
      const std::uint64_t saved = alone->valid() ? alone->saved_by_rows(0) : 0;
      pool_.settle(near[i].kind, saved);
      if (near[i].need - std::min(near[i].need, saved) <= target) return true;
    }
    return !near.empty();
  }

  /// False where it cannot run in bands.
  bool measure_alone(std::size_t first, std::size_t end) {
    const std::unique_ptr<Partitioned> alone = on_.partition_in_place({Region{first, end, 2, true, RegionMeasures::kHeldWhole}}, 0);
    if (!alone) return false;
    bool any = false;
    for (const std::int64_t bands : RegionMeasures::kBands) {
      if (bands > alone->most_rows(0)) break;
      alone->set_bands(0, bands);
      if (!alone->valid()) break;
      const Measure m = on_.measure(*alone);
      on_.work(alone->steps_of(0) / kStepsToNode);
      note(*alone, 0, m);
      const bool dear = m.seconds > on_.whole().seconds * (1 + kDear + on_.rule().max_overhead);
      if (any && dear) break;
      any = any || !dear;
    }
    return true;
  }

  static constexpr std::uint64_t kStepsToNode = 4;    // that take as long as a node to look at
  static constexpr std::uint64_t kPiecesToNode = 64;  // of the pool
  static constexpr double kDear = 0.1;                // what others may save
  static constexpr std::uint64_t kNever = std::uint64_t{1} << 62;

  RegionMeasures& on_;
  RegionPool pool_;
  RegionKinds kinds_;
  std::vector<Found> found_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> tried_;  // pattern, bytes beside it
};

}  // namespace sluice::planner::detail
