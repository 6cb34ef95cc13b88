// Pass: gates and addresses of streamed loads, in load order: each at the earliest gate, from the one that is asked for on, for which some
// address is free until its last use.
//
//     arena ^  until 3 |      until 9     | until 5 |  0   |     the skyline: for each byte, the step before which it is taken
//           +----------+------------------+---------+------+     by what is placed so far
//
// A load of m bytes may start at address a with gate max(skyline over [a, a + m)). Fixed buffers enter the skyline when a load's lifetime
// reaches them. Because loads come in order of use, one skyline serves all: a placed load overwrites what lay below it.
//
// Wrapped loads come first, by the same rules and at their earliest gates: a skyline of the run before answers for the tail, in which what
// the head needs is never free. Each lives in two pieces, the tail of the run before and the head of its own, at one address:
//
//     | 0: head  |                 | 0: tail |      the tails then count as fixed buffers for the loads of the middle
//     | 1: head     |          | 1: tail     |
//     0 ------------------------------- steps
//
// Invariants: gates never fall; gate <= first use; regions are multiples of the block and disjoint, while live, from everything placed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/cut/schedule.h"

namespace sluice::planner {

/// Bytes taken for a time: an activation or a workspace, in steps.
struct FixedRect {
  Interval<std::int64_t> time;
  Interval<std::uint64_t> bytes;
};

/// Which of several equally early addresses: the lowest, the highest, or the next one after the former load (a ring).
enum class AddressRule : std::uint8_t { kLowest, kHighest, kRing };

struct LoadPlacement {
  std::vector<std::int64_t> gates;     // by load; negative: wrapped; resident loads inherit the gate before them
  std::vector<std::uint64_t> offsets;  // by load; those of resident loads are not set here
  std::uint64_t height = 0;            // end of the highest region
};

struct PlaceRule {
  Interval<std::uint64_t> arena;  // where regions may lie; both ends multiples of the block
  AddressRule address = AddressRule::kLowest;
  std::vector<AddressRule> sides = {};         // by load, or empty: that for all
  bool preload = true;                         // false: gate = first use (on demand)
  std::vector<std::int64_t> least_gates = {};  // by load, or empty (0); negative: wrap it if an address is free
  std::vector<bool> late = {};                 // by load, or empty: comes at its first use, as low as it can
};

namespace detail {

class Skyline {
 public:
  explicit Skyline(Interval<std::uint64_t> arena) : parts_{{arena.begin, 0}}, end_(arena.end) {}

  struct Fit {
    std::uint64_t offset = 0;
    std::int64_t until = 0;
  };

  /// Parts that were looked at.
  std::uint64_t work() const noexcept { return work_; }

  /// The address for `size` bytes that is free earliest, not counting differences below `former` (which gates cannot use).
  std::optional<Fit> find(std::uint64_t size, std::int64_t former, std::int64_t latest, AddressRule rule, std::uint64_t after) const {
    std::optional<Fit> best;
    const auto consider = [&](std::uint64_t at, std::size_t part) {
      if (at + size > end_ || at < parts_[0].begin) return;
      std::int64_t until = former;
      for (std::size_t p = part; p < parts_.size() && parts_[p].begin < at + size; ++p) {
        ++work_;
        until = std::max(until, parts_[p].until);
        if (until > latest || (best && until > best->until)) return;
      }
      if (!best || until < best->until || prefers(rule, at, best->offset, after)) best = Fit{at, until};
    };
    const auto bottom = [&](std::size_t p) {
      const std::uint64_t at = align_up(parts_[p].begin, kBlockBytes);
      if (at < part_end(p)) consider(at, p);
    };
    // Nothing is free earlier than `former`: the first such address in the order of preference ends the search.
    if (rule != AddressRule::kHighest) {
      const std::uint64_t preferred = rule == AddressRule::kRing ? after : 0;
      for (std::size_t p = 0; p < parts_.size() && !(best && best->until == former && best->offset >= preferred); ++p) bottom(p);
      return best;
    }
    for (std::size_t p = parts_.size(); p-- > 0 && !(best && best->until == former && best->offset >= part_end(p));) {
      bottom(p);
      if (part_end(p) < parts_[0].begin + size) continue;
      const std::uint64_t top = align_down(part_end(p) - size, kBlockBytes);
      consider(top, part_at(top));
    }
    return best;
  }

  /// The step before which some of these bytes are taken.
  std::int64_t until(Interval<std::uint64_t> bytes) const {
    std::int64_t latest = 0;
    for (std::size_t p = part_at(bytes.begin); p < parts_.size() && parts_[p].begin < bytes.end; ++p)
      latest = std::max(latest, parts_[p].until);
    return latest;
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
  mutable std::uint64_t work_ = 0;
};

}  // namespace detail

namespace detail {

class LoadPlacer {
 public:
  LoadPlacer(const Schedule& schedule, std::vector<FixedRect> fixed, const PlaceRule& rule)
      : schedule_(schedule), rule_(rule), fixed_(std::move(fixed)), skyline_(rule.arena) {
    placement_.gates.resize(schedule.loads.size(), 0);
    placement_.offsets.resize(schedule.loads.size(), 0);
  }

