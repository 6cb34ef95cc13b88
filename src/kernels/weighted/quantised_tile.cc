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
inline constexpr int kFewQuantisedRows = std::min(kFewRows, 3);

/// Values [first, first + count) of all lanes of a panel, as floats.
struct EightBits {
  static HWY_NOINLINE void decode(const std::uint8_t* panel, const TileJob& job, std::int64_t first, std::int64_t count,
                                  float* HWY_RESTRICT to) {
    const D d;
    const hn::Rebind<std::int8_t, D> bytes;
    const hn::Rebind<std::int32_t, D> whole;
    const auto widen = [&](const std::int8_t* at) HWY_ATTR { return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, at))); };
    const auto run = [&](const std::uint8_t* scales, const auto& zero_of, const std::int8_t* q, std::int64_t begin,
                         std::int64_t end) HWY_ATTR {
      for (int v = 0; v < kPanelVectors; ++v) {
        const V scale = hn::LoadU(d, reinterpret_cast<const float*>(scales) + v * kVectorLanes), zero = zero_of(v);
        for (std::int64_t k = begin; k < end; ++k)
          hn::StoreU(hn::Mul(hn::Sub(widen(q + (k - begin) * 16 + v * kVectorLanes), zero), scale), d, to + k * 16 + v * kVectorLanes);
      }
    };
    if (job.k_group == 0) {
      const auto zero_of = [&](int v) HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const float*>(panel) + 16 + v * kVectorLanes); };
      return run(panel, zero_of, reinterpret_cast<const std::int8_t*>(panel) + 128 + first * 16, 0, count);
    }
    for (std::int64_t k = 0; k < count;) {
      const std::int64_t within = (first + k) % job.k_group, end = std::min(count, k + job.k_group - within);
      const std::uint8_t* at = panel + (first + k) / job.k_group * (80 + job.k_group * 16);
      const auto zero_of = [&](int v) HWY_ATTR { return widen(reinterpret_cast<const std::int8_t*>(at) + 64 + v * kVectorLanes); };
      run(at, zero_of, reinterpret_cast<const std::int8_t*>(at) + 80 + within * 16, k, end);
      k = end;
    }
  }
};

/// The same of 4 or 2 bits, `kEach` of them a byte.
template <int kBits>
struct FewBits {
  static constexpr std::int64_t kEach = 8 / kBits;

  static HWY_NOINLINE void decode(const std::uint8_t* panel, const TileJob& job, std::int64_t first, std::int64_t count,
                                  float* HWY_RESTRICT to) {
    const D d;
    const hn::Rebind<std::uint8_t, D> bytes;
    const hn::Rebind<std::int32_t, D> whole;
    const std::int64_t group_bytes = 80 + job.k_group / kEach * 16;
    for (std::int64_t k = 0; k < count;) {
      const std::int64_t within = (first + k) % job.k_group, end = std::min(count, k + job.k_group - within);
      const std::uint8_t* at = panel + (first + k) / job.k_group * group_bytes;
      for (int v = 0; v < kPanelVectors; ++v) {
        const V scale = hn::LoadU(d, reinterpret_cast<const float*>(at) + v * kVectorLanes);
        const V zero = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(bytes, at + 64 + v * kVectorLanes)));
        const std::uint8_t* q = at + 80 + within / kEach * 16 + v * kVectorLanes;
        // The values of a byte are those from i on; of the first and the last byte some may lie outside of [k, end).
        const auto widen = [&](std::int64_t i, const auto& wanted) HWY_ATTR {
          auto rest = hn::PromoteTo(whole, hn::LoadU(bytes, q));
          HWY_UNROLL(4)
          for (std::int64_t n = 0; n < kEach; ++n) {
            const bool last = n + 1 == kEach;  // of the byte: nothing is left above it
            const V value = hn::ConvertTo(d, last ? rest : hn::And(rest, hn::Set(whole, (1 << kBits) - 1)));
            if (wanted(i + n)) hn::StoreU(hn::Mul(hn::Sub(value, zero), scale), d, to + (i + n) * 16 + v * kVectorLanes);
            if (!last) rest = hn::ShiftRight<kBits>(rest);
          }
          q += 16;
        };
        const auto inside = [&](std::int64_t j) { return j >= k && j < end; };
        std::int64_t i = k - within % kEach;
        if (i < k) widen(i, inside), i += kEach;
        for (; i + kEach <= end; i += kEach) widen(i, [](std::int64_t) { return true; });
        if (i < end) widen(i, inside);
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
  std::int64_t done = job.first_value;
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
  if constexpr (kFewQuantisedRows > 0) {
    static constexpr auto kFew = quantised_tiles<Bits, kFewQuantisedPanels>(std::make_index_sequence<kFewQuantisedRows>());
    if (rows.count <= kFewQuantisedRows) {
      for (; p + kFewQuantisedPanels <= job.panel_count; p += kFewQuantisedPanels) kFew[row](rows, job, p);
    }
  }
  for (; p < job.panel_count; ++p) kSingle[row](rows, job, p);
}

const TileTable& quantised_table(QuantisedBits bits) noexcept {
  static constexpr TileTable kEight{.rows = kTileRows, .quantised = true, .panels = run_quantised<EightBits>};
  static constexpr TileTable kFour{.rows = kTileRows, .quantised = true, .panels = run_quantised<FewBits<4>>};
  static constexpr TileTable kTwo{.rows = kTileRows, .quantised = true, .panels = run_quantised<FewBits<2>>};
  return bits == QuantisedBits::kEight ? kEight : bits == QuantisedBits::kFour ? kFour : kTwo;
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
