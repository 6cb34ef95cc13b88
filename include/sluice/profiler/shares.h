// How evenly threads share a step: what a kernel's rules (src/kernels) come to for the shape of its work. A dense layer's slice of one panel,
// or a Winograd layer of a single square and nine pairs of panels, takes one thread as long as it would without the others.
//
// Rules are those of f32 panels and hold nearly for others; of a grouped convolution all channels are taken for one group.
// tests/profiler/shares_test.cc compares them with the kernels' own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel_ids.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/step_work.h"

namespace sluice::profiler::detail {

/// How a step is shared. On one thread nothing is.
struct Shares {
  double longest = 1;      // the longest share, in even ones: 1 to the number of threads
  bool by_pixels = false;  // each thread has rows or pixels of its own, as the step before had; else channels, or all
  bool shared = false;     // among two threads or more
};

/// A step's panels, cut into blocks of whole granules (src/kernels/weighted/blocks.h).
class PanelBlocks {
 public:
  PanelBlocks(std::int64_t panels, double panel_bytes, double block_bytes, std::int64_t granule) noexcept
      : panels_(panels), granule_(granule), granules_(granules_of(panels, granule)) {
    const double held = block_bytes / std::max(1.0, panel_bytes * static_cast<double>(granule));
    const std::int64_t in_block =
        held >= static_cast<double>(granules_) ? granules_ : std::max<std::int64_t>(1, static_cast<std::int64_t>(held));
    count_ = ceil_div(granules_, in_block);
  }

  /// As few more blocks as give even shares.
  void share(std::int64_t threads) noexcept {
    if (count_ >= kMostForShares * threads) return;
    std::int64_t best = clamped(ceil_div(count_, threads) * threads);
    const std::int64_t most = std::min(granules_, kMostForShares * threads);
    for (std::int64_t count = best + threads; unevenness(best, threads) > kEven && count <= most; count += threads)
      if (unevenness(count, threads) < unevenness(best, threads)) best = count;
    count_ = best;
  }
  bool uneven(std::int64_t threads) const noexcept { return unevenness(count_, threads) > kEven; }
  std::int64_t count() const noexcept { return count_; }
  /// Of the panels.
  double longest(std::int64_t threads) const noexcept {
    const std::int64_t most = std::min(panels_, ceil_div(count_, threads) * ceil_div(granules_, count_) * granule_);
    return static_cast<double>(most * threads) / static_cast<double>(panels_);
  }

  /// How many panels stay together, `most` or fewer down to `least`, so that shares are even.
  static std::int64_t granule_for(std::int64_t panels, std::int64_t most, std::int64_t least, std::int64_t threads) noexcept {
    const auto longest_share = [&](std::int64_t granule) {
      return std::min(panels, ceil_div(granules_of(panels, granule), threads) * granule + (leaves_one(panels, granule) ? 1 : 0));
    };
    std::int64_t best = most;
    for (std::int64_t granule = most - 1; granule >= least; --granule)
      if (longest_share(granule) < longest_share(best)) best = granule;
    return best;
  }

 private:
  static constexpr double kEven = 1.1;
  static constexpr std::int64_t kMostForShares = 8;
  static bool leaves_one(std::int64_t panels, std::int64_t granule) noexcept { return granule == 3 && panels % 3 == 1 && panels > 1; }
  static std::int64_t granules_of(std::int64_t panels, std::int64_t granule) noexcept {
    return leaves_one(panels, granule) ? panels / 3 : ceil_div(panels, granule);
  }
  std::int64_t clamped(std::int64_t count) const noexcept { return std::clamp<std::int64_t>(count, 1, granules_); }
  double unevenness(std::int64_t count, std::int64_t threads) const noexcept {
    return static_cast<double>(ceil_div(clamped(count), threads) * ceil_div(granules_, clamped(count)) * threads) /
           static_cast<double>(granules_);
  }

