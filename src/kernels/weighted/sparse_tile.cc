// Compiled once for each target of targets.h by including itself; start reading at `sparse_tile`.
#include "src/kernels/weighted/sparse_tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/sparse_tile.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/sparse_columns-inl.h"
#include "src/kernels/weighted/sparse_packed-inl.h"
#include "src/kernels/weighted/sparse_sums-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

#ifndef SLUICE_WEIGHTED_BITS_SET_
#define SLUICE_WEIGHTED_BITS_SET_
namespace sluice::kernels::weighted {

/// Of each byte, which of its bits are set, lowest first; then zeros.
using BitsSet = std::array<std::array<std::uint8_t, 8>, 256>;
constexpr BitsSet bits_set() noexcept {
  BitsSet all{};
  for (std::size_t byte = 0; byte < all.size(); ++byte)
    for (std::uint8_t bit = 0, count = 0; bit < 8; ++bit)
      if ((byte >> bit & 1) != 0) all[byte][count++] = bit;
  return all;
}
inline constexpr BitsSet kBitsSet = bits_set();

}  // namespace sluice::kernels::weighted
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Panels have their blocks at different k, so a tile of two would share no input: of AVX-512's registers a tile of one panel fills as many
// as there are general registers for pointers to its rows. Elsewhere the tiles of dense panels have one panel too.
inline constexpr int kSparseRows = std::min(kTileRows, 11);

std::int64_t list_places(const SparsePanel& panel, Interval<std::int64_t> values, std::int64_t before, std::int64_t place,
                         std::int64_t skip, std::uint32_t* places) noexcept {
#if HWY_TARGET == HWY_SCALAR
  return panel.for_each(values, before, [&](std::int64_t i) { *places++ = static_cast<std::uint32_t>(place + i + i / 16 * skip); });
#else
  return panel.for_each_word(values, before, [&](std::int64_t first, std::uint64_t bits) HWY_ATTR {
    const auto at = static_cast<std::uint32_t>(place + first + first / 16 * skip), skipped = static_cast<std::uint32_t>(skip);
#if HWY_TARGET == HWY_AVX3
    const hn::CappedTag<std::uint32_t, 16> d;
    auto sixteen = hn::Iota(d, at);
    for (int i = 0; i < 4; ++i, bits >>= 16, sixteen = hn::Add(sixteen, hn::Set(d, 16 + skipped))) {
      std::uint8_t these[8];  // Highway may read so many
      std::memcpy(these, &bits, sizeof these);
      hn::StoreU(hn::Compress(sixteen, hn::LoadMaskBits(d, these)), d, places);
      places += std::popcount(bits & 0xffff);
    }
#else
    constexpr int kFewBits = 16;
    std::uint32_t* const end = places + std::popcount(bits);
    if (end - places <= kFewBits) {
      // Eight at a time, needed or not: a branch for each would be mispredicted once a word.
      for (; places < end; places += 8) {
        HWY_UNROLL(8)
        for (int i = 0; i < 8; ++i, bits &= bits - 1) {
          const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
          places[i] = at + bit + bit / 16 * skipped;
        }
      }
      places = end;
      return;
    }
    const hn::FixedTag<std::uint32_t, 4> d;
    const hn::FixedTag<std::uint8_t, 4> bytes;
    for (std::uint32_t i = 0; i < 64; i += 8, bits >>= 8) {
      const std::uint8_t* const set = kBitsSet[bits & 0xff].data();
      const auto base = hn::Set(d, at + i + i / 16 * skipped);
      hn::StoreU(hn::Add(base, hn::PromoteTo(d, hn::LoadU(bytes, set))), d, places);
      hn::StoreU(hn::Add(base, hn::PromoteTo(d, hn::LoadU(bytes, set + 4))), d, places + 4);
      places += std::popcount(bits & 0xff);
    }
#endif
  });
#endif
}

