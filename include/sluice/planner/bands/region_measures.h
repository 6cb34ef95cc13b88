// What regions in bands are measured by: what crosses the places of an order, which of them are alike, what a partition needs and takes.
// Both ways of choosing regions measure here (planner/bands/memory_partition.h, planner/bands/region_mix.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/bands/partitioned.h"

namespace sluice::planner {

/// The peak that a partition is to lower: that of all that the arena holds, or of activations and workspaces alone.
enum class Lower : std::uint8_t { kArena, kActivations };

struct PartitionRule {
  Lower lower = Lower::kArena;
  double max_overhead = 0.05;  // of the time without bands
  std::uint64_t work = 0;      // nodes looked at; see RegionSearch
};

namespace detail {

class RegionMeasures {
 public:
  static constexpr std::int64_t kBands[] = {2, 3, 4, 6, 8, 12, 16, 28, 32, 56, 64, 112};
  /// A chain holds weights of at most this much whole: larger ones come in pieces.
  static constexpr std::uint64_t kHeldWhole = 4u << 20;

  struct Measure {
    std::vector<std::uint64_t> needs;  // by place, by the rule
    std::uint64_t peak = 0;            // the most of them, and for an arena what tables take beside it
    double seconds = 0;                // of computing
    double rereading = 0;              // of reading weights again
  };

  RegionMeasures(const Problem& whole, const std::vector<NodeId>& order, bool keep_inputs, PartitionRule rule)
      : whole_(whole),
        order_(order),
        keep_inputs_(keep_inputs),
        rule_(rule),
        uses_(*whole.graph, whole.kernels, order),
        costs_(whole, rule.lower == Lower::kArena) {
    find_lives();
    find_signatures();
    reading_ = reading_seconds_of(weight_bytes(whole.pieces));
    const std::unique_ptr<Partitioned> uncut = partition({});
    whole_seconds_ = uncut->whole_seconds();
    whole_measure_ = measure(*uncut);
  }

  const Problem& problem() const noexcept { return whole_; }
  const SearchParameters& searching() const noexcept { return whole_.search; }
  const PartitionRule& rule() const noexcept { return rule_; }
  std::size_t size() const noexcept { return order_.size(); }
  NodeId node(std::size_t place) const noexcept { return order_[place]; }
  /// Without regions.
  const Measure& whole() const noexcept { return whole_measure_; }

  /// Another limit, for what is looked for from here on.
  void limit(double max_overhead) noexcept { rule_.max_overhead = max_overhead; }
  /// Nodes that may be looked at.
  void allow(std::uint64_t work) noexcept { rule_.work = work; }
  /// Work is counted from here on, and nothing is settled.
  void begin() noexcept {
    worked_ = 0;
    settled_.clear();
  }
  void work(std::uint64_t nodes) noexcept { worked_ += nodes; }
  std::uint64_t worked() const noexcept { return worked_; }
  bool worked_enough() const noexcept { return worked_ > rule_.work; }

  std::unique_ptr<Partitioned> partition(const std::vector<Region>& regions) {
    worked_ += order_.size();
    return std::make_unique<Partitioned>(whole_, uses_, order_, keep_inputs_, regions, costs_);
  }

  /// The same with a region in place where its steps allow that; null where region `which` cannot run in bands.
  std::unique_ptr<Partitioned> partition_in_place(std::vector<Region> regions, std::size_t which) {
    regions[which].in_place = true;
    std::unique_ptr<Partitioned> parts = partition(regions);
    if (!parts->valid() && parts->works_in_place(which)) {  // a window would read what is overwritten
      regions[which].in_place = false;
      parts = partition(regions);
    }
    if (!parts->valid()) parts.reset();
    return parts;
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
    if (m.seconds > whole_measure_.seconds * limit) return false;
    return rule_.lower == Lower::kActivations || m.rereading == 0 ||
           reading_ + m.rereading <= std::max(whole_measure_.seconds, reading_) * limit;
  }

  /// Seconds of a region beyond those of its nodes as they are.
  double extra_seconds(const Partitioned& partitioned, std::size_t which) const {
    const Region& region = partitioned.regions()[which];
    double seconds = partitioned.seconds_of(which);
    for (std::size_t i = region.first; i < region.end; ++i) seconds -= whole_seconds_[i];
    return seconds;
  }