  std::int64_t panels_, granule_, granules_;
  std::int64_t count_ = 1;
};

/// So many equal parts.
inline double longest_of(std::int64_t parts, std::int64_t threads) noexcept {
  return static_cast<double>(ceil_div(parts, threads) * threads) / static_cast<double>(parts);
}

/// Which rules a kernel shares its work by.
enum class SharedBy : std::uint8_t { kOther, kPixelRuns, kStrips, kSquares, kRows, kCopies };

inline SharedBy shared_by(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  if (kernel == kConvPointwise || kernel == kDense || (kernel >= kDenseEightBits && kernel <= kConvPointwiseEightBits) ||
      (kernel >= kDenseBf16 && kernel <= kConvPointwiseF16) ||
      (kernel >= kDenseFourBitsHalfScales && kernel <= kConvPointwiseFourBitsHalfScales))
    return SharedBy::kPixelRuns;
  if (kernel == kConvDirect || kernel == kConvDirectBf16 || kernel == kConvDirectF16 || kernel == kConvDirectEightBits ||
      kernel == kConvDirectFourBitsHalfScales)
    return SharedBy::kStrips;
  if (kernel == kConvWinograd || kernel == kConvWinogradBf16 || kernel == kConvWinogradF16 ||
      (kernel >= kConvWinogradEightBits && kernel <= kConvWinogradFourBitsHalfScales))
    return SharedBy::kSquares;
  if (kernel == kConvDepthwise || (kernel >= kConvDepthwiseEightBits && kernel <= kConvDepthwiseFourBitsHalfScales)) return SharedBy::kRows;
  return kernel == kSlice || kernel == kTranspose ? SharedBy::kCopies : SharedBy::kOther;
}

/// The shape of a step as the rules ask for it.
struct SharedWork {
  static constexpr std::uint32_t kMost = 1 << 20;  // of any extent: products of hostile profiles' extents stay in range
  explicit SharedWork(const StepWork& work) noexcept
      : rows(std::min(work.shape.rows, kMost)),
        columns(std::min(work.shape.columns, kMost)),
        pixels(rows * columns),
        panels(ceil_div(std::min(work.shape.channels, kMost), model::kPanelLanes)),
        depth(std::min(work.shape.depth, kMost)),
        panel_bytes(static_cast<double>(work.cost.weight_bytes) / static_cast<double>(panels)),
        light_weights(work.cost.weight_bytes <= 4 * (work.cost.input_bytes + work.cost.output_bytes)) {}

  std::int64_t rows, columns, pixels, panels, depth;
  double panel_bytes;
  bool light_weights;  // each thread may as well read all of them
};

/// Of 1x1 convolutions and dense layers (src/kernels/weighted/pointwise.cc). `tile_rows`: of a full tile.
inline Shares shares_of_pixel_runs(const SharedWork& work, std::int64_t tile_rows, std::int64_t threads) noexcept {
  constexpr std::int64_t kRowsOfThree = 9, kLeastDepth = 12, kLeastPixels = 64, kFewPixels = 3, kFewTiles = 16;
  constexpr double kBlock = 512 << 10, kSmallBlock = 128 << 10, kUnbounded = 1e18;
  const bool threes = tile_rows == 14 && work.depth >= kLeastDepth && work.pixels >= kLeastPixels && work.panels >= 3 && work.panels != 4;
  const std::int64_t tiles = ceil_div(work.pixels, threes ? kRowsOfThree : tile_rows);
  if (tiles >= threads && work.light_weights) return {1, true, true};
  const std::int64_t most = threes ? 3 : work.pixels <= kFewPixels ? 4 : 2, least = work.pixels <= kFewPixels ? 1 : 2;
  const double block = tiles == 1 ? kUnbounded : work.pixels <= kFewTiles * tile_rows ? kSmallBlock : kBlock;
  PanelBlocks blocks(work.panels, work.panel_bytes, block, PanelBlocks::granule_for(work.panels, most, least, threads));
  blocks.share(threads);
  return {blocks.longest(threads), false, true};
}

/// How a direct convolution reads its input: where it lies, or in strips of so many outputs (nearly src/kernels/weighted/strip.h), on one
/// thread.
struct DirectCut {
  bool in_place = false;
  double high = 1, wide = 1;  // its window
  double strip_rows = 1, strip_columns = 1;

