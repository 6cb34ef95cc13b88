// Exact search: is there a placement within the capacity? Branch and bound over canonical placements.
//
// Push every rectangle of a placement down as far as it goes and sort by offset: a canonical placement. In it each rectangle lies at its
// *floor*, the highest top of those placed before it that it overlaps in time, and offsets never fall. So the search only asks, of the
// rectangle with the lowest floor: does it lie there, or not?
//
//     bytes ^   floor of C = top of A                 yes:  place it; floors of its neighbours rise to its top
//           |       v   +---+                         no:   it is *raised*: something that overlaps it must come to lie between, so its
//           |  +--------+ B |                               least offset is the least top of those that could block it
//           |  |   A    +---+
//           +--+--------+---+--> time
//
// What cuts the tree:
//  - bound: in each column stack what is not yet placed in order of least offsets; if a stack passes the capacity, go back
//  - raising: a raised rectangle whose old place nothing can block any more could sink: not canonical, go back (dominance)
//  - parts: rectangles that no unplaced one connects in time are solved one part after the other; if one fails, the others' choices are not
//    varied, and each part is ranked anew
//  - ties between equal floors by a `DiveRule`; rules succeed at very different speed, so callers try several (place.h)
//
// The work is counted, not timed: the same problem and limit give the same result on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/columns.h"
#include "sluice/planner/place/dive.h"

namespace sluice::planner {

/// kStopped: the limit was reached or the caller asked to stop; nothing is known.
enum class SearchOutcome : std::uint8_t { kFound, kImpossible, kStopped };

/// The problem in whole units, so that 32 bits hold every offset. Built once for all rules and capacities.
class SearchProblem {
 public:
  /// Nothing when 32 bits do not hold it, or when it is too deep to search.
  static std::optional<SearchProblem> make(const std::vector<Rectangle>& rectangles, const Columns& columns, std::uint64_t capacity);

  struct Item {
    std::uint32_t rectangle = 0;
    Interval<std::uint32_t> columns;
    std::int32_t size = 0;
    std::int32_t alignment = 1;
    std::int32_t fixed = -1;  // -1: free
    double width = 0;
    double area = 0;
  };

  std::vector<Item> items;  // by first column
  std::uint64_t unit = 1;   // bytes
  std::uint32_t columns = 0;
};

class ExactSearch {
 public:
  /// `capacity` in bytes. `stop`, if any, is looked at now and then.
  ExactSearch(const SearchProblem& problem, std::uint64_t capacity, DiveRule rule, std::uint64_t work_limit,
              const std::atomic<bool>* stop = nullptr);

  SearchOutcome run();
  std::uint64_t work() const noexcept { return work_; }
  /// After kFound. Rectangles that do not matter lie at 0.
  Placement placement(const std::vector<Rectangle>& rectangles) const;

 private:
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 4;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  struct Member {  // of a part
    std::uint32_t item;
    std::int32_t total;  // the largest sum of unplaced sizes in its columns
  };
  struct Span {  // of members_
    std::size_t first, last;
  };
  struct Undo {
    std::uint32_t item;
    std::int32_t floor, least;
  };
  struct Place {
    std::int32_t floor = 0;  // the highest top of what is placed and overlaps it
    std::int32_t least = 0;  // no completion has it lower; equal to the floor unless raised
  };

  bool raised(std::uint32_t i) const noexcept { return place_[i].least > place_[i].floor; }
  bool overlap(std::uint32_t a, std::uint32_t b) const noexcept { return items_[a].columns.overlaps(items_[b].columns); }
  std::int32_t aligned(std::uint32_t i, std::int32_t offset) const noexcept {
    const std::int32_t alignment = items_[i].alignment;
    return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
  }

  SearchOutcome solve(Span part);
  SearchOutcome place_and_solve(Span part, std::size_t chosen);
  bool tighten(Span part);
  bool raise_beyond_blockers(Span part, std::uint32_t item);
  bool stacks_fit(Span part);
  std::size_t choose(Span part) const noexcept;
  bool lift_neighbours(Span part, std::uint32_t item);
  void split(Span part, std::uint32_t without);
  SearchOutcome solve_parts(std::size_t first_part);
  void rank(Span part);
  bool precedes(const Member& a, const Member& b) const noexcept;
  void set(std::uint32_t item, Place place);
  void undo_to(std::size_t mark) noexcept;

