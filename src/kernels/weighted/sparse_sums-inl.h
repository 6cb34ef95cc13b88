// Sparse panels times pixels that lie evenly, read where they lie. Included once for each instruction set; only AVX-512 has such tiles.
//
//     14 pixels x 2 panels: 28 multiply-adds, each with an input from memory, and two loads of weights
//
// Panels have their blocks at different k, so that each has a pointer of its own into the pixels: where these are at constant distances two
// registers and their multiples address all 14 of them, in two halves that may lie anywhere. Tiles of rows keep a pointer for each pixel,
// which leaves none for a second panel.
#if defined(SLUICE_WEIGHTED_SPARSE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_SPARSE_SUMS_INL_H_
#undef SLUICE_WEIGHTED_SPARSE_SUMS_INL_H_
#else
#define SLUICE_WEIGHTED_SPARSE_SUMS_INL_H_
#endif
#ifndef SLUICE_HINT
#define SLUICE_HINT 3
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "src/core/build_list.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/sparse_columns-inl.h"
#include "src/kernels/weighted/sparse_tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

inline constexpr int kEvenRows = kSmallCode ? 0 : 14;
/// Tiles of fewer rows keep a pointer for each.
inline constexpr int kLeastEvenRows = 8;
inline constexpr int kEvenHalf = 7;

/// Do the pixels of each half of a tile lie evenly, and alike in both?
HWY_INLINE bool lies_evenly(const TileRows& rows) {
  const std::ptrdiff_t step = rows.a[1] - rows.a[0];
  bool even = true;
  for (int m = 1; m < rows.count; ++m) even &= m == kEvenHalf || rows.a[m] - rows.a[m - 1] == step;
  return even;
}

/// Where the pixels of a tile lie, in bytes. Of one, three and five steps an address takes one register once, twice or four times.
struct EvenPixels {
  const std::byte* first;
  std::ptrdiff_t one, three, five;
  std::ptrdiff_t half;  // to the second half

  HWY_INLINE explicit EvenPixels(const TileRows& rows)
      : first(bytes_of(rows.a[0])),
        one(bytes_of(rows.a[1]) - first),
        three(3 * one),
        five(5 * one),
        half(bytes_of(rows.a[kEvenHalf]) - first) {
#if HWY_COMPILER_GCC_ACTUAL
    asm("" : "+r"(first), "+r"(one), "+r"(three), "+r"(five), "+r"(half));
#endif
  }
  static const std::byte* bytes_of(const float* at) { return reinterpret_cast<const std::byte*>(at); }

  /// What lies at pixel m of a half that begins at `at`.
  HWY_INLINE float input(const std::byte* at, int m) const {
    const std::ptrdiff_t steps = m == 0   ? 0
                                 : m == 1 ? one
                                 : m == 2 ? 2 * one
                                 : m == 3 ? three
                                 : m == 4 ? 4 * one
                                 : m == 5 ? five
                                          : 2 * three;
    return *reinterpret_cast<const float*>(at + steps);
  }
};

/// Where a tile is in the lists of its panels: in those of the first, and how far behind it in those of the second.
template <class Value, int kPanels>
struct EvenCursors {
  const std::uint32_t* places;
  const Value* values;
  std::ptrdiff_t to_places = 0, to_values = 0;  // bytes

  HWY_INLINE explicit EvenCursors(const BlockList* lists)
      : places(lists[0].places), values(reinterpret_cast<const Value*>(lists[0].values)) {
    if constexpr (kPanels == 2) {
      to_places = reinterpret_cast<const std::byte*>(lists[1].places) - reinterpret_cast<const std::byte*>(places);
      to_values = lists[1].values - lists[0].values;
    }
#if HWY_COMPILER_GCC_ACTUAL
    asm("" : "+r"(to_places), "+r"(to_values));
#endif
  }
  HWY_INLINE std::size_t place(int i, int b) const {
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const std::byte*>(places + b) + (i == 0 ? 0 : to_places));
  }
  HWY_INLINE V block(int i, int b) const {
    return block_vector(reinterpret_cast<const Value*>(reinterpret_cast<const std::byte*>(values + 16 * b) + (i == 0 ? 0 : to_values)), 0);
  }
  HWY_INLINE void step(int blocks) {
    places = in_general(places + blocks);
    values = in_general(values + 16 * blocks);
  }
};

/// The block behind `b` others of each of kOf panels from `i` on: their multiply-adds take turns.
template <int kOf, class Value, int kRows, int kPanels>
HWY_INLINE void multiply_even(V (&acc)[kPanels][kRows][1], const EvenPixels& pixels, const EvenCursors<Value, kPanels>& at, int i, int b) {
  const D d;
  const std::byte *first[kOf], *second[kOf];
  V block[kOf];
  HWY_UNROLL(2)
  for (int j = 0; j < kOf; ++j) {
    first[j] = in_general(pixels.first + sizeof(float) * at.place(i + j, b));
    second[j] = in_general(first[j] + pixels.half);
    block[j] = at.block(i + j, b);
  }
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(2)
    for (int j = 0; j < kOf; ++j) {
      const V input = hn::Set(d, m < kEvenHalf ? pixels.input(first[j], m) : pixels.input(second[j], m - kEvenHalf));
      acc[i + j][m][0] = functions::fused(in_vector(input), block[j], acc[i + j][m][0]);
    }
  }
}

