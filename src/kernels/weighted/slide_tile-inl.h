// Depthwise convolutions along a row: neighbouring outputs share their inputs, each of which is loaded once.
#if defined(SLUICE_WEIGHTED_SLIDE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_WEIGHTED_SLIDE_TILE_INL_H_
#undef SLUICE_WEIGHTED_SLIDE_TILE_INL_H_
#else
#define SLUICE_WEIGHTED_SLIDE_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "src/core/build_list.h"
#include "src/kernels/weighted/epilogue-inl.h"
#include "src/kernels/weighted/tile_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::weighted {
namespace HWY_NAMESPACE {

// Outputs that a depthwise tile slides over: chains enough, and beside them room for the weights of seven taps. With stride 2 too, though
// twice as many inputs meet: half of the outputs took up to a quarter longer where the inputs lie in L2.
inline constexpr int kSlideRows = kSmallCode ? 4 : 8;
// Tiles that meet no padding are there a second time, without the questions after it, where these are as many as the products.
constexpr bool asks_for_padding(int taps) noexcept { return kSmallCode || taps != 3; }
// Taps whose weights, and those of a second vector of outputs, fit the registers.
inline constexpr int kSlideTapsOfPairs = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 3 : 0;

/// Inputs in front of a tile's first and behind its last that are padding.
struct Padding {
  int front;
  int behind;
};

/// The inputs that the tile below will be the first to read, on their way to L2.
template <int kTaps, int kRows, int kVectors>
HWY_INLINE void fetch_row_below(const TileRows& rows, const TileJob& job, std::int64_t lane) {
  const float* next = rows.a[0] + 2 * job.segment_offsets[kTaps - 1] - job.segment_offsets[kTaps - 2] + lane;
  HWY_UNROLL(16)
  for (int j = 0; j < kRows; ++j) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(next + j * job.a_step + v * kVectorLanes, 0, 2);
  }
}

// Addresses of inputs are one addition after the other for NEON; for x86 they all count from the first, which is a tenth faster.
inline constexpr bool kStepsThroughInputs = HWY_TARGET == HWY_NEON;

/// Keeps the loads at `a` behind those before: g++ for NEON would begin with the inputs of all outputs, and spill.
HWY_INLINE void load_in_turn([[maybe_unused]] const float*& a) {
#if HWY_TARGET == HWY_NEON
  asm volatile("" : "+r"(a) : : "memory");
#endif
}

/// Keeps a value in its register: g++ would read it anew for each of the FMAs that it is for.
HWY_INLINE void hold([[maybe_unused]] V& value) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(value.raw));
#endif
}

// `kRows` neighbouring outputs of a row: each input is loaded once for all outputs that it reaches. Panels are the inner loop: the channels
// of a pixel are neighbours in memory, so the tile reads a few streams instead of a line here and a line there.
template <int kTaps, int kStride, bool kPadded, int kRows, int kVectors>
HWY_INLINE void slide_lanes(const TileRows& rows, const TileJob& job, Padding padding, std::int64_t lane) {
  constexpr int kInputs = (kRows - 1) * kStride + kTaps;
  const D d;
  const float* panel = job.panels + lane / 16 * job.panel_floats + lane % 16;
  const std::int64_t next_vector = kVectorLanes == 16 ? job.panel_floats : kVectorLanes;  // narrow vectors are of one panel
  if (kTaps > 3 && job.outputs_are_far) prefetch_lines<kRows, kVectors>(rows.out, lane);  // sums of nine products would wait for it
  if (kStride == 1 && job.fetches_row_below) fetch_row_below<kTaps, kRows, kVectors>(rows, job, lane);
  V acc[kRows][kVectors];
  clear(acc);
  const std::int64_t step = job.a_step, segment_floats = job.segment_floats;
  for (std::int64_t s = 0; s < job.segments; ++s, panel += segment_floats) {
    const float* const first = rows.a[0] + job.segment_offsets[s] + lane;
    const float* a = first;
    V weights[kTaps][kVectors];
    HWY_UNROLL(8)
    for (int tap = 0; tap < kTaps; ++tap) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) weights[tap][v] = hn::LoadU(d, panel + v * next_vector + tap * 16);
    }
    HWY_UNROLL(32)
    for (int j = 0; j < kInputs; ++j, a += step) {
      if (kPadded && j < kTaps - 1 && j < padding.front) continue;
      if (kPadded && j > kInputs - kTaps && j >= kInputs - padding.behind) continue;
      load_in_turn(a);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        V input = hn::LoadU(d, (kStepsThroughInputs ? a : first + j * step) + v * kVectorLanes);
        hold(input);
        HWY_UNROLL(8)
        for (int tap = 0; tap < kTaps; ++tap) {
          const int m = (j - tap) / kStride;
          if (j >= tap && (j - tap) % kStride == 0 && m < kRows) acc[m][v] = functions::fused(input, weights[tap][v], acc[m][v]);
        }
      }
    }
  }
  finish(acc, rows, job, lane);
}