  std::optional<LoadPlacement> place() {
    place_wrapped();
    std::int64_t former = 0;
    std::uint64_t after = 0;
    for (std::size_t k = 0; k < schedule_.loads.size(); ++k) {
      const LoadSpec& load = schedule_.loads[k];
      if (k < wrapped_ && load.streamed()) continue;
      placement_.gates[k] = former;
      if (load.resident) continue;
      enter_fixed(load.uses.end);
      // Loads that only the prologue reads take what is free when they are needed, and delay no load of later runs.
      const std::int64_t least = load.prologue_only ? load.uses.begin : least_gate(k, former);
      const auto fit = skyline_.find(load.region_bytes(), least, load.uses.begin, address_of(k), after);
      if (!fit) {
        without_place_ = k;
        return std::nullopt;
      }
      placement_.gates[k] = fit->until;
      if (load.streamed()) former = fit->until;
      placement_.offsets[k] = fit->offset;
      after = fit->offset + load.region_bytes();
      placement_.height = std::max(placement_.height, after);
      skyline_.take({fit->offset, after}, load.uses.end);
    }
    return std::move(placement_);
  }

  /// The work of `place`, in the unit of SearchLimit.
  std::uint64_t work() const noexcept { return skyline_.work() + wrapping_ + kEach * (schedule_.loads.size() + fixed_.size()); }

  /// The load for which `place` found no address.
  std::size_t without_place() const noexcept { return without_place_; }

  /// Keeps the addresses of `placed` and moves each gate as early as its region and the order of loads allow.
  LoadPlacement extend(LoadPlacement placed) {
    for (; wrapped_ < placed.gates.size(); ++wrapped_) {
      if (schedule_.loads[wrapped_].streamed() && placed.gates[wrapped_] >= 0) break;
      if (schedule_.loads[wrapped_].streamed()) keep_wrapped(wrapped_, placed.gates[wrapped_], placed.offsets[wrapped_]);
    }
    enter_tails();
    std::int64_t former = 0;
    for (std::size_t k = 0; k < schedule_.loads.size(); ++k) {
      const LoadSpec& load = schedule_.loads[k];
      if (k < wrapped_ && load.streamed()) continue;
      placed.gates[k] = former;
      if (load.resident) continue;
      enter_fixed(load.uses.end);
      const Interval<std::uint64_t> region{placed.offsets[k], placed.offsets[k] + load.region_bytes()};
      placed.gates[k] = load.streamed() ? std::max(former, skyline_.until(region)) : skyline_.until(region);
      if (load.streamed()) former = placed.gates[k];
      skyline_.take(region, load.uses.end);
    }
    return placed;
  }

 private:
  static constexpr std::uint64_t kEach = 32;  // work on a load or a fixed buffer beside what is counted, as measured

  bool is_late(std::size_t k) const noexcept { return !rule_.late.empty() && rule_.late[k]; }

  AddressRule address_of(std::size_t k) const noexcept {
    return is_late(k) ? AddressRule::kLowest : rule_.sides.empty() ? rule_.address : rule_.sides[k];
  }

  std::int64_t least_gate(std::size_t k, std::int64_t former) const {
    const std::int64_t use = schedule_.loads[k].uses.begin;
    if (!rule_.preload || is_late(k)) return std::max(former, use);
    return rule_.least_gates.empty() ? former : std::max(former, std::min(rule_.least_gates[k], use));
  }

  void enter_fixed(std::int64_t end) {
    for (; next_fixed_ < fixed_.size() && fixed_[next_fixed_].time.begin < end; ++next_fixed_)
      skyline_.take(fixed_[next_fixed_].bytes, fixed_[next_fixed_].time.end);
  }

