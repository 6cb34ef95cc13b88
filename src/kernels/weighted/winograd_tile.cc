// Compiled once for each target of targets.h by including itself. The formulas are those of winograd_points.h.
#include "src/kernels/weighted/winograd_tile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "sluice/core/cpu.h"
#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/winograd_tile.cc"
#include "hwy/foreach_target.h"
#if SLUICE_BUILDS_TARGET
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

namespace points = winograd::points;

inline constexpr std::int64_t kTaps = 9;
// Channels of one turn of the inner loop.
inline constexpr std::int64_t kDepthStep = 4;

HWY_INLINE V times(float factor, V x) { return hn::Mul(x, hn::Set(D(), factor)); }
/// x * factor + sum, rounded once.
HWY_INLINE V plus(V x, float factor, V sum) { return functions::fused(x, hn::Set(D(), factor), sum); }

HWY_INLINE void input_points(const V (&x)[6], V (&y)[6]) {
  y[0] = plus(x[0], points::kProduct, plus(x[2], -points::kSum, x[4]));
  const V even_a = plus(x[2], -points::kB2, x[4]), odd_a = plus(x[1], -points::kB2, x[3]);
  y[1] = plus(odd_a, points::kA, even_a);
  y[2] = plus(odd_a, -points::kA, even_a);
  const V even_b = plus(x[2], -points::kA2, x[4]), odd_b = plus(x[1], -points::kA2, x[3]);
  y[3] = plus(odd_b, points::kB, even_b);
  y[4] = plus(odd_b, -points::kB, even_b);
  y[5] = plus(x[1], points::kProduct, plus(x[3], -points::kSum, x[5]));
}

HWY_INLINE void output_points(const V (&m)[6], V (&y)[4]) {
  const V sum_a = hn::Add(m[1], m[2]), difference_a = hn::Sub(m[1], m[2]);
  const V sum_b = hn::Add(m[3], m[4]), difference_b = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], sum_a), sum_b);
  y[1] = plus(difference_b, points::kB, times(points::kA, difference_a));
  y[2] = plus(sum_b, points::kB2, times(points::kA2, sum_a));
  y[3] = plus(difference_b, points::kB3, plus(difference_a, points::kA3, m[5]));
}

HWY_INLINE void weight_points(V g0, V g1, V g2, V (&y)[6]) {
  const V even_a = plus(g2, points::kWeightA2, times(points::kWeightA0, g0)),
          even_b = plus(g2, points::kWeightB2, times(points::kWeightB0, g0));
  y[0] = times(points::kWeight0, g0);
  y[1] = plus(g1, points::kWeightA1, even_a);
  y[2] = plus(g1, -points::kWeightA1, even_a);
  y[3] = plus(g1, points::kWeightB1, even_b);
  y[4] = plus(g1, -points::kWeightB1, even_b);
  y[5] = g2;
}

template <bool kFull>
HWY_INLINE void input_lanes(const float* const* pixels, std::int64_t k, int live, float* v, std::int64_t point) {
  const D d;
  V columns[6][6];
  HWY_UNROLL(6)
  for (int j = 0; j < 6; ++j) {
    V x[6], y[6];
    HWY_UNROLL(6)
    for (int i = 0; i < 6; ++i) x[i] = kFull ? hn::LoadU(d, pixels[i * 6 + j] + k) : load_lanes(pixels[i * 6 + j] + k, live);
    input_points(x, y);
    HWY_UNROLL(6)
    for (int i = 0; i < 6; ++i) columns[i][j] = y[i];
  }
  HWY_UNROLL(6)
  for (int i = 0; i < 6; ++i) {
    V y[6];
    input_points(columns[i], y);
    HWY_UNROLL(6)
    for (int j = 0; j < 6; ++j) hn::StoreU(y[j], d, v + (i * 6 + j) * point + k);
  }
}

HWY_NOINLINE void transform_input(const float* const* pixels, std::int64_t depth, float* v, std::int64_t point) noexcept {
  std::int64_t k = 0;
  for (; k + kVectorLanes <= depth; k += kVectorLanes) input_lanes<true>(pixels, k, 0, v, point);
  if (k < depth) input_lanes<false>(pixels, k, static_cast<int>(depth - k), v, point);
}

HWY_NOINLINE void transform_weights(const RawPanels& panel, float* u, std::int64_t point) noexcept {
  const D d;
  const std::int64_t tap = panel.tap, floats = panel.depth * 16;
  for (std::int64_t i = 0; i < floats; i += kVectorLanes) {
    V rows[6][3];
    HWY_UNROLL(3)
    for (int x = 0; x < 3; ++x) {
      const float* g = panel.data + x * tap + i;
      V y[6];
      weight_points(hn::LoadU(d, g), hn::LoadU(d, g + 3 * tap), hn::LoadU(d, g + 6 * tap), y);
      HWY_UNROLL(6)
      for (int row = 0; row < 6; ++row) rows[row][x] = y[row];
    }
    HWY_UNROLL(6)
    for (int row = 0; row < 6; ++row) {
      V y[6];
      weight_points(rows[row][0], rows[row][1], rows[row][2], y);
      HWY_UNROLL(6)
      for (int x = 0; x < 6; ++x) hn::StoreU(y[x], d, u + (row * 6 + x) * point + i);
    }
  }
}

