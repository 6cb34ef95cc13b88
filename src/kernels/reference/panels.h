// Reading packed weights one value at a time, and finishing an output: what convolutions and dense layers share.
#pragma once

#include <cstdint>

#include "sluice/kernels/call.h"
#include "sluice/operators/parameters/weighted.h"
#include "src/kernels/reference/functions.h"

namespace sluice::kernels::reference {

/// The panels of a step, seen as values w(n, tap, k) (core/panels.h has the picture).
class PanelReader {
 public:
  PanelReader(const WeightOperand& operand, std::int64_t outputs_per_group, std::int64_t taps, std::int64_t depth) noexcept
      : values_(reinterpret_cast<const float*>(operand.data)),
        first_panel_(operand.panels.begin),
        outputs_per_group_(outputs_per_group),
        taps_(taps),
        depth_(depth) {}

  /// The weights of output channel n: value (tap, k) lies at [(tap * depth + k) * kPanelLanes].
  const float* channel(std::int64_t n) const noexcept {
    const PanelRange panel = panels_of_channels({n - lane(n), n + 1}, outputs_per_group_);
    return values_ + (panel.begin - first_panel_) * taps_ * depth_ * kPanelLanes + lane(n);
  }

 private:
  std::int64_t lane(std::int64_t n) const noexcept { return (outputs_per_group_ < kPanelLanes ? n : n % outputs_per_group_) % kPanelLanes; }

  const float* values_;
  std::int64_t first_panel_, outputs_per_group_, taps_, depth_;
};

/// The products that a step adds, and where it keeps the sums that are not finished: pixel after pixel, a row of whole panels each.
class Products {
 public:
  Products(const KernelCall& call, std::int64_t all) noexcept
      : sums_(call.part == nullptr ? nullptr : call.part->sums),
        range_(call.part == nullptr ? ReductionRange{0, all} : call.part->products),
        finishes_(range_.end == all),
        rows_(call.rows),
        first_channel_(call.channels.begin),
        pixels_(call.outputs[0].view.pixels),
        lanes_(ceil_div(call.channels.size(), kPanelLanes) * kPanelLanes) {}

  std::int64_t begin() const noexcept { return range_.begin; }
  std::int64_t end() const noexcept { return range_.end; }
  /// Is a sum an output when these products are added?
  bool finishes() const noexcept { return finishes_; }
  /// What a sum begins with.
  float first(std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept {
    return range_.begin == 0 ? 0.0f : sums_[place(row, pixel, n)];
  }
  void keep(float sum, std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept { sums_[place(row, pixel, n)] = sum; }

 private:
  std::int64_t place(std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept {
    return ((row - rows_.begin) * pixels_ + pixel) * lanes_ + n - first_channel_;
  }

  float* sums_;
  ReductionRange range_;
  bool finishes_;
  RowRange rows_;
  std::int64_t first_channel_, pixels_, lanes_;
};

/// Adds bias and residual to a finished sum and activates it, in the order that Epilogue states.
class Finish {
 public:
  explicit Finish(const KernelCall& call) noexcept
      : epilogue_(call.parameters<operators::WeightedParameters>().epilogue),
        bias_(epilogue_.has_bias ? reinterpret_cast<const float*>(call.weights[1].data) : nullptr),
        residual_(epilogue_.has_residual ? &call.inputs.back().view : nullptr) {}

  float operator()(float sum, std::int64_t row, std::int64_t pixel, std::int64_t n) const noexcept {
    if (bias_ != nullptr) sum += bias_[n];
    if (residual_ != nullptr) sum += residual_->at<const float>(row, pixel)[n];
    return apply(epilogue_.activation, sum);
  }

 private:
  const Epilogue& epilogue_;
  const float* bias_;
  const RowView* residual_;
};

}  // namespace sluice::kernels::reference
