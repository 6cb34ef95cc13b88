// Sparse panels with pixels in the lanes of vectors (sparse_tile.h has the picture). Included once for each instruction set; only AVX-512
// has such tiles, for the loads of its tiles of rows take longer than their multiply-adds.
//
//     8 outputs x 3 vectors of 16 pixels: 24 multiply-adds, 3 loads of inputs, 8 of weights; a core has two FMAs and two loads a cycle
//
// A panel's 16 outputs take two passes over its list, for 16 x 3 sums are more than there are registers.
#if defined(SLUICE_WEIGHTED_SPARSE_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_SPARSE_COLUMNS_INL_H_
#undef SLUICE_WEIGHTED_SPARSE_COLUMNS_INL_H_
#else
#define SLUICE_WEIGHTED_SPARSE_COLUMNS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/sparse_tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

struct Brain {
  std::uint16_t bits;
};

/// Vector v of a block.
HWY_INLINE V block_vector(const float* block, int v) { return hn::LoadU(D(), block + v * kVectorLanes); }
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

using TurnColumns = void (*)(const TileRows* tiles, int vectors, std::int64_t values, float* strip) noexcept;
using RunColumns = void (*)(const TileRows* tiles, int vectors, const TileRows& lone, const TileJob& job, const BlockList* lists,
                            const float* strip, const NextInputs& next) noexcept;

#if HWY_TARGET == HWY_AVX3

/// Of four vectors, each a block of four lanes after the other: the block's value 0 of all four, value 1, ...
HWY_INLINE void four_columns(V (&rows)[4]) {
  const D d;
  const hn::RepartitionToWide<D> pairs;
  const auto even_low = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto even_high = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto odd_low = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto odd_high = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
  rows[0] = hn::BitCast(d, hn::InterleaveLower(pairs, even_low, odd_low));
  rows[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, even_low, odd_low));
  rows[2] = hn::BitCast(d, hn::InterleaveLower(pairs, even_high, odd_high));
  rows[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, even_high, odd_high));
}

/// Eight columns of 16 rows: lane m of column i is value i of row m, which `load(m)` gives. Three shuffles a column, for rows that lie four
/// apart share a vector from the first; with quarters of vectors there would be four.
template <class Load>
HWY_INLINE void eight_columns(const Load& load, V (&columns)[8]) {
  V rows[2][4];
  HWY_UNROLL(2)
  for (int half = 0; half < 2; ++half) {
    HWY_UNROLL(4)
    for (int m = 0; m < 4; ++m)
      rows[half][m] = V{_mm512_insertf32x8(_mm512_castps256_ps512(load(8 * half + m)), load(8 * half + m + 4), 1)};
    four_columns(rows[half]);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    columns[i] = V{_mm512_shuffle_f32x4(rows[0][i].raw, rows[1][i].raw, 0x88)};
    columns[4 + i] = V{_mm512_shuffle_f32x4(rows[0][i].raw, rows[1][i].raw, 0xdd)};
  }
}

HWY_NOINLINE void turn_columns(const TileRows* tiles, int vectors, std::int64_t values, float* strip) noexcept {
  const D d;
  const std::int64_t pixels = vectors * 16, whole = values / 8 * 8;
  for (int v = 0; v < vectors; ++v) {
    const float* const* const a = tiles[v].a;
    float* to = strip + v * 16;
    for (std::int64_t k = 0; k < whole; k += 8, to += 8 * pixels) {
      V columns[8];
      eight_columns([&](int m) HWY_ATTR { return _mm256_loadu_ps(a[m] + k); }, columns);
      HWY_UNROLL(8)
      for (int i = 0; i < 8; ++i) hn::StoreU(columns[i], d, to + i * pixels);
    }
    if (whole == values) continue;
    const int count = static_cast<int>(values - whole);
    const auto there = static_cast<__mmask8>((1 << count) - 1);
    V columns[8];
    eight_columns([&](int m) HWY_ATTR { return _mm256_maskz_loadu_ps(there, a[m] + whole); }, columns);
    for (int i = 0; i < count; ++i) hn::StoreU(columns[i], d, to + i * pixels);
  }
}

/// Outputs of a pass: of one vector of pixels all 16 of a panel have registers.
constexpr int outputs_of_pass(int vectors) { return vectors == 1 ? 16 : 8; }
/// Blocks of a turn of the loop. What counts and steps would else take the place of multiply-adds: a tenth of the time.
constexpr int blocks_of_turn(int vectors) { return vectors == 3 ? 2 : 4; }

/// What a pass fetches into L2: a line beside each block, for of many at once some would take the place of lines that it waits for.
struct Lines {
  const std::byte* at;
  std::ptrdiff_t step;  // 0: nothing is to be fetched
};