  const SearchProblem& problem_;
  const std::vector<SearchProblem::Item>& items_;
  std::int32_t capacity_;
  DiveRule rule_;
  std::uint64_t work_limit_;
  const std::atomic<bool>* stop_;
  std::uint64_t work_ = 0;
  std::vector<Place> place_;
  std::vector<Undo> undo_;
  std::vector<Member> members_;       // of the parts of all depths, a stack
  std::vector<Span> parts_;           // not yet solved, a stack
  std::vector<std::int32_t> stacks_;  // by column: scratch of stacks_fit and rank
  std::vector<std::uint64_t> order_;  // scratch of stacks_fit
};

inline std::optional<SearchProblem> SearchProblem::make(const std::vector<Rectangle>& rectangles, const Columns& columns,
                                                        std::uint64_t capacity) {
  constexpr std::size_t kMostItems = 4096;  // the search recurses once for each
  constexpr std::uint64_t kMostUnits = std::numeric_limits<std::int32_t>::max() / 8;
  SearchProblem problem;
  problem.columns = columns.count;
  std::uint64_t unit = 0;
  for (const Rectangle& r : rectangles)
    if (r.matters()) unit = std::gcd(std::gcd(std::gcd(unit, r.size), r.alignment), r.fixed.value_or(0));
  problem.unit = unit = std::max<std::uint64_t>(unit, 1);
  if (capacity / unit > kMostUnits) return std::nullopt;
  for (std::uint32_t i = 0; i < rectangles.size(); ++i) {
    const Rectangle& r = rectangles[i];
    if (!r.matters()) continue;
    if (r.size / unit > kMostUnits || r.alignment / unit > kMostUnits || r.fixed.value_or(0) / unit > kMostUnits) return std::nullopt;
    Item item{i, columns.runs[i], static_cast<std::int32_t>(r.size / unit), static_cast<std::int32_t>(r.alignment / unit)};
    if (r.fixed) item.fixed = static_cast<std::int32_t>(*r.fixed / unit);
    item.width = static_cast<double>(r.time.size());
    item.area = item.width * static_cast<double>(r.size);
    problem.items.push_back(item);
  }
  if (problem.items.size() > kMostItems || height_bound(rectangles, columns) / unit > kMostUnits) return std::nullopt;
  sluice::stable_sort(problem.items.begin(), problem.items.end(),
                      [](const Item& a, const Item& b) { return a.columns.begin < b.columns.begin; });
  return problem;
}

inline ExactSearch::ExactSearch(const SearchProblem& problem, std::uint64_t capacity, DiveRule rule, std::uint64_t work_limit,
                                const std::atomic<bool>* stop)
    : problem_(problem),
      items_(problem.items),
      capacity_(static_cast<std::int32_t>(std::min<std::uint64_t>(capacity / problem.unit, kNever))),
      rule_(rule),
      work_limit_(work_limit),
      stop_(stop),
      place_(problem.items.size()),
      stacks_(problem.columns) {}

inline SearchOutcome ExactSearch::run() {
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].fixed >= 0) place_[i] = {items_[i].fixed, items_[i].fixed};
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) members_.push_back({i, 0});
  split({0, items_.size()}, kNobody);
  return solve_parts(0);
}

inline Placement ExactSearch::placement(const std::vector<Rectangle>& rectangles) const {
  Placement placement{std::vector<std::uint64_t>(rectangles.size(), 0), 0};
  for (std::size_t i = 0; i < items_.size(); ++i)
    placement.offsets[items_[i].rectangle] = static_cast<std::uint64_t>(place_[i].least) * problem_.unit;
  for (std::size_t i = 0; i < rectangles.size(); ++i)
    if (!rectangles[i].matters()) placement.offsets[i] = rectangles[i].fixed.value_or(0);
  placement.height = height_of(rectangles, placement.offsets);
  return placement;
}

