// What a region needs of the arena while it runs: tensors that are held whole, rings, scratch, and where its stages stand.
//
//     whole    made before or behind the region's end still read: all of it
//     ring     made and read inside: as much as is alive at once (walk.h)
//     overlap  a whole tensor that dies in the region may lie above one that is made there: its read rows make room for written ones
//
// A region in strips (strips.h) has narrower rings and no overlap, and computes more than the network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "sluice/emit/network.h"
#include "sluice/emit/walk.h"

namespace sluice::emit {

/// Bytes that the emitted code keeps for each stage: its row and its pixel.
inline constexpr std::uint64_t kPlaceBytes = 4;
/// Floats, and sums of 32 bits.
inline constexpr std::uint64_t kArenaAlignment = 4;

struct RegionCost {
  std::uint64_t whole = 0, rings = 0, scratch = 0, kept = 0, places = 0;
  std::uint64_t saved = 0;                                        // by `overlap`
  std::optional<Walk::Overlap> overlap;                           // the pair that saves most
  std::vector<std::pair<std::size_t, std::uint64_t>> ring_bytes;  // by storage

  std::uint64_t tensors() const noexcept { return whole + rings - saved; }
  std::uint64_t sum() const noexcept { return tensors() + scratch + kept + places; }
};

/// Elements that no ring may split: pixels of all writers and readers, and rows of those that write or read whole rows.
inline std::int64_t ring_unit(const Network& network, const Storage& storage) {
  std::int64_t unit = 1;
  if (storage.maker) {
    const Stage& maker = network.stages[*storage.maker];
    unit = maker.out.channels * (maker.whole_rows ? maker.out.pixels : 1);
  }
  for (const std::size_t reader : storage.readers)
    for (const StageInput& input : network.stages[reader].inputs)
      if (&network.storages[input.storage] == &storage)
        unit = std::lcm(unit, input.view.channels * (input.rows_in_one ? input.view.pixels : 1));
  return unit;
}

class RegionCosts {
 public:
  explicit RegionCosts(const Network& network) : network_(network) {}

  /// Bytes of the tensors that are whole while [first, last) runs: no granule changes them.
  std::uint64_t whole_bytes(std::size_t first, std::size_t last) const {
    std::uint64_t sum = 0;
    for (std::size_t s = 0; s < network_.storages.size(); ++s)
      if (whole_in(s, first, last)) sum += network_.storages[s].bytes();
    return sum;
  }

  const RegionCost& of(const Region& region) {
    const auto key = std::tuple(region.first, region.last, region.granule, region.strips);
    const auto found = costs_.find(key);
    return found != costs_.end() ? found->second : costs_.emplace(key, compute(region)).first->second;
  }

  /// Multiply-adds of all strips of a region.
  std::uint64_t macs(const Region& region) const { return Strips(network_, region).macs(); }

  /// The cost of a region in strips, as far as it is seen without a walk: whole tensors, and the rows between the first and the last one
  /// that a window reads.
  std::uint64_t least_of_strips(const Region& region) const {
    const Strips strips(network_, region);
    std::uint64_t sum = whole_bytes(region.first, region.last);
    for (std::size_t i = region.first; i < region.last; ++i) {
      const Storage& storage = network_.storages[network_.stages[i].storage];
      if (outlives(network_, region, network_.stages[i].storage)) continue;
      std::int64_t rows = 0;
      for (const std::size_t reader : storage.readers)
        for (const StageInput& input : network_.stages[reader].inputs)
          if (&network_.storages[input.storage] == &storage && input.reach)
            rows = std::max(rows,
                            std::min((input.reach->row.ahead + input.reach->row.behind) / input.reach->row.divisor, input.view.rows - 1));
      sum += static_cast<std::uint64_t>(rows * strips.row_pixels(i) * network_.stages[i].out.channels) * size_of(storage.dtype);
    }
    return sum;
  }

  /// First and last region-independent use of a storage: its maker (0: from outside) and its last reader (an output: the end).
  std::size_t begin_of(std::size_t s) const { return network_.storages[s].maker.value_or(0); }
  std::size_t end_of(std::size_t s) const {
    const Storage& storage = network_.storages[s];
    if (storage.is_output) return network_.stages.size();
    return storage.readers.empty() ? begin_of(s) : storage.readers.back();
  }
  bool comes_from_outside(std::size_t s) const { return !network_.storages[s].maker; }

  bool whole_in(std::size_t s, std::size_t first, std::size_t last) const {
    if (begin_of(s) >= last || end_of(s) < first) return false;
    return comes_from_outside(s) || begin_of(s) < first || end_of(s) >= last;
  }

 private:
  RegionCost compute(const Region& region) const {
    RegionCost cost;
    Walk walk(network_, region);
    // Each strip reads from the first row on, so nothing makes room before the last one.
    for (std::size_t above = 0; region.strips == 1 && above < network_.storages.size(); ++above)
      if (dies_in(above, region))
        for (std::size_t i = region.first; i < region.last; ++i)
          if (outlives(network_, region, network_.stages[i].storage)) walk.watch(above, network_.stages[i].storage);
    walk.run();
    cost.whole = whole_bytes(region.first, region.last);
    for (std::size_t i = region.first; i < region.last; ++i) {
      const Stage& stage = network_.stages[i];
      cost.scratch = std::max(cost.scratch, stage.scratch_bytes);
      cost.kept += stage.kept_bytes;
      if (!outlives(network_, region, stage.storage)) {
        cost.ring_bytes.emplace_back(stage.storage, ring_bytes(stage.storage, walk.alive(stage.storage)));
        cost.rings += cost.ring_bytes.back().second;
      }
    }
    cost.places = (region.last - region.first) * kPlaceBytes;
    for (const Walk::Overlap& overlap : walk.overlaps()) {
      const std::uint64_t above = network_.storages[overlap.above].bytes(), below = network_.storages[overlap.below].bytes();
      const std::uint64_t both = std::max(below, rounded(static_cast<std::uint64_t>(overlap.distance)) + above);
      if (both < above + below && above + below - both > cost.saved) {
        cost.saved = above + below - both;
        cost.overlap = overlap;
        cost.overlap->distance = static_cast<std::int64_t>(rounded(static_cast<std::uint64_t>(overlap.distance)));
      }
    }
    return cost;
  }

  static std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

  bool dies_in(std::size_t s, const Region& region) const {
    const bool made_before = comes_from_outside(s) || begin_of(s) < region.first;
    return made_before && !network_.storages[s].is_output && end_of(s) >= region.first && end_of(s) < region.last;
  }

  std::uint64_t ring_bytes(std::size_t s, std::int64_t alive) const {
    const Storage& storage = network_.storages[s];
    const std::int64_t unit = ring_unit(network_, storage);
    const std::int64_t elements = std::min((alive + unit - 1) / unit * unit, storage.elements);
    return static_cast<std::uint64_t>(elements) * size_of(storage.dtype);
  }

  const Network& network_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t, std::int64_t>, RegionCost> costs_;
};

}  // namespace sluice::emit