  /// Of the inputs of so many outputs.
  static double bytes_of(const StepShape& shape, double high, double wide, double rows, double columns) noexcept {
    return ((rows - 1) * shape.stride + high) * ((columns - 1) * shape.stride + wide) * shape.depth * sizeof(float);
  }
};

/// `may_stay`: inputs may be read in place.
inline DirectCut direct_cut(bool may_stay, const StepWork& work) noexcept {
  constexpr std::uint32_t kMostTapsInPlace = 64;
  constexpr double kStrip = 192 << 10, kWholeStrip = 512 << 10, kInPlace = 1 << 20, kWholeWindows = 64, kFewPixels = 48;
  const StepShape& shape = work.shape;
  const double rows = shape.rows, columns = shape.columns, stride = shape.stride;
  const double side = std::sqrt(static_cast<double>(shape.taps));
  const bool flat = side != std::floor(side) || (rows == 1 && columns > 2 * side);
  DirectCut cut{false, flat ? 1 : side, flat ? shape.taps : side, rows, columns};
  const auto input = [&](double out_rows, double out_columns) {
    return DirectCut::bytes_of(shape, cut.high, cut.wide, out_rows, out_columns);
  };
  const auto whole_windows = [&](double outputs, double window) {
    return std::max(0.0, outputs - 2 * std::floor((std::floor((window - 1) / 2) + stride - 1) / stride));
  };
  const double whole = whole_windows(rows, cut.high) * whole_windows(columns, cut.wide);
  cut.in_place = may_stay && shape.taps <= kMostTapsInPlace && whole >= kWholeWindows && 2 * whole >= rows * columns &&
                 static_cast<double>(work.cost.input_bytes) <= kInPlace;
  if (cut.in_place || input(rows, columns) <= kStrip) return cut;
  const double row_bytes = input(1, columns) / cut.high;  // of one row of input
  cut.strip_rows = std::clamp(std::floor((kStrip / row_bytes - cut.high) / stride) + 1, 1.0, rows);
  if (input(1, columns) > kStrip) {
    const double most = std::max(14.0, (kStrip / (input(1, 1) / cut.wide) - cut.wide) / stride + 1);
    cut.strip_columns = std::ceil(columns / std::ceil(columns / std::min(columns, most)));
  }
  if (cut.strip_rows * cut.strip_columns <= kFewPixels && input(rows, columns) <= kWholeStrip)
    cut.strip_rows = rows, cut.strip_columns = columns;
  return cut;
}

/// Rows or columns of strips that threads share, each of them for all of so many blocks.
struct StripShares {
  StripShares(const DirectCut& cut, const SharedWork& work, std::int64_t blocks, std::int64_t threads) noexcept {
    constexpr std::int64_t kTile = 16, kMostUnits = 8;
    const std::int64_t first_parts = ceil_div(work.rows, static_cast<std::int64_t>(cut.strip_rows));
    std::int64_t parts = first_parts, rows = ceil_div(work.rows, parts), columns = static_cast<std::int64_t>(cut.strip_columns);
    std::int64_t across = ceil_div(work.columns, columns);
    const auto units = [&] { return ceil_div(work.rows, rows) * ceil_div(work.columns, columns) * blocks; };
    const auto uneven = [&] { return units() < kMostUnits * threads && units() % threads != 0; };
    const auto least_pixels = [&] { return units() < threads ? kTile : 4 * kTile; };
    while (uneven() && rows > 1 && rows * columns > least_pixels()) rows = ceil_div(work.rows, ++parts);
    while (uneven() && rows == 1 && columns > least_pixels()) columns = ceil_div(work.columns, ++across);
    down = ceil_div(work.rows, rows);
    areas = units() / blocks;
  }
  std::int64_t areas = 1;
  std::int64_t down = 1;  // parts of the rows
};

/// Of direct convolutions (src/kernels/weighted/direct.cc, in_place.cc, strip.cc).
inline Shares shares_of_strips(const DirectCut& cut, const SharedWork& work, std::int64_t threads) noexcept {
  constexpr std::int64_t kLeastPixels = 64, kGranule = 2, kEvenRows = 8, kWide = 32;
  PanelBlocks blocks(work.panels, work.panel_bytes, 512 << 10, kGranule);
  blocks.share(threads);
  const bool wants_pixels = work.light_weights || (work.pixels >= kLeastPixels && blocks.uneven(threads));
  if (cut.in_place) {
    const bool even = work.rows % threads == 0 || work.rows >= kEvenRows * threads;
    if (wants_pixels && (even || work.columns >= kWide * threads))
      return {longest_of(even ? work.rows : work.columns, threads), true, true};
    return {blocks.longest(threads), false, true};
  }
  if (wants_pixels) {
    const StripShares strips(cut, work, 1, threads);
    // Rows are cut as evenly as they can be: of 7 in two parts one has 4.
    if (strips.areas % threads == 0) {
      const bool by_rows = strips.down % threads == 0;
      const double most = by_rows ? static_cast<double>(ceil_div(work.rows * (strips.down / threads), strips.down)) : 1;
      return {by_rows ? most * static_cast<double>(threads) / static_cast<double>(work.rows) : 1, true, true};
    }
  }
  const StripShares strips(cut, work, blocks.count(), threads);
  return {strips.areas == 1 ? blocks.longest(threads) : longest_of(strips.areas * blocks.count(), threads), false, true};
}

/// Of Winograd convolutions (src/kernels/weighted/winograd_cut.cc).
inline Shares shares_of_squares(const SharedWork& work, std::int64_t threads) noexcept {
  constexpr std::int64_t kPoints = 36, kLanes = model::kPanelLanes, kFewSquares = 14, kManySquares = 56, kSquareFloats = 2 * kLanes;
  constexpr std::int64_t kSquaresFloats = (1408 << 10) / sizeof(float), kKeptFloats = (640 << 10) / sizeof(float), kFewPairs = 8;
  const auto odd_lines = [](std::int64_t floats) { return (ceil_div(floats, kLanes) | 1) * kLanes; };
  const std::int64_t squares = ceil_div(work.rows, 4) * ceil_div(work.columns, 4);
  const bool keeps = squares > kFewSquares && work.panels * kPoints * odd_lines(work.depth * kLanes) <= kKeptFloats;
  const std::int64_t fit = std::clamp<std::int64_t>(kSquaresFloats / (kPoints * (odd_lines(work.depth) + kSquareFloats)), 1, kManySquares);
  const std::int64_t blocks = ceil_div(squares, keeps ? kFewSquares : fit), pairs = ceil_div(work.panels, 2);
  if (blocks == 1 && (pairs % threads == 0 || pairs >= kFewPairs * threads)) {
    const std::int64_t most = std::min(work.panels, 2 * ceil_div(pairs, threads));
    return {static_cast<double>(most * threads) / static_cast<double>(work.panels), false, true};
  }
  const std::int64_t tasks = std::clamp<std::int64_t>(ceil_div(blocks, threads) * threads, 1, squares);
  const std::int64_t most = ceil_div(tasks, threads) * ceil_div(squares, tasks);
  return {static_cast<double>(most * threads) / static_cast<double>(squares), true, true};
}

/// Of depthwise convolutions (src/kernels/weighted/depthwise.cc).
inline Shares shares_of_rows(const SharedWork& work, std::int64_t threads) noexcept {
  constexpr std::int64_t kFewRows = 8;
  if (work.rows >= kFewRows * threads || work.rows % threads == 0) return {longest_of(work.rows, threads), true, true};
  const std::int64_t parts = std::min(work.panels, threads);  // of the panels, in each row
  const double of_panels = static_cast<double>(ceil_div(work.panels, parts) * parts) / static_cast<double>(work.panels);
  return {longest_of(work.rows * parts, threads) * of_panels, false, true};
}

/// Of slices and transpositions (src/kernels/movement/strided_copy.cc).
inline Shares shares_of_copies(std::uint64_t bytes, std::int64_t threads) noexcept {
  constexpr std::int64_t kTaskBytes = 64 << 10;
  const std::int64_t parts = std::min<std::int64_t>(2 * threads, static_cast<std::int64_t>(bytes) / kTaskBytes);
  return {parts <= 1 ? static_cast<double>(threads) : longest_of(parts, threads), true, true};
}

}  // namespace sluice::profiler::detail