/// `next` is fetched while the tile works, `next_step` floats for each kDepthStep.
template <int kRows, int kPanels>
HWY_NOINLINE void multiply_tile(const float* v, const float* HWY_RESTRICT u, float* m, const Products& job, const float* next,
                                std::int64_t next_step) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const D d;
  V acc[kRows][kVectors];
  const float* HWY_RESTRICT a[kRows];
  HWY_UNROLL(16)
  for (int row = 0; row < kRows; ++row) {
    a[row] = v + row * job.v_square;
    HWY_UNROLL(16)
    for (int i = 0; i < kVectors; ++i) acc[row][i] = job.first ? hn::Zero(d) : hn::LoadU(d, m + row * kSquareFloats + i * kVectorLanes);
  }
  const std::int64_t depth = job.depth, panel = job.u_panel;
  const auto multiply = [&](std::int64_t k) HWY_ATTR {
    V weights[kVectors];
    HWY_UNROLL(16)
    for (int i = 0; i < kVectors; ++i) weights[i] = hn::LoadU(d, u + i / kPanelVectors * panel + i % kPanelVectors * kVectorLanes);
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) {
      const V input = hn::Set(d, a[row][k]);
      HWY_UNROLL(16)
      for (int i = 0; i < kVectors; ++i) acc[row][i] = functions::fused(input, weights[i], acc[row][i]);
    }
    u += 16;
  };
  std::int64_t k = 0;
  for (; k + kDepthStep <= depth; k += kDepthStep, next += next_step) {
    __builtin_prefetch(next, 0, 2);
    HWY_UNROLL(4)
    for (std::int64_t i = 0; i < kDepthStep; ++i) multiply(k + i);
  }
  for (; k < depth; ++k) multiply(k);
  HWY_UNROLL(16)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(16)
    for (int i = 0; i < kVectors; ++i) hn::StoreU(acc[row][i], d, m + row * kSquareFloats + i * kVectorLanes);
  }
}

/// All panels, one after the other, as `short_tile` does it (tile.cc). `next`: `lines` of 16 floats to fetch.
template <int kRows>
HWY_NOINLINE void short_multiply(const float* v, const float* HWY_RESTRICT u, float* m, const Products& job, const float* next,
                                 std::int64_t lines) {
  const D d;
  for (std::int64_t i = 0; i < lines; ++i) __builtin_prefetch(next + i * 16, 0, 2);
  for (int p = 0; p < job.panels; ++p, u += job.u_panel, m += 16) {
    V acc[kRows][kPanelVectors];
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) {
      HWY_UNROLL(16)
      for (int i = 0; i < kPanelVectors; ++i)
        acc[row][i] = job.first ? hn::Zero(d) : hn::LoadU(d, m + row * kSquareFloats + i * kVectorLanes);
    }
    const float* HWY_RESTRICT held[kRows];
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) held[row] = in_general(v + row * job.v_square) + job.depth;
    const float* HWY_RESTRICT b = u;
    for (std::int64_t k = -job.depth; k < 0; ++k, b += 16) {
      V weights[kPanelVectors];
      HWY_UNROLL(16)
      for (int i = 0; i < kPanelVectors; ++i) weights[i] = hn::LoadU(d, b + i * kVectorLanes);
      HWY_UNROLL(16)
      for (int row = 0; row < kRows; ++row) {
        const V input = hn::Set(d, held[row][k]);
        HWY_UNROLL(16)
        for (int i = 0; i < kPanelVectors; ++i) acc[row][i] = functions::fused(input, weights[i], acc[row][i]);
      }
    }
    forget();
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) {
      HWY_UNROLL(16)
      for (int i = 0; i < kPanelVectors; ++i) hn::StoreU(acc[row][i], d, m + row * kSquareFloats + i * kVectorLanes);
    }
  }
}

using ShortMultiply = void (*)(const float*, const float*, float*, const Products&, const float*, std::int64_t);

template <std::size_t... kRow>
constexpr std::array<ShortMultiply, sizeof...(kRow)> short_multiplies(std::index_sequence<kRow...>) {
  return {short_multiply<static_cast<int>(kRow) + 1>...};
}

using MultiplyTile = void (*)(const float*, const float*, float*, const Products&, const float*, std::int64_t);

template <int kPanels, std::size_t... kRow>
constexpr std::array<MultiplyTile, sizeof...(kRow)> multiply_tiles(std::index_sequence<kRow...>) {
  return {multiply_tile<static_cast<int>(kRow) + 1, kPanels>...};
}