  /// Where its rows are placed one by one, a region needs so much less: that counts from here on.
  void settle(const Region& region, std::uint64_t saved) { settled_.push_back({region, saved}); }
  bool settled(const Region& region) const { return saved(region) > 0; }
  /// What it saves that way, where that counts.
  std::uint64_t saved(const Region& region) const {
    const auto known = std::find_if(settled_.begin(), settled_.end(), [&](const auto& one) { return one.first == region; });
    return known == settled_.end() ? 0 : known->second;
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
    const std::size_t count = std::min(searching().band_longest, before ? peak + 1 : order_.size() - peak);
    for (std::size_t away = 0; away < count && valleys < searching().band_valleys; ++away) {
      const std::size_t at = before ? peak - away : peak + 1 + away;
      const bool lower = crossing_[at] < least;
      least = std::min(least, crossing_[at]);
      if (away >= searching().band_near) valleys += lower ? 1 : 0;
      if (away < searching().band_near || lower) ends.push_back(at);
    }
    return ends;
  }

  struct Bounds {
    std::size_t first, end;
    std::uint64_t beside;
  };
  enum class First { kLeastBeside, kShortest };
  /// Regions round a place with less than `worth` beside them, in that order.
  std::vector<Bounds> bounds_round(std::size_t place, std::uint64_t worth, First order = First::kLeastBeside) {
    std::vector<Bounds> bounds;
    for (const std::size_t first : ends_of(place, true))
      for (const std::size_t end : ends_of(place, false))
        if (const std::uint64_t bytes = beside(first, end); (end - first >= 2 || pays_alone(first, end)) && bytes < worth)
          bounds.push_back({first, end, bytes});
    sluice::stable_sort(bounds.begin(), bounds.end(), [&](const Bounds& a, const Bounds& b) {
      if (order == First::kShortest && a.end - a.first != b.end - b.first) return a.end - a.first < b.end - b.first;
      return a.beside < b.beside;
    });
    return bounds;
  }

  /// Do as many nodes from `a` on look like those from `b` on?
  bool alike(std::size_t a, std::size_t b, std::size_t length) const noexcept {
    const auto at = [&](std::size_t place) { return signatures_.begin() + static_cast<std::ptrdiff_t>(place); };
    return std::max(a, b) + length <= size() && std::equal(at(a), at(a + length), at(b));
  }

  /// The same for nodes that are alike.
  std::uint64_t pattern(std::size_t first, std::size_t end) const noexcept {
    std::uint64_t hash = end - first;
    for (std::size_t i = first; i < end; ++i) hash = (hash ^ signatures_[i]) * 0x9e3779b97f4a7c15u + (hash >> 31);
    return hash;
  }

  static std::vector<Region> without(const std::vector<Region>& regions, const Region& place) {
    std::vector<Region> left;
    for (const Region& region : regions)
      if (!region.meets(place)) left.push_back(region);
    return left;
  }

 private:
  /// A node that reads or makes a tensor without a buffer holds less of it in bands, even alone in a region.
  bool pays_alone(std::size_t first, std::size_t end) const {
    return end == first + 1 && whole_.kernels.passing() != nullptr && whole_.kernels.passing()->touched(order_[first]) > 0;
  }

  struct Life {
    std::uint64_t bytes = 0;
    std::size_t first = 0;  // crosses places (first, last]
    std::size_t last = 0;
    plan::TensorPlacement place;  // without regions
    bool takes_place_of(const Life& other) const noexcept {
      return bytes == other.bytes && place.buffer.valid() && place.buffer == other.place.buffer && place.offset == other.place.offset;
    }
  };

  double reading_seconds_of(std::uint64_t bytes) const {
    return whole_.shared->load_seconds(*whole_.profile, align_up(bytes, kBlockBytes));
  }

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

  const Problem& whole_;
  const std::vector<NodeId>& order_;
  const bool keep_inputs_;
  PartitionRule rule_;
  const Uses uses_;
  StepCosts costs_;
  std::vector<Life> lives_;
  std::vector<const Life*> entering_;    // kept for its memory
  std::vector<std::uint64_t> crossing_;  // by place: bytes of what is made before it and read there or after it
  std::vector<std::uint64_t> signatures_;
  std::vector<double> whole_seconds_;  // by place
  Measure whole_measure_;
  double reading_ = 0;  // of every weight, once
  std::uint64_t worked_ = 0;
  std::vector<std::pair<Region, std::uint64_t>> settled_;
};

}  // namespace detail

}  // namespace sluice::planner
