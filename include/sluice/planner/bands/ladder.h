// Partitions with less and less memory, each kept as what changes from the one before: a graph of thousands of nodes has hundreds of
// regions in each of dozens of partitions, and a process plans in the budget that it runs in.
//
//     rung 0    + [0,4) + [8,12)                       regions that come, and the firsts of those that go
//     rung 1    - 8     + [6,12)                       partition(1) = [0,4) [6,12)
//
// Invariants: a rung's peak is below that of all before it; regions of one rung are disjoint, in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/planner/bands/region.h"

namespace sluice::planner {

/// One partition of a ladder.
struct Rung {
  std::vector<Region> regions;
  std::uint64_t peak = 0;  // by the rule
};

/// Regions in eight bytes each: where one begins, and the number of its kind, which has the rest.
class RegionKinds {
 public:
  struct Packed {
    std::uint32_t kind = 0;
    std::uint32_t first = 0;
  };

  Packed pack(Region region) {
    const auto first = static_cast<std::uint32_t>(region.first);
    region.end -= region.first;
    region.first = 0;
    const auto known = std::find(kinds_.rbegin(), kinds_.rend(), region);
    if (known != kinds_.rend()) return {static_cast<std::uint32_t>(kinds_.rend() - known - 1), first};
    kinds_.push_back(region);
    return {static_cast<std::uint32_t>(kinds_.size() - 1), first};
  }
  std::vector<Packed> pack(const std::vector<Region>& regions) {
    std::vector<Packed> packed;
    packed.reserve(regions.size());
    for (const Region& region : regions) packed.push_back(pack(region));
    return packed;
  }

  Region unpack(Packed packed) const noexcept {
    Region region = kinds_[packed.kind];
    region.first = packed.first;
    region.end += packed.first;
    return region;
  }
  std::vector<Region> unpack(const std::vector<Packed>& packed) const {
    std::vector<Region> regions;
    regions.reserve(packed.size());
    for (const Packed& one : packed) regions.push_back(unpack(one));
    return regions;
  }

 private:
  std::vector<Region> kinds_;
};

class Ladder {
 public:
  bool empty() const noexcept { return steps_.empty(); }
  std::size_t size() const noexcept { return steps_.size(); }
  std::uint64_t peak(std::size_t rung) const noexcept { return steps_[rung].peak; }
  std::uint64_t lowest() const noexcept { return empty() ? ~std::uint64_t{0} : steps_.back().peak; }

  /// Made anew from all changes up to it.
  Rung operator[](std::size_t rung) const {
    Rung made{{}, steps_[rung].peak};
    std::size_t at = 0;
    for (std::size_t r = 0; r <= rung; ++r) {
      for (; at < steps_[r].end; ++at) change(made.regions, changes_[at]);
    }
    return made;
  }
  Rung back() const { return (*this)[size() - 1]; }

  void push_back(const Rung& rung) {
    const std::vector<Region> before = empty() ? std::vector<Region>() : back().regions;
    const auto has = [](const std::vector<Region>& regions, const Region& one) {
      return std::binary_search(regions.begin(), regions.end(), one, [](const Region& a, const Region& b) { return a.first < b.first; }) &&
             *std::partition_point(regions.begin(), regions.end(), [&](const Region& r) { return r.first < one.first; }) == one;
    };
    for (const Region& region : before)
      if (!has(rung.regions, region)) changes_.push_back({kGoes, static_cast<std::uint32_t>(region.first)});
    for (const Region& region : rung.regions)
      if (!has(before, region)) changes_.push_back(kinds_.pack(region));
    steps_.push_back({changes_.size(), rung.peak});
  }
  /// The last rung is found to need less.
  void lower_last(std::uint64_t peak) noexcept { steps_.back().peak = peak; }

 private:
  static constexpr std::uint32_t kGoes = ~std::uint32_t{0};  // in place of a kind

  struct Step {
    std::size_t end;  // of its changes
    std::uint64_t peak;
  };

  void change(std::vector<Region>& regions, RegionKinds::Packed by) const {
    const auto place = std::partition_point(regions.begin(), regions.end(), [&](const Region& r) { return r.first < by.first; });
    if (by.kind == kGoes)
      regions.erase(place);
    else
      regions.insert(place, kinds_.unpack(by));
  }

  RegionKinds kinds_;
  std::vector<RegionKinds::Packed> changes_;
  std::vector<Step> steps_;
};

}  // namespace sluice::planner