/// As multiply_points, for short sums: 5 to 10 % less at 64 and 128 channels, where a 512-bit FMA takes two passes.
void multiply_short_points(const Products& job) {
  constexpr int kRows = std::max(1, kShortRows);
  static constexpr auto kTiles = short_multiplies(std::make_index_sequence<kRows>());
  const std::int64_t tiles = (job.squares + kRows - 1) / kRows;
  // What comes next is fetched tap by tap, a tap by the tiles of a few points.
  const std::int64_t tap_parts = winograd::kPoints / (kTaps * job.panels) * tiles;
  const std::int64_t lines = job.next.data == nullptr ? 0 : (job.next.depth + tap_parts - 1) / tap_parts;
  for (std::int64_t point = 0; point < winograd::kPoints; ++point) {
    std::int64_t square = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t rows = (job.squares - square + tiles - tile - 1) / (tiles - tile);
      const std::int64_t part = point * tiles + tile;
      const float* const next = lines == 0 ? nullptr : job.next.data + part / tap_parts * job.next.tap + part % tap_parts * lines * 16;
      kTiles[static_cast<std::size_t>(rows - 1)](job.v + point * job.v_point + square * job.v_square, job.u + point * job.u_point,
                                                 job.m + point * job.m_point + square * kSquareFloats, job, next, lines);
      square += rows;
    }
  }
}

void multiply_points(const Products& job) noexcept {
  if constexpr (kShortRows > 0) {
    static const bool short_sums = avx512_takes_two_passes();
    const bool enough_chains = job.squares > 3;
    if (short_sums && enough_chains && job.depth <= kMostShortProducts) return multiply_short_points(job);
  }
  static constexpr auto kSingle = multiply_tiles<1>(std::make_index_sequence<kTileRows>());
  static constexpr auto kWide = multiply_tiles<kTilePanels>(std::make_index_sequence<kTileRows>());
  const std::int64_t tiles = (job.squares + kTileRows - 1) / kTileRows;
  // What comes next is fetched tap by tap; a tap by the tiles of a few points.
  const std::int64_t tap_parts = winograd::kPoints / (kTaps * job.panels) * tiles;
  const std::int64_t next_step = job.next.data == nullptr ? 0 : kDepthStep * 16 / tap_parts;
  const float* next_tap = job.next.data == nullptr ? job.v : job.next.data;
  const float* next = next_tap;
  std::int64_t tap_part = 0;
  for (std::int64_t point = 0; point < winograd::kPoints; ++point) {
    std::int64_t square = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const auto rows = static_cast<std::size_t>((job.squares - square + tiles - tile - 1) / (tiles - tile));
      const float* const v = job.v + point * job.v_point + square * job.v_square;
      const float* const u = job.u + point * job.u_point;
      float* const m = job.m + point * job.m_point + square * kSquareFloats;
      int p = 0;
      for (; p + kTilePanels <= job.panels; p += kTilePanels) kWide[rows - 1](v, u + p * job.u_panel, m + p * 16, job, next, next_step);
      for (; p < job.panels; ++p) kSingle[rows - 1](v, u + p * job.u_panel, m + p * 16, job, next, next_step);
      square += static_cast<std::int64_t>(rows);
      next += job.next.depth / kDepthStep * next_step;
      if (++tap_part == tap_parts) {
        tap_part = 0;
        next = next_tap += job.next.tap;
      }
    }
  }
}

HWY_NOINLINE void transform_output(const float* m, std::int64_t point, const TileRows& rows, const TileJob& job) noexcept {
  const D d;
  for (std::int64_t first = 0; first < job.panel_count * 16; first += kVectorLanes) {
    V columns[4][6];
    HWY_UNROLL(6)
    for (int j = 0; j < 6; ++j) {
      V x[6], y[4];
      HWY_UNROLL(6)
      for (int i = 0; i < 6; ++i) x[i] = hn::LoadU(d, m + (i * 6 + j) * point + first);
      output_points(x, y);
      HWY_UNROLL(4)
      for (int i = 0; i < 4; ++i) columns[i][j] = y[i];
    }
    V acc[16][1];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      V y[4];
      output_points(columns[i], y);
      HWY_UNROLL(4)
      for (int j = 0; j < 4; ++j) acc[4 * i + j][0] = y[j];
    }
    finish(acc, rows, job, first);
  }
}

const WinogradTable& winograd_loops() noexcept {
  static constexpr WinogradTable kTable{
      .input = transform_input, .weights = transform_weights, .multiply = multiply_points, .output = transform_output};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();
#endif  // SLUICE_BUILDS_TARGET

#if HWY_ONCE
#include <array>

#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {

const WinogradTable& winograd_table(Isa isa) noexcept { SLUICE_RETURN_FOR_ISA(isa, winograd_loops()) }

const WinogradTable& narrow_winograd_table(Isa isa, NarrowForm form) noexcept {
  using Tables = std::array<std::array<WinogradTable, kNarrowForms>, 4>;
  static const Tables kTables = [] {
    Tables tables;
    for (const Isa each : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512})
      for (std::size_t i = 0; i < kNarrowForms; ++i) {
        WinogradTable& table = tables[static_cast<std::size_t>(each)][i] = winograd_table(each);
        table.widen = widen_of(each, static_cast<NarrowForm>(i));
      }
    return tables;
  }();
  return kTables[static_cast<std::size_t>(isa)][static_cast<std::size_t>(form)];
}

}  // namespace sluice::kernels::weighted
#endif
