// Compresses time: only those instants matter at which a maximal set of rectangles is alive.
//
//     A |=======|                       sweep the ends: a column closes when a rectangle ends after another began
//     B     |=======|
//     C           |=====|               columns:  0 = {A, B}   1 = {B, C}
//        ...0...  ..1..
//
// Two rectangles overlap in time if and only if they share a column. There are at most as many columns as rectangles, and each rectangle
// covers a run of them. `Overlaps` lists the neighbours of each rectangle, for passes that place one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/place/placement_problem.h"

namespace sluice::planner {

/// Rectangles that do not matter have empty runs.
struct Columns {
  std::vector<Interval<std::uint32_t>> runs;  // by rectangle
  std::uint32_t count = 0;
};

/// O(n log n).
inline Columns columns_of(const std::vector<Rectangle>& rectangles) {
  std::vector<std::uint32_t> begins;
  for (std::uint32_t i = 0; i < rectangles.size(); ++i)
    if (rectangles[i].matters()) begins.push_back(i);
  std::vector<std::uint32_t> ends = begins;
  sluice::stable_sort(begins.begin(), begins.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return rectangles[a].time.begin < rectangles[b].time.begin; });
  sluice::stable_sort(ends.begin(), ends.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return rectangles[a].time.end < rectangles[b].time.end; });
  Columns columns{std::vector<Interval<std::uint32_t>>(rectangles.size()), 0};
  bool grown = false;  // has something begun since the last column closed?
  auto begin = begins.begin();
  for (std::uint32_t ending : ends) {
    for (; begin != begins.end() && rectangles[*begin].time.begin < rectangles[ending].time.end; ++begin) {
      columns.runs[*begin].begin = columns.count;
      grown = true;
    }
    if (grown) ++columns.count;
    grown = false;
    columns.runs[ending].end = columns.count;
  }
  return columns;
}

/// Bytes live in each column.
inline std::vector<std::uint64_t> live_sums(const std::vector<Rectangle>& rectangles, const Columns& columns) {
  std::vector<std::uint64_t> sums(columns.count + 1, 0);  // differences first; they wrap and come back
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    if (columns.runs[i].empty()) continue;
    sums[columns.runs[i].begin] += rectangles[i].size;
    sums[columns.runs[i].end] -= rectangles[i].size;
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  sums.pop_back();
  return sums;
}

/// No placement is lower than this: the largest live sum, or the end of a fixed rectangle.
inline std::uint64_t height_bound(const std::vector<Rectangle>& rectangles, const Columns& columns) {
  std::uint64_t bound = 0;
  for (std::uint64_t sum : live_sums(rectangles, columns)) bound = std::max(bound, sum);
  for (const Rectangle& rectangle : rectangles)
    if (rectangle.fixed && rectangle.matters()) bound = std::max(bound, *rectangle.fixed + rectangle.size);
  return bound;
}
inline std::uint64_t height_bound(const std::vector<Rectangle>& rectangles) { return height_bound(rectangles, columns_of(rectangles)); }

/// Who overlaps whom in time.
class Overlaps {
 public:
  /// Lists of more neighbours would take more memory (32 MiB) than a plan is worth.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 22;

  /// Nothing when there are more than `most_pairs`. O(n log n + pairs). The pairs are gone through twice, not kept beside the neighbours.
  static std::optional<Overlaps> find(const std::vector<Rectangle>& rectangles, const Columns& columns, std::size_t most_pairs) {
    std::vector<std::uint32_t> by_begin;
    for (std::uint32_t i = 0; i < rectangles.size(); ++i)
      if (!columns.runs[i].empty()) by_begin.push_back(i);
    sluice::stable_sort(by_begin.begin(), by_begin.end(),
                        [&](std::uint32_t a, std::uint32_t b) { return columns.runs[a].begin < columns.runs[b].begin; });
    std::vector<std::size_t> count(rectangles.size(), 0);
    std::size_t pairs = 0;
    for_each_pair(columns, by_begin, [&](std::uint32_t a, std::uint32_t b) {
      ++count[a];
      ++count[b];
      return ++pairs <= most_pairs;
    });
    if (pairs > most_pairs) return std::nullopt;
    return Overlaps(columns, by_begin, count);
  }

  /// Two for each pair.
  std::size_t count() const noexcept { return neighbours_.size(); }
  std::span<const std::uint32_t> of(std::size_t i) const noexcept { return {neighbours_.data() + first_[i], first_[i + 1] - first_[i]}; }

 private:
  Overlaps(const Columns& columns, const std::vector<std::uint32_t>& by_begin, const std::vector<std::size_t>& count)
      : first_(count.size() + 1, 0) {
    std::partial_sum(count.begin(), count.end(), first_.begin() + 1);
    neighbours_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for_each_pair(columns, by_begin, [&](std::uint32_t a, std::uint32_t b) {
      neighbours_[next[a]++] = b;
      neighbours_[next[b]++] = a;
      return true;
    });
  }

  /// Calls `take` for each pair, the later rectangle first, until it returns false.
  template <class Take>
  static void for_each_pair(const Columns& columns, const std::vector<std::uint32_t>& by_begin, const Take& take) {
    std::vector<std::uint32_t> live;
    for (const std::uint32_t i : by_begin) {
      std::erase_if(live, [&](std::uint32_t other) { return columns.runs[other].end <= columns.runs[i].begin; });
      for (const std::uint32_t other : live)
        if (!take(i, other)) return;
      live.push_back(i);
    }
  }

  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> neighbours_;
};

}  // namespace sluice::planner
