// The inner loops of plain operators that vectors make several times as fast, one copy an instruction set.
//
// Way to here: an operator's `run` splits its tensors into lines, rows or places and calls these with pointers. Start reading at `sum`.
//
// Invariants: the same bits on every instruction set. Sums are of double values, sixteen of them side by side: value i goes to sum
// i mod 16, and the sixteen are added in halves (8 and 8, 4 and 4, ...), whatever a vector holds; products likewise. No product is fused
// with an addition.
// Nothing outside the values named is read or written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::plain {

/// What the widest vector has.
inline constexpr std::int64_t kMostLanes = 16;

/// What a sum adds of each value.
enum class Term : std::uint8_t { kValue, kMagnitude, kSquare };

/// (x - mean) * scale * factor + shift, in double.
struct Rescale {
  double mean = 0, scale = 1, factor = 1, shift = 0;
};

/// Values along an axis of which several places lie side by side: value k of place i is at values + k * step + i.
struct Columns {
  const float* values = nullptr;
  std::int64_t step = 0;
  std::int64_t extent = 0;
};

/// Which extreme is meant: the largest or the smallest, and of equals the first or the last.
struct Extreme {
  bool largest = true;
  bool last = false;
};

/// Places of a grid as sums of taps that lie in a plane (GridSample): `taps` rows of kSampleLanes outputs each.
inline constexpr std::int64_t kSampleLanes = 16;
inline constexpr std::int64_t kSampleChannels = 16;
struct SampleTaps {
  const std::int32_t* places = nullptr;  // negative: it lies outside and counts as zero
  const double* weights = nullptr;
  int taps = 0;
};

/// How the coordinates of a grid lie on an image of two axes, linearly interpolated.
struct GridSquares {
  std::int64_t rows = 0, columns = 0;
  bool align = false;   // -1 and 1 are the centres of the outer places, else their ends
  bool border = false;  // what lies outside is the nearest inside, else nothing
};

/// Values in the order in which they are chosen, as integers that rise with it: a larger one is better. NaN is the worst of all, both zeros
/// are equal. Below all of them lies kNoKey.
inline constexpr std::int32_t kNoKey = INT32_MIN;
/// A key with its place: larger is better, of equal keys the first place. `place` < 2^32.
constexpr std::uint64_t packed_key(std::int32_t key, std::int64_t place) noexcept {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key) ^ 0x8000'0000u) << 32) |
         (0xffff'ffffu - static_cast<std::uint32_t>(place));
}
/// The key of a value that is no NaN; the larger the better.
inline std::int32_t key_of_value(float x) noexcept {
  const auto bits = std::bit_cast<std::int32_t>(x + 0.0f);
  return bits ^ (bits >> 31 & 0x7fff'ffff);
}
constexpr std::int64_t place_of(std::uint64_t packed) noexcept { return 0xffff'ffffu - static_cast<std::uint32_t>(packed); }
constexpr std::int32_t key_of(std::uint64_t packed) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(packed >> 32) ^ 0x8000'0000u);
}

/// Where a scan for better values begins and ends, and where it puts what it finds.
struct Scan {
  const float* values = nullptr;
  std::int64_t next = 0, end = 0;  // places that are still to be looked at; the scan moves `next`
  std::int32_t above = kNoKey;     // keys must be larger
  bool largest = true;
  std::uint64_t* found = nullptr;
  std::int64_t count = 0, room = 0;  // the scan stops where a vector's finds might not fit
};

struct VectorTable {
  double (*sum)(Term term, const float* x, std::int64_t n) noexcept;
  /// sums[r] += the sum of row r, x[r * n, r * n + n)
  void (*sum_rows)(Term term, const float* x, std::int64_t rows, std::int64_t n, double* sums) noexcept;
  double (*product)(const float* x, std::int64_t n) noexcept;
  /// Of (x - centre) squared.
  double (*squares)(double centre, const float* x, std::int64_t n) noexcept;
  /// sums[i] += the term of x[i]
  void (*add)(Term term, const float* x, double* sums, std::int64_t n) noexcept;
  void (*rescale)(const Rescale& by, const float* x, float* out, std::int64_t n) noexcept;
  /// best[r] = the extreme of row r, x[r * n, r * n + n), n >= 1: of equals the first. Where there are NaN, the last of them.
  void (*extremes)(bool largest, const float* x, std::int64_t rows, std::int64_t n, float* best) noexcept;
  /// best[i] = the better of the two, of equals best[i] itself; a NaN is better than anything but a NaN before it.
  void (*keep_extremes)(bool largest, const float* x, float* best, std::int64_t n) noexcept;
  /// The place of the extreme. NaN is never better than what came before it.
  std::int64_t (*extreme_place)(Extreme which, const float* x, std::int64_t n) noexcept;
  /// The same for each of `places` columns.
  void (*extreme_places)(Extreme which, const Columns& x, std::int64_t places, std::int64_t* best) noexcept;
  /// Collects packed keys until the end of the values, or of the room.
  void (*scan)(Scan& scan) noexcept;
  /// The places of the k best of n values in their order. `keys`: room for n, rounded up to kMostLanes.
  void (*best_places)(bool largest, const float* x, std::int64_t n, std::int64_t k, std::int32_t* keys, std::int64_t* places) noexcept;
  /// out[i] = the sum over the taps of weight * plane[place], for i < n <= kSampleLanes, in double and in the order of the taps.
  void (*sample)(const SampleTaps& taps, const float* plane, float* out, std::int64_t n) noexcept;
  /// The same of kSampleChannels planes at once, which lie as pixels do: [place][channel] to [output][channel].
  void (*sample_pixels)(const SampleTaps& taps, const float* pixels, float* out, std::int64_t n) noexcept;
  /// The four taps of kSampleLanes outputs at coordinates x and y: places and weights by tap, the rows' taps first.
  void (*grid_squares)(const GridSquares& grid, const float* x, const float* y, std::int32_t* places, double* weights) noexcept;
  /// sums[i] += factor * x[i], rounded twice
  void (*add_multiple)(double factor, const float* x, double* sums, std::int64_t n) noexcept;
  /// out[i] = x[i] cut to a whole number of i8 or u8, the nearest there is; of NaN 0.
  void (*cut_to_bytes)(bool with_sign, const float* x, std::byte* out, std::int64_t n) noexcept;
  /// The least and the largest of n values and 0. NaN is left out.
  void (*range_with_zero)(const float* x, std::int64_t n, float& low, float& high) noexcept;
};

/// The table for an instruction set, or for the nearest lower one this build has. `isa` must be one that the CPU has.
const VectorTable& vector_table(Isa isa) noexcept;

}  // namespace sluice::kernels::plain
