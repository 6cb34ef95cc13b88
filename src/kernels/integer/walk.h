// What the kernels of this family that multiply by panels share: how blocks become tile jobs, and the walk over output pixels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/kernels/call.h"
#include "src/kernels/integer/tile.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::integer {

using operators::IntegerConvolutionParameters;
using operators::IntegerDenseParameters;
using operators::IntegerWeightedParameters;
using weighted::Block;
using weighted::even_part;
using weighted::for_each_unit;
using weighted::thread_count;

inline const IntegerWeightedParameters& weighted_of(const KernelCall& call) noexcept {
  return call.parameters<IntegerWeightedParameters>();
}

/// What is added to a step's sums and what they are multiplied by, from channel `first` of the tensor on.
struct Terms {
  const std::int32_t* bias = nullptr;
  const float* multipliers = nullptr;  // null: the output is i32
  std::int64_t first = 0;
};

/// Bytes that `terms_of` writes for a step.
Bytes terms_workspace(const IntegerWeightedParameters& weighted, ChannelRange channels) noexcept;

/// The weights that say so or, where zero point and scale come at run time, what they make of them for the step's channels, at `room`.
Terms terms_of(const KernelCall& call, std::byte* room) noexcept;

/// What padding reads.
inline std::uint8_t zero_of(const KernelCall& call) noexcept {
  const operators::IntegerEpilogue& epilogue = weighted_of(call).epilogue;
  return epilogue.run_time == 0 ? epilogue.zero_in : *call.inputs[1].view.at<const std::uint8_t>(0);
}

/// The parts of a tile job that do not depend on how inputs are read.
inline TileJob job_of(const KernelCall& call, const Block& block, const Terms& terms) noexcept {
  const IntegerWeightedParameters& weighted = weighted_of(call);
  const WeightOperand& weight = call.weights[0];
  TileJob job;
  job.panel_bytes = static_cast<std::int64_t>(weighted.panels.panel_bytes.count());
  job.panels = reinterpret_cast<const std::int8_t*>(weight.data) + (block.first_panel - weight.panels.begin) * job.panel_bytes;
  job.panel_count = block.panels;
  job.last_lanes = block.last_lanes;
  job.finish.bias = terms.bias + (block.channel - terms.first);
  if (terms.multipliers != nullptr) job.finish.multipliers = terms.multipliers + (block.channel - terms.first);
  job.finish.epilogue = &weighted.epilogue;
  job.finish.out = call.outputs[0].view.dtype;
  return job;
}

/// The weights that a thread will most likely want next, as weighted::NextPanels: on a CPU whose last cache is far away the 7x7 layers of
/// ResNet-50 took 1.4 times as long without.
class NextBlock {
 public:
  /// A unit has `tiles` tiles.
  NextBlock(const KernelCall& call, const weighted::Blocks& blocks, const weighted::UnitPlace& place, std::int64_t tiles) noexcept
      : first_part_(place.units_before * tiles) {
    if (place.next_block != place.block) {
      const WeightOperand& weight = call.weights[0];
      const std::int64_t panel = blocks[place.next_block].first_panel - weight.panels.begin;
      panels_ = reinterpret_cast<const std::int8_t*>(weight.data) +
                panel * static_cast<std::int64_t>(weighted_of(call).panels.panel_bytes.count());
    } else if (place.last && !call.next_weights.empty()) {
      panels_ = reinterpret_cast<const std::int8_t*>(call.next_weights.data());
      first_part_ = std::min<std::int64_t>(0, kTilesOfPrefetch - tiles);
    }
  }

  /// Gives tile `tile` of the unit its part to fetch.
  void set(std::int64_t tile, TileJob& job) const noexcept {
    job.next_part = first_part_ + tile;
    job.next_panels = job.next_part >= 0 && job.next_part < kTilesOfPrefetch ? panels_ : nullptr;
  }

 private:
  const std::int8_t* panels_ = nullptr;  // null: none
  std::int64_t first_part_;              // of the unit's first tile
};

/// Writes the pointers of one pixel after another, along the rows of an area.
class PixelWalk {
 public:
  /// Starts at pixel `x` of output row `row`; `channel` is the block's first, rows are the pixels of `columns`.
  PixelWalk(const KernelCall& call, std::int64_t row, std::int64_t x, Interval<std::int64_t> columns, std::int64_t channel) noexcept
      : out_view_(call.outputs[0].view),
        residual_view_(weighted_of(call).epilogue.has_residual ? &call.inputs.back().view : nullptr),
        row_(row),
        x_(x),
        columns_(columns),
        channel_(channel) {
    find();
  }

  std::int64_t row() const noexcept { return row_; }
  std::int64_t x() const noexcept { return x_; }

  /// Sets the pointers of the next `rows.count` pixels and goes behind them. Their inputs lie `step` bytes apart along a row, the first at
  /// `a`; `begin_of_row()` is where the first pixel of a new row reads. Returns where the pixel behind them does.
  template <class BeginOfRow>
  const std::uint8_t* set_tile(const std::uint8_t* a, std::int64_t step, const BeginOfRow& begin_of_row, TileRows& rows) noexcept {
    for (int m = 0; m < rows.count;) {
      const int end = m + static_cast<int>(std::min<std::int64_t>(rows.count - m, columns_.end - x_));
      x_ += end - m;
      for (; m < end; ++m, a += step, out_ += out_view_.pixel_pitch) {
        rows.a[m] = a;
        rows.out[m] = out_;
        if (residual_view_ == nullptr) continue;
        rows.residual[m] = residual_;
        residual_ += residual_view_->pixel_pitch;
      }
      if (x_ < columns_.end) continue;
      x_ = columns_.begin;
      ++row_;
      find();
      a = begin_of_row();
    }
    return a;
  }

 private:
  void find() noexcept {
    out_ = out_view_.at<std::byte>(row_, x_) + channel_ * static_cast<std::int64_t>(size_of(out_view_.dtype));
    if (residual_view_ != nullptr) residual_ = residual_view_->at<const std::uint8_t>(row_, x_) + channel_;
  }

  const RowView& out_view_;
  const RowView* residual_view_;
  std::int64_t row_;
  std::int64_t x_;
  Interval<std::int64_t> columns_;
  std::int64_t channel_;
  std::byte* out_ = nullptr;
  const std::uint8_t* residual_ = nullptr;
};

/// Outputs of f32 have no function yet when tiles are done, nor a bias whose scale came at run time.
void finish_floats(const KernelCall& call, DotIsa isa) noexcept;

}  // namespace sluice::kernels::integer