/// Where a tile is in the lists of its panels.
template <class Value, int kPanels>
struct Cursors {
  const std::uint32_t* HWY_RESTRICT places[kPanels];
  const Value *HWY_RESTRICT values[kPanels], *ends[kPanels];
  std::int64_t together, longest;  // blocks of the shortest list, and of the longest

  HWY_INLINE explicit Cursors(const BlockList* lists) : together(lists[0].count), longest(lists[0].count) {
    HWY_UNROLL(4)
    for (int i = 0; i < kPanels; ++i) {
      places[i] = lists[i].places;
      values[i] = reinterpret_cast<const Value*>(lists[i].values);
      ends[i] = values[i] + lists[i].count * 16;
      together = std::min(together, lists[i].count);
      longest = std::max(longest, lists[i].count);
    }
  }
};

/// Blocks of each panel in a turn of the loop: what counts and steps would else take the place of multiply-adds. Of four of a full tile
/// g++ keeps some accumulators of AVX2's 16 registers in memory.
#if HWY_TARGET == HWY_AVX2
constexpr int blocks_of_step(int panels) { return panels == 1 ? 2 : 4 / panels; }
#else
constexpr int blocks_of_step(int panels) { return 4 / panels; }
#endif

/// kPanels panels from `p` on: block after block of each that still has one, in turns, for one panel's chains alone are few. kFetch: beside
/// each block, what lies as far behind it as the next panels behind these.
template <class Value, int kRows, int kPanels, bool kFetch = false>
HWY_NOINLINE void sparse_tile(const TileRows& rows, const TileJob& job, const BlockList* lists, int p) noexcept {
  const D d;
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kPanels][kRows][kPanelVectors];
  HWY_UNROLL(4)
  for (int i = 0; i < kPanels; ++i) begin(acc[i], job, p + i);
  const float* HWY_RESTRICT held[kRows];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) held[m] = in_general(rows.a[m]);
  Cursors<Value, kPanels> at(lists + p);
  // Tiles of few rows wait for memory most of all; where nothing follows they fetch what they read.
  constexpr bool kFetches = kFetch || kPanels == kMostSparsePanels;
  [[maybe_unused]] const std::ptrdiff_t ahead = job.next_panels != nullptr ? job.next_panels - job.panels : 0;
  const auto multiply = [&](int i, int b) HWY_ATTR {
    const std::size_t place = at.places[i][b];
    const Value* const values = at.values[i] + 16 * b;
    if constexpr (kFetches) __builtin_prefetch(reinterpret_cast<const float*>(values) + ahead, 0, 2);
    V block[kPanelVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < kPanelVectors; ++v) block[v] = block_vector(values, v);
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      const V input = hn::Set(d, held[m][place]);
      HWY_UNROLL(16)
      for (int v = 0; v < kPanelVectors; ++v) acc[i][m][v] = functions::fused(input, block[v], acc[i][m][v]);
    }
  };
  constexpr int kBlocks = blocks_of_step(kPanels);
  const auto step = [&](int i, int blocks) HWY_ATTR {
    // Apart from the pointer to the block, or g++ makes one of both, wants two registers more, and finds them among those of vectors.
    at.places[i] = in_general(at.places[i] + blocks);
    at.values[i] += 16 * blocks;
  };
  const std::int64_t together = at.together / kBlocks * kBlocks;
  const Value* const end_together = at.values[0] + together * 16;
  while (at.values[0] != end_together) {
    HWY_UNROLL(4)
    for (int b = 0; b < kBlocks; ++b) {
      HWY_UNROLL(4)
      for (int i = 0; i < kPanels; ++i) multiply(i, b);
    }
    HWY_UNROLL(4)
    for (int i = 0; i < kPanels; ++i) step(i, kBlocks);
  }
  for (std::int64_t b = together; b < at.longest; ++b) {
    HWY_UNROLL(4)
    for (int i = 0; i < kPanels; ++i) {
      if (at.values[i] == at.ends[i]) continue;
      multiply(i, 0);
      step(i, 1);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kPanels; ++i) end(acc[i], rows, job, p + i);
}

