#include "sluice/core/sort.h"

#include <cstring>
#include <memory>
#include <new>

#include "src/core/build_list.h"

namespace sluice {
namespace {

/// Of no more items insertion takes less time than cutting them in two.
constexpr std::size_t kFewItems = 16;

struct Sorter {
  IsBefore is_before;
  const void* less;
  std::size_t size;
  std::byte* room = nullptr;  // for half of the items

  /// Each item goes behind the last one that is not greater.
  void insert(std::byte* items, std::size_t count) const {
    alignas(std::max_align_t) std::byte item[kMostSortedBytes];
    for (std::size_t i = 1; i < count; ++i) {
      std::byte* const end = items + i * size;
      std::byte* to = end;
      while (to != items && is_before(less, end, to - size)) to -= size;
      if (to == end) continue;
      std::memcpy(item, end, size);
      std::memmove(to + size, to, static_cast<std::size_t>(end - to));
      std::memcpy(to, item, size);
    }
  }

  void sort(std::byte* items, std::size_t count) const {
    if (count <= kFewItems) return insert(items, count);
    const std::size_t half = count / 2;
    std::byte *const middle = items + half * size, *const end = items + count * size;
    sort(items, half);
    sort(middle, count - half);
    if (!is_before(less, middle, middle - size)) return;
    std::memcpy(room, items, half * size);
    const std::byte *left = room, *const left_end = room + half * size, *right = middle;
    for (std::byte* to = items; left != left_end; to += size) {
      const bool takes_right = right != end && is_before(less, right, left);
      const std::byte*& from = takes_right ? right : left;
      std::memcpy(to, from, size);
      from += size;
    }
  }
};

}  // namespace

SLUICE_ONE_COPY void stable_sort_bytes(SortedItems items, IsBefore is_before, const void* less) {
  Sorter sorter{is_before, less, items.size};
  if (items.count <= kFewItems) return sorter.insert(items.data, items.count);
  // As aligned as any item: it comes from operator new.
  const std::unique_ptr<std::byte[]> room(new (std::nothrow) std::byte[items.count / 2 * items.size]);
  if (room == nullptr) return sorter.insert(items.data, items.count);
  sorter.room = room.get();
  sorter.sort(items.data, items.count);
}

}  // namespace sluice
