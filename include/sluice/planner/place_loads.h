// Pass: gates and addresses of streamed loads, in load order: each at the earliest gate for which some address is free until its last use.
//
//     arena ^  until 3 |      until 9     | until 5 |  0   |     the skyline: for each byte, the step before which it is taken
//           +----------+------------------+---------+------+     by what is placed so far
//
// A load of m bytes may start at address a with gate max(skyline over [a, a + m)). Fixed buffers enter the skyline when a load's lifetime
// reaches them. Because loads come in order of use, one skyline serves all: a placed load overwrites what lay below it.
// Invariants: gates never fall; gate <= first use; regions are multiples of the block and disjoint, while live, from everything placed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/planner/slice.h"

namespace sluice::planner {

/// Bytes taken for a time: an activation or a workspace, in steps.
struct FixedRect {
  Interval<std::int64_t> time;
  Interval<std::uint64_t> bytes;
};

/// Which of several equally early addresses: the lowest, the highest, or the next one after the former load (a ring).
enum class AddressRule : std::uint8_t { kLowest, kHighest, kRing };

struct LoadPlacement {
  std::vector<std::int64_t> gates;     // by load; resident loads inherit the gate before them
  std::vector<std::uint64_t> offsets;  // by load; those of resident loads are not set here
  std::uint64_t height = 0;            // end of the highest region
};

struct PlaceRule {
  Interval<std::uint64_t> arena;  // where regions may lie; both ends multiples of the block
  AddressRule address = AddressRule::kLowest;
  bool preload = true;                         // false: gate = first use (on demand)
  std::vector<std::int64_t> least_gates = {};  // by load, or empty
};

namespace detail {

class Skyline {
 public:
  explicit Skyline(Interval<std::uint64_t> arena) : parts_{{arena.begin, 0}}, end_(arena.end) {}

  struct Fit {
    std::uint64_t offset = 0;
    std::int64_t until = 0;
  };

  /// The address for `size` bytes that is free earliest, not counting differences below `former` (which gates cannot use).
  std::optional<Fit> find(std::uint64_t size, std::int64_t former, std::int64_t latest, AddressRule rule, std::uint64_t after) const {
    std::optional<Fit> best;
    const auto consider = [&](std::uint64_t at, std::size_t part) {
      if (at + size > end_ || at < parts_[0].begin) return;
      std::int64_t until = former;
      for (std::size_t p = part; p < parts_.size() && parts_[p].begin < at + size; ++p) {
        until = std::max(until, parts_[p].until);
        if (until > latest || (best && until > best->until)) return;
      }
      if (!best || until < best->until || prefers(rule, at, best->offset, after)) best = Fit{at, until};
    };
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const std::uint64_t at = align_up(parts_[p].begin, kBlockBytes);
      if (at < part_end(p)) consider(at, p);
      if (rule != AddressRule::kHighest || part_end(p) < parts_[0].begin + size) continue;
      const std::uint64_t top = align_down(part_end(p) - size, kBlockBytes);
      consider(top, part_at(top));
    }
    return best;
  }

  void take(Interval<std::uint64_t> bytes, std::int64_t until) {
    bytes.begin = std::max(bytes.begin, parts_[0].begin);
    bytes.end = std::min(bytes.end, end_);
    if (bytes.empty()) return;
    const std::size_t first = split(bytes.begin);
    const std::size_t last = split(bytes.end);
    for (std::size_t p = first; p < last; ++p) parts_[p].until = std::max(parts_[p].until, until);
    merge(first, last);
  }

 private:
  struct Part {
    std::uint64_t begin;
    std::int64_t until;
  };

  std::uint64_t part_end(std::size_t p) const noexcept { return p + 1 < parts_.size() ? parts_[p + 1].begin : end_; }

  std::size_t part_at(std::uint64_t byte) const noexcept {
    const auto next = std::upper_bound(parts_.begin(), parts_.end(), byte, [](std::uint64_t b, const Part& p) { return b < p.begin; });
    return static_cast<std::size_t>(next - parts_.begin()) - 1;
  }

  static bool prefers(AddressRule rule, std::uint64_t at, std::uint64_t other, std::uint64_t after) noexcept {
    switch (rule) {
      case AddressRule::kLowest:
        return at < other;
      case AddressRule::kHighest:
        return at > other;
      case AddressRule::kRing:
        return (at >= after) != (other >= after) ? at >= after : at < other;
    }
    return false;
  }

  std::size_t split(std::uint64_t at) {
    if (at >= end_) return parts_.size();
    const std::size_t p = part_at(at);
    if (parts_[p].begin == at) return p;
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(p) + 1, Part{at, parts_[p].until});
    return p + 1;
  }

  // Neighbours of equal height become one again, so that the skyline stays as short as the arena is simple.
  void merge(std::size_t first, std::size_t last) {
    const std::size_t begin = first == 0 ? 1 : first;
    const std::size_t end = std::min(last + 1, parts_.size());
    if (begin >= end) return;
    const auto from = parts_.begin() + static_cast<std::ptrdiff_t>(begin) - 1;
    const auto to = parts_.begin() + static_cast<std::ptrdiff_t>(end);
    parts_.erase(std::unique(from, to, [](const Part& a, const Part& b) { return a.until == b.until; }), to);
  }

  std::vector<Part> parts_;  // by begin
  std::uint64_t end_;
};

}  // namespace detail

/// Places all streamed loads among `fixed` (sorted by begin of time), or nothing when one finds no address even at its first use.
/// O(loads * parts of the skyline).
inline std::optional<LoadPlacement> place_loads(const Schedule& schedule, const std::vector<FixedRect>& fixed, const PlaceRule& rule) {
  LoadPlacement placement;
  placement.gates.resize(schedule.loads.size(), 0);
  placement.offsets.resize(schedule.loads.size(), 0);
  detail::Skyline skyline(rule.arena);
  std::size_t next_fixed = 0;
  std::int64_t former = 0;
  std::uint64_t after = 0;
  for (std::size_t k = 0; k < schedule.loads.size(); ++k) {
    const LoadSpec& load = schedule.loads[k];
    placement.gates[k] = former;
    if (load.resident) continue;
    for (; next_fixed < fixed.size() && fixed[next_fixed].time.begin < load.uses.end; ++next_fixed)
      skyline.take(fixed[next_fixed].bytes, fixed[next_fixed].time.end);
    std::int64_t least = rule.preload ? former : std::max(former, load.uses.begin);
    if (!rule.least_gates.empty()) least = std::max(least, std::min(rule.least_gates[k], load.uses.begin));
    const auto fit = skyline.find(load.region_bytes(), least, load.uses.begin, rule.address, after);
    if (!fit) return std::nullopt;
    placement.gates[k] = former = fit->until;
    placement.offsets[k] = fit->offset;
    after = fit->offset + load.region_bytes();
    placement.height = std::max(placement.height, after);
    skyline.take({fit->offset, after}, load.uses.end);
  }
  return placement;
}

}  // namespace sluice::planner
