#include "src/kernels/weighted/winograd_cut.h"

#include <algorithm>

#include "src/kernels/weighted/winograd_tile.h"

namespace sluice::kernels::weighted {
namespace {

using winograd::kOutTile;
using winograd::kPoints;

constexpr std::int64_t kLineFloats = 16;
/// v and m of a block. Large blocks transform the weights, or read the transformed ones, less often: at 28x28x512 and 14x14x512 this many
/// bytes are 1.4 times as fast as 600 KB. They fit an L2 cache of 2 MiB beside u; smaller blocks lose more than smaller caches would gain.
constexpr std::int64_t kSquaresBytes = 1408 * 1024;
/// A run's transformed weights up to here are kept for all blocks, which may then be small: they fit L2 beside the block.
constexpr std::int64_t kKeptBytes = 640 * 1024;
/// Squares of a block when the transformed weights cost nothing: one full tile of products. Twice as many are no faster.
constexpr std::int64_t kFewSquares = 14;
constexpr std::int64_t kManySquares = 56;
/// Channels whose weights are transformed right before they are multiplied: 300 KB for a pair of panels. Half as many load and store m
/// too often (7 %). A row of points at a time, so that u stays in L1, takes 5 to 10 % longer: the raw panels are read six times.
constexpr std::int64_t kDepthAtATime = 64;
/// And in a band of few squares: bands are for when memory is short, and u is then half of the workspace. A quarter of the depth leaves u at
/// most half as large as v, but less than this loads and stores m too often: with a half of it bands of four rows took 5 to 15 % longer on an
/// Intel Xeon, at 64 to 512 channels. (A row of points at a time, which writes m once, took 5 % longer than a half of it where v is small.)
constexpr std::int64_t kDepthInBands = 32;

std::int64_t whole_lines(std::int64_t floats) noexcept { return ceil_div(floats, kLineFloats) * kLineFloats; }

std::int64_t bytes_of_floats(std::int64_t floats) noexcept { return floats * static_cast<std::int64_t>(sizeof(float)); }

/// An odd number of lines: values that are read together then lie in different sets of the L1 cache.
std::int64_t odd_lines(std::int64_t floats) noexcept { return (ceil_div(floats, kLineFloats) | 1) * kLineFloats; }

}  // namespace

Squares::Squares(RowRange rows, const Window& w) noexcept : rows_(rows), out_h_(w.out_h), columns_(ceil_div(w.out_w, kOutTile)) {
  for (std::int64_t image = rows.begin / out_h_; image * out_h_ < rows.end; ++image) count_ += of_image(image).size() * columns_;
}

Interval<std::int64_t> Squares::of_image(std::int64_t image) const noexcept {
  const std::int64_t first = image * out_h_;
  return {(std::max(rows_.begin, first) - first) / kOutTile, ceil_div(std::min(rows_.end, first + out_h_) - first, kOutTile)};
}

Square Squares::operator[](std::int64_t i) const noexcept {
  for (std::int64_t image = rows_.begin / out_h_;; ++image) {
    const auto rows = of_image(image);
    if (i < rows.size() * columns_) return {image, (rows.begin + i / columns_) * kOutTile, i % columns_ * kOutTile};
    i -= rows.size() * columns_;
  }
}

WinogradCut::WinogradCut(const ConvolutionParameters& conv, const StepExtent& extent) noexcept
    : squares(extent.rows, conv.window),
      panels(panels_of_channels(extent.channels, conv.group_outputs())),
      groups(conv.weighted.panels, extent.channels, conv.out_channels, conv.group_outputs(), 1, 1),
      grouped(conv.groups > 1),
      depth(conv.group_depth()) {
  const std::int64_t most_panels = std::min(panels.size(), ceil_div(conv.group_outputs(), kLineFloats));  // of a group
  const std::int64_t all_u = most_panels * kPoints * winograd_u_point(depth);
  keeps_weights = !extent.derived && squares.count() > kFewSquares && bytes_of_floats(all_u) <= kKeptBytes;
  const bool few_in_band = squares.count() <= kFewSquares && extent.rows.size() < conv.window.out_h;
  const std::int64_t in_band = std::clamp(whole_lines(depth / 4), kDepthInBands, kDepthAtATime);
  u_depth = keeps_weights ? depth : std::min(depth, few_in_band ? in_band : kDepthAtATime);
  const std::int64_t square_bytes = bytes_of_floats(kPoints * (odd_lines(depth) + kSquareFloats));
  const std::int64_t most = keeps_weights ? kFewSquares : std::clamp<std::int64_t>(kSquaresBytes / square_bytes, 1, kManySquares);
  blocks = std::max<std::int64_t>(1, ceil_div(squares.count(), most));
  // Threads share the panels of a single block, if they can do so evenly, else blocks.
  const std::int64_t pairs = ceil_div(panels.size(), kPairPanels);
  if (grouped) runs = groups.count();
  if (grouped && runs >= extent.threads) {
    // The groups are enough to share.
  } else if (!grouped && blocks == 1 && (pairs % extent.threads == 0 || pairs >= 8 * extent.threads)) {
    runs = extent.threads;
  } else {
    blocks = std::clamp<std::int64_t>(squares.count(), 1, ceil_div(blocks, extent.threads) * extent.threads);
  }

  const std::int64_t most_squares = ceil_div(squares.count(), blocks);
  memory.v_square = odd_lines(depth);
  memory.v_point = odd_lines(most_squares * memory.v_square);
  memory.u_point = winograd_u_point(u_depth);
  memory.m_point = odd_lines(most_squares * kSquareFloats);
  memory.zeros = kLineFloats;  // the first line says what v and u hold
  memory.dump = memory.zeros + whole_lines(depth);
  memory.v = memory.dump + kSquareFloats;
  memory.u = memory.v + kPoints * memory.v_point;
  memory.m = memory.u + (extent.derived ? 0 : keeps_weights ? all_u : kPairPanels * kPoints * memory.u_point);
  memory.size = memory.m + kPoints * memory.m_point;
}

PanelRange WinogradCut::panels_of(std::int64_t run) const noexcept {
  if (grouped) {
    const Block group = groups[run];
    return {group.first_panel, group.first_panel + group.panels};
  }
  const auto pairs = even_part({0, ceil_div(panels.size(), kPairPanels)}, run, runs);
  return {panels.begin + pairs.begin * kPairPanels, std::min(panels.end, panels.begin + pairs.end * kPairPanels)};
}

std::int64_t winograd_u_point(std::int64_t depth) noexcept { return odd_lines(depth * kPanelLanes); }

}  // namespace sluice::kernels::weighted
