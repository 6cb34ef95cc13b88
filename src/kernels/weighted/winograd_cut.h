// How a Winograd step is cut into units, and where each thread keeps what it transforms: a function of parameters and extent alone, so that
// `workspace` and `run` agree.
#pragma once

#include <cstdint>

#include "sluice/kernels/call.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/winograd_points.h"

namespace sluice::kernels::weighted {

/// The 4x4 outputs at (y, x) of an image.
struct Square {
  std::int64_t image = 0;
  std::int64_t y = 0;
  std::int64_t x = 0;
};

/// The squares that a step's rows touch, image by image, row by row.
class Squares {
 public:
  Squares(RowRange rows, const Window& w) noexcept;
  std::int64_t count() const noexcept { return count_; }
  Square operator[](std::int64_t i) const noexcept;

 private:
  Interval<std::int64_t> of_image(std::int64_t image) const noexcept;  // rows of squares

  RowRange rows_;
  std::int64_t out_h_;
  std::int64_t columns_;
  std::int64_t count_ = 0;
};

/// One thread's part of the workspace, in floats.
struct WinogradMemory {
  std::int64_t v_square = 0, v_point = 0;  // from one square, one point to the next
  std::int64_t u_point = 0;
  std::int64_t m_point = 0;
  std::int64_t zeros = 0, dump = 0, v = 0, u = 0, m = 0;  // where each part begins
  std::int64_t size = 0;
};

struct WinogradCut {
  WinogradCut(const ConvolutionParameters& conv, const StepExtent& extent) noexcept;

  std::int64_t units() const noexcept { return blocks * runs; }
  std::int64_t block_of(std::int64_t unit) const noexcept { return runs_outside() ? unit % blocks : unit / runs; }
  std::int64_t run_of(std::int64_t unit) const noexcept { return runs_outside() ? unit / blocks : unit % runs; }
  /// What a unit reads of the inputs: another key, other inputs.
  std::int64_t inputs_of(std::int64_t unit) const noexcept { return grouped ? unit : block_of(unit); }
  std::int64_t group_of(std::int64_t run) const noexcept { return grouped ? groups[run].group : 0; }
  Interval<std::int64_t> squares_of(std::int64_t block) const noexcept { return even_part({0, squares.count()}, block, blocks); }
  PanelRange panels_of(std::int64_t run) const noexcept;

  Squares squares;
  PanelRange panels;
  Blocks groups;
  bool grouped;              // then a run is the panels of one group
  std::int64_t depth;        // input channels of a group
  std::int64_t u_depth = 0;  // of them, transformed and multiplied at a time
  std::int64_t blocks = 1;
  std::int64_t runs = 1;
  bool keeps_weights = false;  // the transformed weights of a run are kept from block to block
  WinogradMemory memory;

 private:
  bool runs_outside() const noexcept { return grouped || keeps_weights; }
};

/// Floats from one point to the next of transformed weights of `depth` channels: an odd number of lines, so that the 36 stores of a
/// channel, which follow each other, fall into different sets of the L1 cache (twice as fast as with depth x 16).
std::int64_t winograd_u_point(std::int64_t depth) noexcept;

}  // namespace sluice::kernels::weighted
