// Compiled once for each target of targets.h by including itself; start reading at `sparse_tile`.
#include "src/kernels/weighted/sparse_tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/sparse_tile.cc"
#include "hwy/foreach_target.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Panels have their blocks at different k, so a tile of two would share no input: of AVX-512's registers a tile of one panel fills as many
// as there are general registers for pointers to its rows. Elsewhere the tiles of dense panels have one panel too.
inline constexpr int kSparseRows = std::min(kTileRows, 11);

/// Vector v of a block.
HWY_INLINE V block_vector(const float* block, int v) { return hn::LoadU(D(), block + v * kVectorLanes); }
struct Brain {
  std::uint16_t bits;
};
HWY_INLINE V block_vector(const Brain* block, int v) {
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::Rebind<std::uint32_t, D> words;
  const auto* from = reinterpret_cast<const std::uint16_t*>(block) + v * kVectorLanes;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, from))));
}
HWY_INLINE V block_vector(const hwy::float16_t* block, int v) {
  const hn::Rebind<hwy::float16_t, D> halves;
  return hn::PromoteTo(D(), hn::LoadU(halves, block + v * kVectorLanes));
}

/// kPanels panels from `p` on: block after block of all of them at once, as long as each has one, then what is left of each.
template <class Value, int kRows, int kPanels>
HWY_NOINLINE void sparse_tile(const TileRows& rows, const TileJob& job, const BlockList* lists, int p) noexcept {
  const D d;
  prefetch_destination<kRows, kPanels>(rows, job, std::int64_t{p} * 16);
  V acc[kPanels][kRows][kPanelVectors];
  HWY_UNROLL(4)
  for (int i = 0; i < kPanels; ++i) begin(acc[i], job, p + i);
  const float* HWY_RESTRICT held[kRows];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) held[m] = in_general(rows.a[m]);
  const std::uint32_t* HWY_RESTRICT places[kPanels];
  const Value* HWY_RESTRICT values[kPanels];
  std::int64_t together = lists[p].count;
  HWY_UNROLL(4)
  for (int i = 0; i < kPanels; ++i) {
    places[i] = lists[p + i].places;
    values[i] = reinterpret_cast<const Value*>(lists[p + i].values);
    together = std::min(together, lists[p + i].count);
  }
  const auto multiply = [&](int i) HWY_ATTR {
    const std::size_t place = *places[i]++;
    V block[kPanelVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < kPanelVectors; ++v) block[v] = block_vector(values[i], v);
    values[i] += 16;
    HWY_UNROLL(16)
    for (int m = 0; m < kRows; ++m) {
      const V input = hn::Set(d, held[m][place]);
      HWY_UNROLL(16)
      for (int v = 0; v < kPanelVectors; ++v) acc[i][m][v] = functions::fused(input, block[v], acc[i][m][v]);
    }
  };
  for (std::int64_t b = 0; b < together; ++b) {
    HWY_UNROLL(4)
    for (int i = 0; i < kPanels; ++i) multiply(i);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kPanels; ++i)
    for (std::int64_t b = together; b < lists[p + i].count; ++b) multiply(i);
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

template <class Value, bool kSingle, std::size_t... kRow>
constexpr std::array<SparseTile, sizeof...(kRow)> sparse_tiles_of(std::index_sequence<kRow...>) {
  return {sparse_tile < Value, static_cast<int>(kRow) + 1, kSingle ? 1 : panels_of_rows(static_cast<int>(kRow) + 1) > ...};
}

template <class Value>
void run_sparse(const TileRows& rows, const TileJob& job, const BlockList* lists) noexcept {
  static constexpr auto kEachRow = std::make_index_sequence<kSparseRows>();
  static constexpr auto kSeveral = sparse_tiles_of<Value, false>(kEachRow);
  static constexpr auto kSingle = sparse_tiles_of<Value, true>(kEachRow);
  const auto row = static_cast<std::size_t>(rows.count - 1);
  const int step = panels_of_rows(rows.count);
  int p = 0;
  for (; p + step <= job.panel_count; p += step) kSeveral[row](rows, job, lists, p);
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, lists, p);
}

/// By SparseForm.
constexpr std::array<SparseTiles, kSparseForms> kSparseTiles{SparseTiles{kSparseRows, run_sparse<float>},
                                                             SparseTiles{kSparseRows, run_sparse<Brain>},
                                                             SparseTiles{kSparseRows, run_sparse<hwy::float16_t>}};

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {
namespace {

const std::array<SparseTiles, kSparseForms>& tables(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, kSparseTiles) }

}  // namespace

const SparseTiles& sparse_tiles(Isa isa, SparseForm form) noexcept { return tables(isa)[static_cast<std::size_t>(form)]; }

}  // namespace sluice::kernels::weighted
#endif