template <int kTaps, int kStride, bool kPadded, int kRows>
HWY_NOINLINE void slide(const TileRows& rows, const TileJob& job, Padding padding) {
  const std::int64_t lanes = job.panel_count * std::int64_t{16};
  // As many vectors as the registers hold: neighbouring lines come together, and twice the chains hide what they wait for.
  constexpr int kVectors = kTaps <= kSlideTapsOfPairs ? 2 : 1;
  std::int64_t lane = 0;
  for (; lane + kVectors * kVectorLanes <= lanes; lane += kVectors * kVectorLanes)
    slide_lanes<kTaps, kStride, kPadded, kRows, kVectors>(rows, job, padding, lane);
  if constexpr (kVectors * kVectorLanes > 16) {
    for (; lane < lanes; lane += kVectorLanes) slide_lanes<kTaps, kStride, kPadded, kRows, 1>(rows, job, padding, lane);
  }
}

template <int kTaps, int kStride, bool kPadded, std::size_t... kRow>
constexpr auto slides(std::index_sequence<kRow...>) {
  return std::array{&slide<kTaps, kStride, kPadded, static_cast<int>(kRow) + 1>...};
}

template <int kTaps, int kStride>
bool slide_tiles(const PixelRun& run, const TileJob& job) {
  static constexpr auto kInside = slides<kTaps, kStride, asks_for_padding(kTaps)>(std::make_index_sequence<kSlideRows>());
  static constexpr auto kAtBorder = slides<kTaps, kStride, true>(std::make_index_sequence<kSlideRows>());
  for_each_tile_of<kSlideRows>(run, [&](const TileRows& rows, std::int64_t x, std::int64_t) HWY_ATTR {
    const std::int64_t first = x * kStride, end = first + (rows.count - 1) * kStride + kTaps;
    const Padding padding{static_cast<int>(std::max<std::int64_t>(0, run.first_input - first)),
                          static_cast<int>(std::max<std::int64_t>(0, end - run.end_input))};
    const auto& tile_of = padding.front + padding.behind == 0 ? kInside : kAtBorder;
    tile_of[static_cast<std::size_t>(rows.count - 1)](rows, job, padding);
  });
  return true;
}

bool run_slide([[maybe_unused]] const PixelRun& run, [[maybe_unused]] const TileJob& job) noexcept {
#if HWY_TARGET != HWY_SCALAR
  const bool stride1 = run.a_pixel == job.a_step, stride2 = run.a_pixel == 2 * job.a_step;
  // Of all taps of an output at least one must meet an input in front, and one behind: `slide` looks no further.
  const std::int64_t last_end = (run.count - 1) * (stride1 ? 1 : 2) + job.depth;
  if (run.first_input >= job.depth || last_end - run.end_input >= job.depth) return false;
  if (has_window(3, 1) && job.depth == 3 && stride1) return slide_tiles<3, 1>(run, job);
  if (has_window(3, 2) && job.depth == 3 && stride2) return slide_tiles<3, 2>(run, job);
  if (has_window(5, 1) && job.depth == 5 && stride1) return slide_tiles<5, 1>(run, job);
  if (has_window(5, 2) && job.depth == 5 && stride2) return slide_tiles<5, 2>(run, job);
  if (has_window(7, 1) && job.depth == 7 && stride1) return slide_tiles<7, 1>(run, job);
#endif
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace sluice::kernels::weighted
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_WEIGHTED_SLIDE_TILE_INL_H_