/// Finds offsets for one part, or shows that there are none with the rectangles that are placed already.
inline SearchOutcome ExactSearch::solve(Span part) {
  if (part.first == part.last) return SearchOutcome::kFound;
  const std::size_t mark = undo_.size();
  for (;;) {
    if (!tighten(part)) break;
    if (work_ > work_limit_ || (stop_ != nullptr && stop_->load(std::memory_order_relaxed))) return SearchOutcome::kStopped;
    const std::size_t chosen = choose(part);
    const std::uint32_t item = members_[chosen].item;
    const std::size_t undo_mark = undo_.size();
    const std::size_t members_mark = members_.size();
    const SearchOutcome outcome = place_and_solve(part, chosen);
    if (outcome != SearchOutcome::kImpossible) return outcome;
    undo_to(undo_mark);
    members_.resize(members_mark);
    if (items_[item].fixed >= 0 || !raise_beyond_blockers(part, item)) break;
  }
  undo_to(mark);
  return SearchOutcome::kImpossible;
}

/// The chosen rectangle lies at its floor.
inline SearchOutcome ExactSearch::place_and_solve(Span part, std::size_t chosen) {
  const std::uint32_t item = members_[chosen].item;
  if (!lift_neighbours(part, item)) return SearchOutcome::kImpossible;
  const std::size_t first_part = parts_.size();
  split(part, item);
  return solve_parts(first_part);
}

/// Solves the parts from `first_part` on and takes them off the stack.
inline SearchOutcome ExactSearch::solve_parts(std::size_t first_part) {
  SearchOutcome outcome = SearchOutcome::kFound;
  for (std::size_t p = first_part; p < parts_.size() && outcome == SearchOutcome::kFound; ++p) outcome = solve(parts_[p]);
  parts_.resize(first_part);
  return outcome;
}

/// Draws conclusions until the next choice: false when the part cannot be completed.
inline bool ExactSearch::tighten(Span part) {
  std::int32_t lowest = kNever;  // offsets never fall: nothing will be placed below this
  for (std::size_t m = part.first; m < part.last; ++m)
    if (!raised(members_[m].item)) lowest = std::min(lowest, place_[members_[m].item].least);
  if (lowest == kNever) return false;  // each waits for another to hold it up
  for (std::size_t m = part.first; m < part.last; ++m) {
    const std::uint32_t item = members_[m].item;
    if (!raised(item)) continue;
    if (place_[item].least < lowest) set(item, {place_[item].floor, aligned(item, lowest)});
    if (!raise_beyond_blockers(part, item)) return false;
  }
  return stacks_fit(part);
}

/// `item` does not lie at its floor, so something else does lie across that place, and `item` above it.
inline bool ExactSearch::raise_beyond_blockers(Span part, std::uint32_t item) {
  const std::int32_t needed_until = place_[item].floor + items_[item].size;
  std::int32_t top = kNever;
  for (std::size_t m = part.first; m < part.last; ++m) {
    const std::uint32_t other = members_[m].item;
    if (other == item || place_[other].least >= needed_until || !overlap(item, other)) continue;
    top = std::min(top, place_[other].least + items_[other].size);
  }
  work_ += part.last - part.first;
  if (top == kNever) return false;
  top = aligned(item, std::max(top, place_[item].floor + 1));
  if (top > capacity_ - items_[item].size) return false;
  if (top > place_[item].least) set(item, {place_[item].floor, top});
  return true;
}

/// Stacks the part's rectangles in order of least offsets: no completion is lower than any of the stacks.
inline bool ExactSearch::stacks_fit(Span part) {
  order_.clear();
  std::uint32_t end = 0;
  for (std::size_t m = part.first; m < part.last; ++m) {
    const std::uint32_t item = members_[m].item;
    order_.push_back(static_cast<std::uint64_t>(place_[item].least) << 32 | item);
    end = std::max(end, items_[item].columns.end);
  }
  sluice::sort(order_.begin(), order_.end());
  std::fill(stacks_.begin() + items_[members_[part.first].item].columns.begin, stacks_.begin() + end, 0);
  std::int32_t highest = 0;
  for (std::uint64_t entry : order_) {
    const auto item = static_cast<std::uint32_t>(entry);
    const auto least = static_cast<std::int32_t>(entry >> 32);
    const std::int32_t size = items_[item].size;
    std::int32_t* const stack = stacks_.data() + items_[item].columns.begin;
    const std::uint32_t width = items_[item].columns.size();
    for (std::uint32_t c = 0; c < width; ++c) {
      stack[c] = (stack[c] > least ? stack[c] : least) + size;
      highest = highest > stack[c] ? highest : stack[c];
    }
    work_ += width;
  }
  return highest <= capacity_;
}