/// What a tile fetches into L2: from `at` on so many bytes a turn, whole lines.
struct EvenFetch {
  const std::byte* at = nullptr;
  std::int64_t bytes = 0;
};

/// kPanels panels from `p` on: block after block of each that still has one, in turns.
template <class Value, int kRows, int kPanels>
HWY_NOINLINE void even_tile(const TileRows& rows, const TileJob& job, const BlockList* lists, int p, EvenFetch& fetch) noexcept {
  static_assert(kRows > kEvenHalf && kRows <= 2 * kEvenHalf && kPanels <= 2);
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kPanels][kRows][1];
  HWY_UNROLL(2)
  for (int i = 0; i < kPanels; ++i) begin(acc[i], job, p + i);
  const std::byte* ahead = fetch.at;
  const EvenPixels pixels(rows);
  EvenCursors<Value, kPanels> at(lists + p);
  constexpr int kBlocks = 2;  // of a turn: what counts and steps would else take the place of multiply-adds
  const std::int64_t together = kPanels == 1 ? lists[p].count : std::min(lists[p].count, lists[p + kPanels - 1].count);
  const std::uint32_t* const end_together = at.places + together / kBlocks * kBlocks;
  while (at.places != end_together) {
    HWY_UNROLL(2)
    for (int b = 0; b < kBlocks; ++b) multiply_even<kPanels>(acc, pixels, at, 0, b);
    at.step(kBlocks);
    for (const std::byte* const to = ahead + fetch.bytes; ahead != to; ahead += 64) __builtin_prefetch(ahead, 0, 2);
  }
  fetch.at = ahead;
  HWY_UNROLL(2)
  for (int i = 0; i < kPanels; ++i) {
    EvenCursors<Value, kPanels> rest = at;
    for (std::int64_t b = lists[p + i].count - together / kBlocks * kBlocks; b > 0; --b, rest.step(1))
      multiply_even<1>(acc, pixels, rest, i, 0);
  }
  HWY_UNROLL(2)
  for (int i = 0; i < kPanels; ++i) end(acc[i], rows, job, p + i);
}

/// Fetches into L2 what lies as far behind the blocks of a panel as the next panels behind these: the tile's part of it.
template <class Value>
void fetch_behind(const BlockList& list, const TileJob& job) noexcept {
  const std::ptrdiff_t behind = reinterpret_cast<const std::byte*>(job.next_panels) - reinterpret_cast<const std::byte*>(job.panels);
  const auto bytes = list.count * static_cast<std::int64_t>(16 * sizeof(Value));
  const std::byte* const first = list.values + behind;
  const std::byte* const end = first + bytes * (job.next_part + 1) / job.next_parts;
  for (const std::byte* at = first + bytes * job.next_part / job.next_parts; at < end; at += 64) __builtin_prefetch(at, 0, 2);
}

using EvenTile = void (*)(const TileRows&, const TileJob&, const BlockList*, int, EvenFetch&) noexcept;

template <class Value, int kPanels, std::size_t... kRow>
constexpr std::array<EvenTile, sizeof...(kRow)> even_tiles(std::index_sequence<kRow...>) {
  return {even_tile<Value, kRow + kLeastEvenRows, kPanels>...};
}

/// All panels of the job, if the pixels are as many as a tile has and lie evenly.
template <class Value>
bool run_even(const TileRows& rows, const TileJob& job, const BlockList* lists, const NextInputs& next) noexcept {
  if constexpr (kEvenRows > 0) {
    static constexpr auto kRows = std::make_index_sequence<std::max(kEvenRows + 1 - kLeastEvenRows, 1)>();
    static constexpr auto kPairs = even_tiles<Value, 2>(kRows);
    static constexpr auto kSingle = even_tiles<Value, 1>(kRows);
    if (rows.count < kLeastEvenRows || !lies_evenly(rows)) return false;
    const auto row = static_cast<std::size_t>(rows.count - kLeastEvenRows);
    std::int64_t turns = 0;
    for (int p = 0; p < job.panel_count; p += 2) turns += lists[p].count / 2;
    EvenFetch fetch{next.begin, ceil_div((next.end - next.begin) / 64, std::max<std::int64_t>(turns, 1)) * 64};
    for (int p = 0; p < job.panel_count; p += 2) {
      const int panels = std::min(2, job.panel_count - p);
      for (int i = 0; job.next_panels != nullptr && i < panels; ++i) fetch_behind<Value>(lists[p + i], job);
      (panels == 2 ? kPairs : kSingle)[row](rows, job, lists, p, fetch);
    }
    return true;
  }
  return false;
}

#else

inline constexpr int kEvenRows = 0;
template <class Value>
bool run_even(const TileRows&, const TileJob&, const BlockList*, const NextInputs&) noexcept {
  return false;
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_SPARSE_SUMS_INL_H_
