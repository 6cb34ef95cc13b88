// Compiled once for each target of targets.h by including itself; start reading at `quantised_tile`.
#include "src/kernels/weighted/quantised_tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/weighted/quantised_tile.cc"
#include "hwy/foreach_target.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile_shape-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// k that are floats at one time: with four panels 16 KiB, half of the first cache.
inline constexpr std::int64_t kDecoded = 64;
// With a row or three the chains are too few to hide the latency of an FMA: take more panels at once.
inline constexpr int kFewQuantisedPanels = 4;

/// Values first, first + 1, ... of all lanes of a panel of 8 bits.
struct EightBits {
  static HWY_NOINLINE void decode(const std::uint8_t* panel, const TileJob&, std::int64_t first, std::int64_t count,
                                  float* HWY_RESTRICT to) {
    const D d;
    const hn::Rebind<std::int8_t, D> bytes;
    const hn::Rebind<std::int32_t, D> whole;
    const auto* head = reinterpret_cast<const float*>(panel);
    const auto* q = reinterpret_cast<const std::int8_t*>(panel) + 128 + first * 16;
    for (int v = 0; v < kPanelVectors; ++v) {
      const V scale = hn::LoadU(d, head + v * kVectorLanes), zero = hn::LoadU(d, head + 16 + v * kVectorLanes);
      for (std::int64_t k = 0; k < count; ++k) {
        const V value = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, q + k * 16 + v * kVectorLanes)));
        hn::StoreU(hn::Mul(hn::Sub(value, zero), scale), d, to + k * 16 + v * kVectorLanes);
      }
    }
  }
};

/// The same of 4 bits; `first` is even.
struct FourBits {
  static HWY_NOINLINE void decode(const std::uint8_t* panel, const TileJob& job, std::int64_t first, std::int64_t count,
                                  float* HWY_RESTRICT to) {
    const D d;
    const hn::Rebind<std::uint8_t, D> bytes;
    const hn::Rebind<std::int32_t, D> whole;
    const std::int64_t group_bytes = 80 + job.k_group * 8;
    for (std::int64_t k = 0; k < count;) {
      const std::int64_t group = (first + k) / job.k_group, within = (first + k) % job.k_group;
      const std::int64_t end = std::min(count, k + job.k_group - within);
      const std::uint8_t* at = panel + group * group_bytes;
      for (int v = 0; v < kPanelVectors; ++v) {
        const V scale = hn::LoadU(d, reinterpret_cast<const float*>(at) + v * kVectorLanes);
        const V zero = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, at + 64 + v * kVectorLanes)));
        const std::uint8_t* q = at + 80 + within * 8 + v * kVectorLanes;
        for (std::int64_t i = k; i < end; i += 2, q += 16) {
          const auto both = hn::PromoteTo(whole, hn::LoadU(bytes, q));
          const V low = hn::ConvertTo(d, hn::And(both, hn::Set(whole, 15))), high = hn::ConvertTo(d, hn::ShiftRight<4>(both));
          float* out = to + i * 16 + v * kVectorLanes;
          hn::StoreU(hn::Mul(hn::Sub(low, zero), scale), d, out);
          if (i + 1 < end) hn::StoreU(hn::Mul(hn::Sub(high, zero), scale), d, out + 16);
        }
      }
      k = end;
    }
  }
};

template <class Bits, int kRows, int kPanels>
HWY_NOINLINE void quantised_tile(const TileRows& rows, const TileJob& job, int p) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const D d;
  alignas(64) float values[kPanels][kDecoded * 16];
  const auto* panels = reinterpret_cast<const std::uint8_t*>(job.panels);
  const std::int64_t panel_bytes = job.panel_floats * 4;
  V acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (int m = 0; m < kRows; ++m) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) acc[m][v] = hn::Zero(d);
  }
  std::int64_t done = 0;
  for (std::int64_t s = 0; s < job.segments; ++s) {
    for (std::int64_t first = 0; first < job.depth; first += kDecoded) {
      const std::int64_t count = std::min(kDecoded, job.depth - first);
      for (int i = 0; i < kPanels; ++i) Bits::decode(panels + (p + i) * panel_bytes, job, done, count, values[i]);
      done += count;
      const float* HWY_RESTRICT a[kRows];
      HWY_UNROLL(16)
      for (int m = 0; m < kRows; ++m) a[m] = rows.a[m] + job.segment_offsets[s] + first;
      for (std::int64_t k = 0; k < count; ++k) {
        V weights[kVectors];
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) weights[v] = hn::Load(d, values[v / kPanelVectors] + k * 16 + v % kPanelVectors * kVectorLanes);
        HWY_UNROLL(16)
        for (int m = 0; m < kRows; ++m) {
          const V input = hn::Set(d, a[m][k]);
          HWY_UNROLL(16)
          for (int v = 0; v < kVectors; ++v) acc[m][v] = functions::fused(input, weights[v], acc[m][v]);
        }
      }
    }
  }
  finish(acc, rows, job, std::int64_t{p} * 16);
}

using QuantisedTile = void (*)(const TileRows&, const TileJob&, int);

template <class Bits, int kPanels, std::size_t... kRow>
constexpr std::array<QuantisedTile, sizeof...(kRow)> quantised_tiles(std::index_sequence<kRow...>) {
  return {quantised_tile<Bits, static_cast<int>(kRow) + 1, kPanels>...};
}

template <class Bits>
void run_quantised(const TileRows& rows, const TileJob& job) noexcept {
  static constexpr auto kSingle = quantised_tiles<Bits, 1>(std::make_index_sequence<kTileRows>());
  const auto row = static_cast<std::size_t>(rows.count - 1);
  int p = 0;
  if constexpr (kFewRows > 0) {
    static constexpr auto kFew = quantised_tiles<Bits, kFewQuantisedPanels>(std::make_index_sequence<kFewRows>());
    if (rows.count <= kFewRows) {
      for (; p + kFewQuantisedPanels <= job.panel_count; p += kFewQuantisedPanels) kFew[row](rows, job, p);
    }
  }
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, p);
}

const TileTable& quantised_table(QuantisedBits bits) noexcept {
  static constexpr TileTable kEight{.rows = kTileRows, .panels = run_quantised<EightBits>};
  static constexpr TileTable kFour{.rows = kTileRows, .panels = run_quantised<FourBits>};
  return bits == QuantisedBits::kEight ? kEight : kFour;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "src/kernels/for_isa.h"

namespace sluice::kernels::weighted {

const TileTable& quantised_tile_table(Isa isa, QuantisedBits bits) noexcept { SLUICE_RETURN_FOR_ISA(isa, quantised_table(bits)) }

}  // namespace sluice::kernels::weighted
#endif