/// The lowest of those that may lie at their floor; ties are broken by the rule.
inline std::size_t ExactSearch::choose(Span part) const noexcept {
  std::size_t best = part.last;
  for (std::size_t m = part.first; m < part.last; ++m) {
    if (raised(members_[m].item)) continue;
    if (best == part.last || precedes(members_[m], members_[best])) best = m;
  }
  return best;
}

inline bool ExactSearch::precedes(const Member& a, const Member& b) const noexcept {
  if (place_[a.item].least != place_[b.item].least) return place_[a.item].least < place_[b.item].least;
  const auto keys = [&](const Member& m) {
    return keys_in_order(rule_, {static_cast<double>(m.total), items_[m.item].width, items_[m.item].area});
  };
  return keys(a) > keys(b);
}

inline bool ExactSearch::lift_neighbours(Span part, std::uint32_t item) {
  const std::int32_t top = place_[item].least + items_[item].size;
  for (std::size_t m = part.first; m < part.last; ++m) {
    const std::uint32_t other = members_[m].item;
    if (other == item || place_[other].floor >= top || !overlap(item, other)) continue;
    if (items_[other].fixed >= 0) return false;
    const std::int32_t floor = aligned(other, top);
    set(other, {floor, std::max(floor, place_[other].least)});
  }
  return true;
}

/// What is left of a part without one item, as parts of their own, on top of members_ and parts_. A part that stays whole keeps its ranks.
inline void ExactSearch::split(Span part, std::uint32_t without) {
  const std::size_t first_part = parts_.size();
  std::uint32_t end = 0;
  for (std::size_t m = part.first; m < part.last; ++m) {
    const Member member = members_[m];
    if (member.item == without) continue;
    const Interval<std::uint32_t>& columns = items_[member.item].columns;
    if (parts_.size() == first_part || columns.begin >= end) parts_.push_back({members_.size(), members_.size()});
    end = std::max(end, columns.end);
    members_.push_back(member);
    parts_.back().last = members_.size();
  }
  if (without != kNobody && parts_.size() == first_part + 1) return;
  for (std::size_t p = first_part; p < parts_.size(); ++p) rank(parts_[p]);
}

inline void ExactSearch::rank(Span part) {
  std::uint32_t end = 0;
  for (std::size_t m = part.first; m < part.last; ++m) end = std::max(end, items_[members_[m].item].columns.end);
  std::fill(stacks_.begin() + items_[members_[part.first].item].columns.begin, stacks_.begin() + end, 0);
  for (std::size_t m = part.first; m < part.last; ++m) {
    const SearchProblem::Item& item = items_[members_[m].item];
    for (std::uint32_t c = item.columns.begin; c < item.columns.end; ++c) stacks_[c] += item.size;
  }
  for (std::size_t m = part.first; m < part.last; ++m) {
    const Interval<std::uint32_t>& columns = items_[members_[m].item].columns;
    members_[m].total = *std::max_element(stacks_.begin() + columns.begin, stacks_.begin() + columns.end);
    work_ += 2 * columns.size();
  }
}

inline void ExactSearch::set(std::uint32_t item, Place place) {
  undo_.push_back({item, place_[item].floor, place_[item].least});
  place_[item] = place;
}

inline void ExactSearch::undo_to(std::size_t mark) noexcept {
  for (; undo_.size() > mark; undo_.pop_back()) place_[undo_.back().item] = {undo_.back().floor, undo_.back().least};
}

}  // namespace sluice::planner
