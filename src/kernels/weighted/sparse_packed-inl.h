// Sparse panels times packed pixels (sparse_tile.h has the picture). Included once for each instruction set; only AVX-512 has such tiles,
// for the loads of its tiles of rows take longer than their multiply-adds.
//
//     28 pixels x a panel: 28 multiply-adds, each with an input from memory, and one load of weights
//
// A core with two FMAs a cycle loads inputs as fast, unless they lie at the same place of different lines: that takes a third longer, and
// input k of neighbouring pixels lies so where a pixel has a multiple of 16 inputs. Hence the half line. All pixels of a strip are at
// constant distances, so that one register addresses them.
#if defined(SLUICE_WEIGHTED_SPARSE_PACKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_SPARSE_PACKED_INL_H_
#undef SLUICE_WEIGHTED_SPARSE_PACKED_INL_H_
#else
#define SLUICE_WEIGHTED_SPARSE_PACKED_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/registers-inl.h"
#include "src/kernels/weighted/sparse_columns-inl.h"
#include "src/kernels/weighted/sparse_tile.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

using PackPixels = void (*)(const TileRows* tiles, int count, std::int64_t values, float* strip) noexcept;
using RunPacked = void (*)(const TileRows* tiles, int count, const TileJob& job, const BlockList* lists, const float* strip) noexcept;

#if HWY_TARGET == HWY_AVX3

/// Where input 0 of copied pixel m lies: of those with an odd number half a line further.
constexpr int place_of_pixel(int m) { return m % 2 == 0 ? m / 2 * 16 : kPackedRows / 2 * 16 + 8 + m / 2 * 16; }

void pack_pixels(const TileRows* tiles, int count, std::int64_t values, float* strip) noexcept {
  const hn::Half<D> d;
  for (int m = 0; m < count; ++m) {
    const float* const a = tiles[m / kPackedTileRows].a[m % kPackedTileRows];
    float* to = strip + place_of_pixel(m);
    std::int64_t k = 0;
    for (; k + 16 <= values; k += 16, to += kPackedPitch) {
      hn::StoreU(hn::LoadU(d, a + k), d, to);
      hn::StoreU(hn::LoadU(d, a + k + 8), d, to + 8);
    }
    for (; k < values; k += 8, to += 8) {
      const auto there = hn::FirstN(d, static_cast<std::size_t>(values - k));
      hn::BlendedStore(hn::MaskedLoad(there, d, a + k), there, d, to);
    }
  }
}

/// All panels of the job.
template <class Value, int kRows>
HWY_NOINLINE void packed_tile(const TileRows* tiles, const TileJob& job, const BlockList* lists, const float* strip) noexcept {
  constexpr int kFirst = std::min(kRows, kPackedTileRows), kSecond = std::max(1, kRows - kPackedTileRows);
  const D d;
  for (int p = 0; p < job.panel_count; ++p) {
    const std::int64_t channel = std::int64_t{p} * 16;
    prefetch_destination<kFirst, 1>(tiles[0], job, channel);
    if constexpr (kRows > kFirst) prefetch_destination<kSecond, 1>(tiles[1], job, channel);
    V first[kFirst][1], second[kSecond][1];
    clear(first);
    clear(second);
    const auto multiply = [&](std::uint32_t place, const Value* values) HWY_ATTR {
      const float* const a = in_general(strip + place);
      const V block = block_vector(values, 0);
      HWY_UNROLL(16)
      for (int m = 0; m < kFirst; ++m) first[m][0] = functions::fused(hn::Set(d, a[place_of_pixel(m)]), block, first[m][0]);
      HWY_UNROLL(16)
      for (int m = kFirst; m < kRows; ++m)
        second[m - kFirst][0] = functions::fused(hn::Set(d, a[place_of_pixel(m)]), block, second[m - kFirst][0]);
    };
    const std::uint32_t* place = lists[p].places;
    const auto* values = reinterpret_cast<const Value*>(lists[p].values);
    const std::uint32_t* const end = place + lists[p].count;
    for (const std::uint32_t* const whole = end - lists[p].count % 2; place != whole; place += 2, values += 32) {
      multiply(place[0], values);
      multiply(place[1], values + 16);
    }
    if (place != end) multiply(*place, values);
    finish(first, tiles[0], job, channel);
    if constexpr (kRows > kFirst) finish(second, tiles[1], job, channel);
  }
}

template <class Value>
void run_packed(const TileRows* tiles, int count, const TileJob& job, const BlockList* lists, const float* strip) noexcept {
  static_assert(kPackedRows == 28 && kPackedStep == 7);
  if (count == 28) return packed_tile<Value, 28>(tiles, job, lists, strip);
  if (count == 21) return packed_tile<Value, 21>(tiles, job, lists, strip);
  if (count == 14) return packed_tile<Value, 14>(tiles, job, lists, strip);
  packed_tile<Value, 7>(tiles, job, lists, strip);
}

inline constexpr PackPixels kPackPixels = pack_pixels;
template <class Value>
inline constexpr RunPacked kRunPacked = run_packed<Value>;

#else

inline constexpr PackPixels kPackPixels = nullptr;
template <class Value>
inline constexpr RunPacked kRunPacked = nullptr;

#endif

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_SPARSE_PACKED_INL_H_
