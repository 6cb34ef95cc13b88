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

#include "sluice/planner/bands/partitioned.h"

namespace sluice::planner {

/// The peak that a partition is to lower: that of all that the arena holds, or of activations and workspaces alone.
enum class Lower : std::uint8_t { kArena, kActivations };

struct PartitionRule {
  Lower lower = Lower::kArena;
  double max_overhead = 0.05;  // of the time without bands
  std::uint64_t work = 0;      // nodes looked at; see RegionSearch
};

/// One partition of a *ladder*, a list of partitions with less and less memory.
struct Rung {
  std::vector<Region> regions;
  std::uint64_t peak = 0;  // by the rule
};

namespace detail {

class RegionSearch {
 public:
  RegionSearch(const Problem& whole, const std::vector<NodeId>& order, bool keep_inputs, PartitionRule rule)
      : whole_(whole),
        order_(order),
        keep_inputs_(keep_inputs),
        rule_(rule),
        uses_(*whole.graph, whole.kernels, order),
        costs_(whole, rule.lower == Lower::kArena) {
    find_lives();
    find_signatures();
    reading_ = reading_seconds_of(weight_bytes(whole.pieces));
    whole_seconds_ = measure(*partition({})).seconds;
  }

  std::vector<Rung> climb(std::vector<Region> seeds) {
    std::vector<Rung> ladder;
    Measure measured = measure(*partition(seeds));
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
  static constexpr std::int64_t kBands[] = {2, 3, 4, 6, 8, 12, 16, 28, 56, 112};
  /// A chain holds weights of at most this much whole: larger ones come in pieces.
  static constexpr std::uint64_t kHeldWhole = 4u << 20;
  static constexpr std::uint64_t kReread[] = {kHeldWhole, 512u << 10, 64u << 10};

  struct Measure {
    std::vector<std::uint64_t> needs;  // by place, by the rule
    std::uint64_t peak = 0;            // the most of them, and for an arena what tables take beside it
    double seconds = 0;                // of computing
    double rereading = 0;              // of reading weights again
  };
  struct Choice {
    std::vector<Region> regions;
    Measure measure;
  };
  struct Life {
    std::uint64_t bytes = 0;
    std::size_t first = 0;  // crosses places (first, last]
    std::size_t last = 0;
    plan::TensorPlacement place;  // without regions
    bool takes_place_of(const Life& other) const noexcept {
      return bytes == other.bytes && place.buffer.valid() && place.buffer == other.place.buffer && place.offset == other.place.offset;
    }
  };

  const SearchParameters& allowed() const noexcept { return whole_.search; }
  bool may_go_on() noexcept { return rounds_++ < allowed().band_rounds && worked_ <= rule_.work; }
  int rounds_ = 0;

  std::unique_ptr<Partitioned> partition(const std::vector<Region>& regions) {
    worked_ += order_.size();
    return std::make_unique<Partitioned>(whole_, uses_, order_, keep_inputs_, regions, costs_);
  }

  double reading_seconds_of(std::uint64_t bytes) const {
    return whole_.shared->load_seconds(*whole_.profile, align_up(bytes, kBlockBytes));
  }

  Measure measure(const Partitioned& partitioned) {
    worked_ += order_.size() / 4;
    Measure measure;
    for (const Need& need : partitioned.needs()) measure.needs.push_back(rule_.lower == Lower::kArena ? need.all() : need.activations);
    for (const auto& [region, saved] : settled_)
      if (std::find(partitioned.regions().begin(), partitioned.regions().end(), region) != partitioned.regions().end())
        for (std::size_t i = region.first; i < region.end; ++i) measure.needs[i] -= std::min(measure.needs[i], saved);
    measure.peak = *std::max_element(measure.needs.begin(), measure.needs.end());
    if (rule_.lower == Lower::kArena) measure.peak += partitioned.table_bytes();
    measure.seconds = partitioned.seconds();
    measure.rereading = reading_seconds_of(partitioned.reread_bytes());
    return measure;
  }

  /// Computing may take longer by the limit, and so may what takes longest, computing or reading, where weights are read in each run.
  bool allowed(const Measure& m) const noexcept {
    const double limit = 1 + rule_.max_overhead;
    if (m.seconds > whole_seconds_ * limit) return false;
    return rule_.lower == Lower::kActivations || m.rereading == 0 || reading_ + m.rereading <= std::max(whole_seconds_, reading_) * limit;
  }

  /// What the search has now, if it needs less than the rung before it, or in place of that one if the regions are the same.
  void add_rung(std::vector<Rung>& ladder) const {
    if (!ladder.empty() && current_.measure.peak >= ladder.back().peak) return;
    if (!ladder.empty() && ladder.back().regions == current_.regions) ladder.pop_back();
    ladder.push_back({current_.regions, current_.measure.peak});
  }

  static std::size_t place_of_peak(const Measure& m) noexcept {
    return static_cast<std::size_t>(std::max_element(m.needs.begin(), m.needs.end()) - m.needs.begin());
  }

  // ---- what crosses from one place to the next

  void find_lives() {
    const model::Graph& graph = *whole_.graph;
    std::vector<std::size_t> last(graph.tensors.size(), 0);
    for (std::size_t i = order_.size(); i-- > 0;) {
      for (TensorId in : uses_.node(i).inputs) {
        std::size_t need = i;
        if (uses_.is_view(i))
          for (TensorId out : uses_.node(i).outputs) need = std::max(need, last[out.index()]);
        last[in.index()] = std::max(last[in.index()], need);
      }
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
      const TensorId id(t);
      const std::size_t maker = uses_.maker(id);
      const bool read = !uses_.readers(id).empty() || uses_.caller_reads(id);
      const bool passes = whole_.kernels.passing() != nullptr && whole_.kernels.passing()->passes(id);
      if (graph.tensor(id).weight.valid() || !read || passes || (maker != Uses::kNobody && uses_.is_view(maker))) continue;
      lives_.push_back({graph.tensor(id).bytes().count(), maker == Uses::kNobody ? 0 : maker + 1,
                        uses_.caller_reads(id) ? order_.size() : last[t], whole_.views.tensors[t]});
    }
    crossing_.assign(order_.size() + 1, 0);
    for (const Life& life : lives_)
      for (std::size_t i = life.first; i <= life.last; ++i) crossing_[i] += life.bytes;
  }

  /// The least that is whole in memory while a region runs: the tensors that cross either of its ends, one that takes another's place once.
  std::uint64_t beside(std::size_t first, std::size_t end) {
    const auto crosses = [](const Life& life, std::size_t at) { return life.first <= at && at <= life.last; };
    std::uint64_t bytes = 0;
    entering_.clear();
    for (const Life& life : lives_) {
      if (!crosses(life, first)) continue;
      bytes += life.bytes;
      if (life.last < end) entering_.push_back(&life);
    }
    for (const Life& life : lives_) {
      if (crosses(life, first) || !crosses(life, end)) continue;
      if (std::none_of(entering_.begin(), entering_.end(), [&](const Life* other) { return life.takes_place_of(*other); }))
        bytes += life.bytes;
    }
    return bytes;
  }

  /// Ends of regions on one side of a place: near ones, and ever lower valleys.
  std::vector<std::size_t> ends_of(std::size_t peak, bool before) const {
    std::vector<std::size_t> ends;
    std::uint64_t least = ~std::uint64_t{0};
    std::size_t valleys = 0;
    const std::size_t count = std::min(allowed().band_longest, before ? peak + 1 : order_.size() - peak);
    for (std::size_t away = 0; away < count && valleys < allowed().band_valleys; ++away) {
      const std::size_t at = before ? peak - away : peak + 1 + away;
      const bool lower = crossing_[at] < least;
      least = std::min(least, crossing_[at]);
      if (away >= allowed().band_near) valleys += lower ? 1 : 0;
      if (away < allowed().band_near || lower) ends.push_back(at);
    }
    return ends;
  }

  // ---- regions round a place

  struct Bounds {
    std::size_t first, end;
    std::uint64_t beside;
  };

  /// Round the peak; and round concatenations whose one buffer lives there, though their last parts are made later.
  std::optional<Choice> lower(std::size_t peak) {
    std::optional<Choice> best;
    lower_round(peak, peak, best);
    if (order_.size() > allowed().band_join_nodes) return best;
    for (const std::size_t join : partition(current_.regions)->joins_living_at(peak))
      if (join != peak) lower_round(join, peak, best);
    return best;
  }

  void lower_round(std::size_t place, std::size_t peak, std::optional<Choice>& best) {
    std::vector<Bounds> bounds;
    const auto worth = static_cast<std::uint64_t>(allowed().band_gain * static_cast<double>(current_.measure.peak));
    for (const std::size_t first : ends_of(place, true))
      for (const std::size_t end : ends_of(place, false))
        if (const std::uint64_t bytes = beside(first, end); (end - first >= 2 || pays_alone(first, end)) && bytes < worth)
          bounds.push_back({first, end, bytes});
    std::stable_sort(bounds.begin(), bounds.end(), [](const Bounds& a, const Bounds& b) { return a.beside < b.beside; });
    std::size_t tried = 0;
    for (const Bounds& b : bounds) {
      if (tried == allowed().band_regions || worked_ > rule_.work) break;
      if (best && b.beside >= best->measure.peak) break;
      if (try_region(b, peak, worth, best)) ++tried;
    }
  }

  /// A node that reads or makes a tensor without a buffer holds less of it in bands, even alone in a region.
  bool pays_alone(std::size_t first, std::size_t end) const {
    return end == first + 1 && whole_.kernels.passing() != nullptr && whole_.kernels.passing()->touched(order_[first]) > 0;
  }

  /// False where it cannot run in bands.
  bool try_region(const Bounds& bounds, std::size_t peak, std::uint64_t worth, std::optional<Choice>& best) {
    std::vector<Region> regions = without(current_.regions, {bounds.first, bounds.end});
    const auto place = std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.first > bounds.first; });
    const auto which = static_cast<std::size_t>(place - regions.begin());
    regions.insert(place, Region{bounds.first, bounds.end, 2, true, kHeldWhole, true});
    std::unique_ptr<Partitioned> partitioned = partition(regions);
    if (!partitioned->valid() && partitioned->works_in_place(which)) {  // a window would read what is overwritten
      regions[which].in_place = false;
      partitioned = partition(regions);
    }
    if (!partitioned->valid()) return false;
    struct Kind {
      std::uint64_t above;
      bool open = true;
      bool allowed = false;
    };
    std::vector<Kind> kinds;
    for (const std::uint64_t above : kReread)
      if (rule_.lower == Lower::kArena || above == kHeldWhole) kinds.push_back({above});
    for (const std::int64_t bands : kBands) {
      if (bands > partitioned->most_rows(which)) break;
      partitioned->set_bands(which, bands);
      if (!partitioned->valid()) break;
      for (Kind& kind : kinds) {
        const bool same = !partitioned->set_reread(which, kind.above) && kind.above != kHeldWhole;
        if (same || !kind.open) continue;
        Measure m = measure(*partitioned);
        if (!allowed(m)) {
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

  static std::vector<Region> without(const std::vector<Region>& regions, const Region& place) {
    std::vector<Region> left;
    for (const Region& region : regions)
      if (!region.meets(place)) left.push_back(region);
    return left;
  }

  void keep_better(const Partitioned& partitioned, Measure m, std::optional<Choice>& best) const {
    const auto cost = [](const Measure& x) { return x.seconds + x.rereading; };
    const bool lower = !best || static_cast<double>(m.peak) < allowed().band_gain * static_cast<double>(best->measure.peak);
    const bool alike = best && static_cast<double>(m.peak) * allowed().band_gain <= static_cast<double>(best->measure.peak);
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
    const std::unique_ptr<Partitioned> finer = partition(current_.regions);
    const double worth = allowed().band_gain * static_cast<double>(current_.measure.peak);
    for (const std::int64_t bands : kBands) {
      if (bands <= at->bands) continue;
      if (bands > finer->most_rows(which)) break;
      finer->set_bands(which, bands);
      if (!finer->valid()) break;
      Measure m = measure(*finer);
      if (!allowed(m)) break;
      if (m.peak <= current_.measure.peak && static_cast<double>(m.needs[peak]) < worth) keep_better(*finer, std::move(m), best);
      if (best && best->measure.needs[peak] < best->measure.peak) break;  // another place needs more
    }
    return best;
  }

  /// Without the region at a place, if that needs less.
  std::optional<Choice> dissolve(std::size_t peak) {
    std::vector<Region> regions = without(current_.regions, {peak, peak + 1});
    if (regions.size() == current_.regions.size()) return std::nullopt;
    const auto parts = partition(regions);
    if (!parts->valid()) return std::nullopt;  // what shares bytes again may have no step in another region
    Measure m = measure(*parts);
    if (static_cast<double>(m.peak) >= allowed().band_gain * static_cast<double>(current_.measure.peak) || !allowed(m)) return std::nullopt;
    return Choice{std::move(regions), std::move(m)};
  }

  /// The region at a place needs less than the search counts once its rows are placed one by one: that counts from here on, so that other
  /// peaks are lowered, too. False, and nothing changes: it counts already, or saves too little.
  bool settle(std::size_t peak) {
    const auto at = std::find_if(current_.regions.begin(), current_.regions.end(),
                                 [&](const Region& r) { return r.rings && r.first <= peak && peak < r.end; });
    if (at == current_.regions.end()) return false;
    if (std::any_of(settled_.begin(), settled_.end(), [&](const auto& known) { return known.first == *at; })) return false;
    const std::unique_ptr<Partitioned> parts = partition(current_.regions);
    const std::uint64_t saved = parts->saved_by_rows(static_cast<std::size_t>(at - current_.regions.begin()));
    if (static_cast<double>(saved) < (1 - allowed().band_gain) * static_cast<double>(current_.measure.peak)) return false;
    settled_.push_back({*at, saved});
    current_.measure = measure(*parts);
    return true;
  }

  // ---- the same nodes elsewhere

  void find_signatures() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const model::Node& node = uses_.node(i);
      std::uint64_t hash = static_cast<std::uint64_t>(node.op) * 0x9e3779b97f4a7c15u;
      const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0xc2b2ae3d27d4eb4fu + (hash >> 29); };
      for (TensorId out : node.outputs)
        for (int axis = 0; axis < whole_.graph->tensor(out).shape.rank(); ++axis)
          mix(static_cast<std::uint64_t>(whole_.graph->tensor(out).shape[axis]));
      for (WeightId w : node.weights) mix(whole_.graph->weight(w).bytes.count());
      mix(node.inputs.size());
      signatures_.push_back(hash);
    }
  }

