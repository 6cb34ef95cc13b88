// Sorting that costs little code. The standard library's algorithms are templates of some hundred to two thousand bytes for each comparison,
// and planning sorts in sixty places: a tenth of a trimmed program. Where small code was asked for (docs/small-binaries.md), one merge sort
// that knows an item's bytes alone serves all of them; elsewhere these are the standard algorithms.
//
// Items that lie in one piece of memory only, which iterators of vectors and arrays speak of. Equal items keep their order where
// std::stable_sort would keep it, so that every build makes the same plans; callers of `sort` promise that the order of equal items does not
// matter. Without memory for half of the items, those that move as bytes are sorted by insertion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice {

/// Is item `a` to lie before `b`? `less` is the caller's comparison.
using IsBefore = bool (*)(const void* less, const void* a, const void* b);

struct SortedItems {
  std::byte* data = nullptr;
  std::size_t count = 0;
  std::size_t size = 0;  // of each, at most kMostSortedBytes
};
inline constexpr std::size_t kMostSortedBytes = 256;

/// Sorts items that can be moved as bytes; equal ones keep their order.
void stable_sort_bytes(SortedItems items, IsBefore is_before, const void* less);

namespace detail {

/// Types whose objects may be carried elsewhere as bytes: pairs are among them, although their assignment is a function.
template <class T>
inline constexpr bool kMovesAsBytes = std::is_trivially_copy_constructible_v<T>&& std::is_trivially_destructible_v<T> &&
                                      sizeof(T) <= kMostSortedBytes && alignof(T) <= alignof(std::max_align_t);

template <class T, class Less>
void sort_small(T* items, std::size_t count, const Less& less) {
  if constexpr (kMovesAsBytes<T>) {
    const IsBefore is_before = [](const void* by, const void* a, const void* b) {
      return static_cast<bool>((*static_cast<const Less*>(by))(*static_cast<const T*>(a), *static_cast<const T*>(b)));
    };
    stable_sort_bytes({reinterpret_cast<std::byte*>(items), count, sizeof(T)}, is_before, &less);
  } else {
    std::vector<const T*> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = items + i;
    sort_small(order.data(), count, [&](const T* a, const T* b) { return less(*a, *b); });
    std::vector<T> sorted;
    sorted.reserve(count);
    for (const T* item : order) sorted.push_back(std::move(items[item - items]));
    for (std::size_t i = 0; i < count; ++i) items[i] = std::move(sorted[i]);
  }
}

}  // namespace detail

/// std::stable_sort.
template <class Iterator, class Less = std::less<>>
void stable_sort(Iterator begin, Iterator end, const Less& less = {}) {
  static_assert(std::contiguous_iterator<Iterator>);
#ifdef SLUICE_SMALL_CODE
  if (begin != end) detail::sort_small(std::to_address(begin), static_cast<std::size_t>(end - begin), less);
#else
  std::stable_sort(begin, end, less);
#endif
}

/// std::sort, for items whose order does not matter where they are equal.
template <class Iterator, class Less = std::less<>>
void sort(Iterator begin, Iterator end, const Less& less = {}) {
  static_assert(std::contiguous_iterator<Iterator>);
#ifdef SLUICE_SMALL_CODE
  sluice::stable_sort(begin, end, less);
#else
  std::sort(begin, end, less);
#endif
}

/// std::inplace_merge.
template <class Iterator, class Less>
void merge_in_place(Iterator begin, [[maybe_unused]] Iterator middle, Iterator end, const Less& less) {
#ifdef SLUICE_SMALL_CODE
  sluice::stable_sort(begin, end, less);
#else
  std::inplace_merge(begin, middle, end, less);
#endif
}

}  // namespace sluice