  /// Loads whose least gate lies before the run, until one finds no address there: it and those after it are not wrapped.
  void place_wrapped() {
    if (rule_.least_gates.empty() || *std::min_element(rule_.least_gates.begin(), rule_.least_gates.end()) >= 0) return;
    // Bytes of the run before: a byte that the head needs, from the beginning of a run to the last use, is never free.
    const std::int64_t steps = schedule_.step_count();
    Skyline before(rule_.arena);
    for (const FixedRect& rect : fixed_) before.take(rect.bytes, rect.time.end);
    std::int64_t former = -steps;
    std::uint64_t after = 0;
    for (std::size_t in_heads = 0; wrapped_ < rule_.least_gates.size(); ++wrapped_) {
      const LoadSpec& load = schedule_.loads[wrapped_];
      if (!load.streamed()) continue;
      const std::int64_t least = std::max(rule_.least_gates[wrapped_], former);
      if (is_late(wrapped_) || least >= 0) break;
      for (; in_heads < fixed_.size() && fixed_[in_heads].time.begin < load.uses.end; ++in_heads)
        before.take(fixed_[in_heads].bytes, steps);
      const auto fit = before.find(load.region_bytes(), least + steps, steps - 1, address_of(wrapped_), after);
      if (!fit) break;
      after = fit->offset + load.region_bytes();
      before.take({fit->offset, after}, steps);
      placement_.gates[wrapped_] = former = fit->until - steps;
      placement_.offsets[wrapped_] = fit->offset;
      placement_.height = std::max(placement_.height, after);
      keep_wrapped(wrapped_, former, fit->offset);
    }
    wrapping_ = before.work() + kEach * fixed_.size();
    enter_tails();
  }

  void keep_wrapped(std::size_t k, std::int64_t gate, std::uint64_t at) {
    const LoadSpec& load = schedule_.loads[k];
    const Interval<std::uint64_t> bytes{at, at + load.region_bytes()};
    const std::int64_t steps = schedule_.step_count();
    if (gate + steps < steps) tails_.push_back({{gate + steps, steps}, bytes});
    skyline_.take(bytes, load.uses.end);
  }

  /// Among the fixed buffers. Tails are in the order of their gates.
  void enter_tails() {
    const auto middle = fixed_.insert(fixed_.end(), tails_.begin(), tails_.end());
    sluice::merge_in_place(fixed_.begin(), middle, fixed_.end(),
                           [](const FixedRect& a, const FixedRect& b) { return a.time.begin < b.time.begin; });
  }

  const Schedule& schedule_;
  const PlaceRule& rule_;
  std::vector<FixedRect> fixed_;  // by begin of time
  std::vector<FixedRect> tails_;  // of wrapped loads
  Skyline skyline_;
  LoadPlacement placement_;
  std::uint64_t wrapping_ = 0;  // work on wrapped loads
  std::size_t next_fixed_ = 0;
  std::size_t wrapped_ = 0;  // streamed loads before this one are wrapped
  std::size_t without_place_ = 0;
};

/// Makes those loads late that are in the way of load `k`: in use at its first use, or wrapped with a tail there. False when all are.
inline bool make_way(const Schedule& schedule, std::size_t k, PlaceRule& rule) {
  rule.late.resize(schedule.loads.size(), false);
  const Interval<std::int64_t> uses = schedule.loads[k].uses;
  bool found = false;
  for (std::size_t j = 0; j < schedule.loads.size(); ++j) {
    const LoadSpec& load = schedule.loads[j];
    if (!load.streamed() || rule.late[j]) continue;
    const bool in_use = j <= k && load.uses.end > uses.begin;
    const bool tail = !rule.least_gates.empty() && rule.least_gates[j] < 0 && rule.least_gates[j] + schedule.step_count() < uses.end;
    if (in_use || tail) rule.late[j] = found = true;
  }
  return found;
}

}  // namespace detail

/// Places all loads that are not resident among `fixed` (sorted by begin of time), or nothing when one finds no address even at its first
/// use. O(loads * parts of the skyline), which is added to `work`.
inline std::optional<LoadPlacement> place_loads(const Schedule& schedule, const std::vector<FixedRect>& fixed, const PlaceRule& rule,
                                                std::uint64_t* work = nullptr) {
  detail::LoadPlacer placer(schedule, fixed, rule);
  auto placed = placer.place();
  if (work != nullptr) *work += placer.work();
  return placed;
}

/// The same, but if a load finds no address, the gates of those in its way move late and all are placed again. Once all loads are late,
/// they lie as if loaded on demand, so whatever fits on demand is found in the end. On return `rule` holds those late loads, and
/// `place_loads` with it gives the same placement at once.
inline std::optional<LoadPlacement> place_loads_late(const Schedule& schedule, const std::vector<FixedRect>& fixed, PlaceRule& rule,
                                                     std::uint64_t& work) {
  constexpr int kMostRounds = 24;
  for (int round = 0; round < kMostRounds; ++round) {
    detail::LoadPlacer placer(schedule, fixed, rule);
    auto placed = placer.place();
    work += placer.work();
    if (placed) return placed;
    if (!detail::make_way(schedule, placer.without_place(), rule)) break;
  }
  return std::nullopt;
}

/// Left extension: a load that starts earlier than it must is a load that may come late. Gates only fall; addresses stay.
inline LoadPlacement extend_left(const Schedule& schedule, const std::vector<FixedRect>& fixed, const PlaceRule& rule,
                                 LoadPlacement placed) {
  return detail::LoadPlacer(schedule, fixed, rule).extend(std::move(placed));
}

}  // namespace sluice::planner
