// Half-open ranges [begin, end): steps, rows, channels, bytes. Empty when begin == end; begin > end never occurs in a valid object.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

/// [begin, end) over an ordered, subtractable type.
template <class T>
struct Interval {
  T begin{};
  T end{};

  constexpr auto size() const noexcept { return end - begin; }
  constexpr bool empty() const noexcept { return !(begin < end); }
  constexpr bool contains(T value) const noexcept { return begin <= value && value < end; }
  constexpr bool contains(Interval other) const noexcept { return begin <= other.begin && other.end <= end; }
  constexpr bool overlaps(Interval other) const noexcept { return begin < other.end && other.begin < end; }
  constexpr Interval hull(Interval other) const noexcept { return {std::min(begin, other.begin), std::max(end, other.end)}; }

  friend constexpr bool operator==(const Interval&, const Interval&) noexcept = default;
};

using RowRange = Interval<std::int64_t>;        // rows of a step's output
using ChannelRange = Interval<std::int64_t>;    // output channels of a step
using PanelRange = Interval<std::int64_t>;      // panels of a weight
using ReductionRange = Interval<std::int64_t>;  // products of a sum, in the order in which they are added

/// All products of a sum, however many: what steps do that are not cut along it.
inline constexpr ReductionRange kWholeReduction{0, INT64_MAX};

}  // namespace sluice