/// Sums of the outputs from `first` on, to sums[output][pixels]; and, of a pixel that is no part of a vector and whose inputs lie at
/// `lone`, of all outputs.
template <class Value, int kVectors, bool kLone>
HWY_INLINE V sum_columns(const BlockList& list, int first, const float* strip, float* sums, Lines& lines,
                         [[maybe_unused]] const float* lone) noexcept {
  constexpr int kOutputs = outputs_of_pass(kVectors), kBlocks = blocks_of_turn(kVectors);
  const D d;
  V acc[kOutputs][kVectors];
  clear(acc);
  V of_lone = hn::Zero(d);
  const std::uint32_t* place = list.places;
  const auto* values = reinterpret_cast<const Value*>(list.values);
  const auto multiply = [&](std::size_t at, const Value* block) HWY_ATTR {
    const float* const inputs = strip + at * (16 * kVectors);
    V input[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) input[v] = hn::LoadU(d, inputs + 16 * v);
    if constexpr (kLone) of_lone = functions::fused(hn::Set(d, lone[at]), block_vector(block, 0), of_lone);
    const float* weights;
    alignas(64) float widened[16];
    if constexpr (std::is_same_v<Value, float>) {
      weights = block + first;
    } else {
      hn::StoreU(block_vector(block, 0), d, widened);
      weights = widened + first;
    }
    HWY_UNROLL(16)
    for (int o = 0; o < kOutputs; ++o) {
      const V weight = hn::Set(d, weights[o]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) acc[o][v] = functions::fused(input[v], weight, acc[o][v]);
    }
  };
  const std::uint32_t* const end = place + list.count;
  for (const std::uint32_t* const whole = end - list.count % kBlocks; place != whole; place += kBlocks, values += 16 * kBlocks) {
    HWY_UNROLL(4)
    for (int b = 0; b < kBlocks; ++b, lines.at += lines.step) {
      __builtin_prefetch(lines.at, 0, 2);
      multiply(place[b], values + 16 * b);
    }
  }
  for (; place != end; ++place, values += 16) multiply(*place, values);
  HWY_UNROLL(16)
  for (int o = 0; o < kOutputs; ++o) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(acc[o][v], d, sums + o * (16 * kVectors) + 16 * v);
  }
  return of_lone;
}

/// All panels of the job, for pixels of `kVectors` tiles of 16 rows, and for a lone one, which the first pass takes: a 49th pixel costs a
/// multiply-add a block then, and a tile of its own would have all weights come from the second cache once more. The last pass over a
/// panel fetches the panel behind it, which else comes from further away than a pass takes.
template <class Value, int kVectors, bool kLone = false>
HWY_NOINLINE void run_columns_of(const TileRows* tiles, [[maybe_unused]] const TileRows& lone, const TileJob& job, const BlockList* lists,
                                 const float* strip, const NextInputs& next) noexcept {
  constexpr int kOutputs = outputs_of_pass(kVectors);
  alignas(64) float sums[16 * 16 * kVectors];
  const std::byte* inputs = next.begin;
  for (int p = 0; p < job.panel_count; ++p) {
    const std::int64_t first = std::int64_t{p} * 16;
    for (int v = 0; v < kVectors; ++v) prefetch_destination<16, 1>(tiles[v], job, first);
    HWY_UNROLL(2)
    for (int output = 0; output < 16; output += kOutputs) {
      const bool last = output + kOutputs == 16, of_inputs = inputs < next.end && (!last || next.before_weights);
      const BlockList& list = lists[p];
      constexpr std::ptrdiff_t kBlockBytes = 16 * sizeof(Value);
      Lines lines = of_inputs ? Lines{inputs, 64}
                    : last    ? Lines{list.values + list.count * kBlockBytes, kBlockBytes}
                              : Lines{list.values, 0};
      if (kLone && output == 0) {
        V of_lone[1][1] = {{sum_columns<Value, kVectors, kLone>(list, output, strip, sums, lines, lone.a[0])}};
        finish(of_lone, lone, job, first);
      } else {
        sum_columns<Value, kVectors, false>(list, output, strip, sums + output * (16 * kVectors), lines, nullptr);
      }
      if (of_inputs) inputs = lines.at;
    }
    for (int v = 0; v < kVectors; ++v) {
      V acc[16][1];
      HWY_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        V pixels[8];
        eight_columns([&](int o) HWY_ATTR { return _mm256_load_ps(sums + o * (16 * kVectors) + 16 * v + 8 * half); }, pixels);
        HWY_UNROLL(8)
        for (int m = 0; m < 8; ++m) acc[8 * half + m][0] = pixels[m];
      }
      finish(acc, tiles[v], job, first);
    }
  }
}

template <class Value>
void run_columns(const TileRows* tiles, int vectors, const TileRows& lone, const TileJob& job, const BlockList* lists, const float* strip,
                 const NextInputs& next) noexcept {
  static_assert(kMostColumnVectors == 3);
  if (lone.count > 0) return run_columns_of<Value, 3, true>(tiles, lone, job, lists, strip, next);
  if (vectors == 3) return run_columns_of<Value, 3>(tiles, lone, job, lists, strip, next);
  if (vectors == 2) return run_columns_of<Value, 2>(tiles, lone, job, lists, strip, next);
  run_columns_of<Value, 1>(tiles, lone, job, lists, strip, next);
}

inline constexpr TurnColumns kTurnColumns = turn_columns;
template <class Value>
inline constexpr RunColumns kRunColumns = run_columns<Value>;

#else

inline constexpr TurnColumns kTurnColumns = nullptr;
template <class Value>
inline constexpr RunColumns kRunColumns = nullptr;

#endif

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_SPARSE_COLUMNS_INL_H_