using SparseTile = void (*)(const TileRows&, const TileJob&, const BlockList*, int) noexcept;

// Beyond so many rows, pointers to blocks and places of a second panel find no general registers.
inline constexpr int kMostRowsOfSeveral = 7;

/// How many panels tiles of so many rows take at once: about a dozen chains, where there are registers for them.
constexpr int panels_of_rows(int rows) noexcept {
  const int most = kTileRows * kTilePanels / rows;
  if (most >= kMostSparsePanels && rows * kPanelVectors <= 4) return kMostSparsePanels;
  return most >= 2 && rows <= kMostRowsOfSeveral ? 2 : 1;
}

template <class Value, std::size_t... kRow>
constexpr std::array<SparseTile, sizeof...(kRow)> tiles_of_several(std::index_sequence<kRow...>) {
  return {sparse_tile<Value, kRow + 1, panels_of_rows(kRow + 1)>...};
}
template <class Value, bool kFetch, std::size_t... kRow>
constexpr std::array<SparseTile, sizeof...(kRow)> tiles_of_one(std::index_sequence<kRow...>) {
  return {sparse_tile<Value, kRow + 1, 1, kFetch>...};
}

/// Rows [begin, end) of a tile.
TileRows part_of(const TileRows& rows, int begin, int end) noexcept {
  TileRows part;
  part.count = end - begin;
  std::copy(rows.a + begin, rows.a + end, part.a);
  std::copy(rows.out + begin, rows.out + end, part.out);
  std::copy(rows.residual + begin, rows.residual + end, part.residual);
  return part;
}

template <class Value>
void run_sparse(const TileRows& rows, const TileJob& job, const BlockList* lists, const NextInputs& next) noexcept {
  if (run_even<Value>(rows, job, lists, next)) return;
  if (rows.count > kSparseRows) {
    const int half = rows.count / 2;
    TileJob second = job;
    second.next_panels = nullptr;
    if (job.sums != nullptr) second.sums += half * job.panel_count * 16;
    run_sparse<Value>(part_of(rows, 0, half), job, lists, {});
    return run_sparse<Value>(part_of(rows, half, rows.count), second, lists, {});
  }
  static constexpr auto kEachRow = std::make_index_sequence<kSparseRows>();
  static constexpr auto kSeveral = tiles_of_several<Value>(kEachRow);
  static constexpr auto kSingle = tiles_of_one<Value, false>(kEachRow);
  static constexpr auto kFetching = tiles_of_one<Value, true>(kEachRow);
  const auto row = static_cast<std::size_t>(rows.count - 1);
  const int step = panels_of_rows(rows.count);
  int p = 0;
  if (step > 1)
    for (; p + step <= job.panel_count; p += step) kSeveral[row](rows, job, lists, p);
  const auto& one = job.next_panels == nullptr ? kSingle : kFetching;
  for (; p < job.panel_count; ++p) one[row](rows, job, lists, p);
}

/// By SparseForm.
template <class Value>
constexpr SparseTiles tiles_of() noexcept {
  return {std::max(kEvenRows, kSparseRows),
          kSparseRows,
          list_places,
          run_sparse<Value>,
          kTurnColumns,
          kRunColumns<Value>,
          kPackPixels,
          kRunPacked<Value>};
}
constexpr std::array<SparseTiles, kSparseForms> kSparseTiles{tiles_of<float>(), tiles_of<Brain>(), tiles_of<hwy::float16_t>()};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {
namespace {

const std::array<SparseTiles, kSparseForms>& tables(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kSparseTiles) }

}  // namespace

const SparseTiles& sparse_tiles(Isa isa, SparseForm form) noexcept { return tables(isa)[static_cast<std::size_t>(form)]; }

}  // namespace sluice::kernels::weighted
#endif