  /// The region round `peak` again wherever the same nodes follow each other and need as much, if all of these together are allowed.
  Choice everywhere(Choice choice, std::size_t peak) {
    const auto of_peak =
        std::find_if(choice.regions.begin(), choice.regions.end(), [&](const Region& r) { return r.first <= peak && peak < r.end; });
    if (of_peak == choice.regions.end()) return choice;
    const Region pattern = *of_peak;
    const std::size_t length = pattern.end - pattern.first;
    std::vector<Region> regions = choice.regions;
    for (std::size_t first = 0; first + length <= order_.size(); ++first) {
      if (!std::equal(signatures_.begin() + static_cast<std::ptrdiff_t>(first),
                      signatures_.begin() + static_cast<std::ptrdiff_t>(first + length),
                      signatures_.begin() + static_cast<std::ptrdiff_t>(pattern.first)))
        continue;
      const std::uint64_t need = current_.measure.needs[first + (peak - pattern.first)];
      if (static_cast<double>(need) < allowed().band_gain * static_cast<double>(current_.measure.peak)) continue;
      Region copy = pattern;
      copy.first = first;
      copy.end = first + length;
      const bool free = std::none_of(regions.begin(), regions.end(), [&](const Region& r) {
        return r.rings && r.meets(copy) && (r.first != copy.first || r.end != copy.end);  // the same nodes may be cut finer
      });
      if (!free) continue;
      regions = without(regions, copy);
      regions.insert(std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.first > copy.first; }), copy);
    }
    if (regions == choice.regions) return choice;
    const std::unique_ptr<Partitioned> all = partition(regions);
    if (!all->valid()) return choice;
    Measure m = measure(*all);
    if (!allowed(m) || m.peak > choice.measure.peak) return choice;
    return {std::move(regions), std::move(m)};
  }

  const Problem& whole_;
  const std::vector<NodeId>& order_;
  const bool keep_inputs_;
  const PartitionRule rule_;
  const Uses uses_;
  StepCosts costs_;
  std::vector<Life> lives_;
  std::vector<const Life*> entering_;    // kept for its memory
  std::vector<std::uint64_t> crossing_;  // by place: bytes of what is made before it and read there or after it
  std::vector<std::uint64_t> signatures_;
  double reading_ = 0;        // of every weight, once
  double whole_seconds_ = 0;  // of computing, without bands
  std::uint64_t worked_ = 0;
  std::vector<std::pair<Region, std::uint64_t>> settled_;  // and what placing their rows saves
  Choice current_;
};

}  // namespace detail

/// `whole`: of `order`, without chains. `seeds`: regions to begin with, which may go.
inline std::vector<Rung> partition_ladder(const Problem& whole, const std::vector<NodeId>& order, bool keep_inputs,
                                          std::vector<Region> seeds, const PartitionRule& rule) {
  return detail::RegionSearch(whole, order, keep_inputs, rule).climb(std::move(seeds));
}

}  // namespace sluice::planner
