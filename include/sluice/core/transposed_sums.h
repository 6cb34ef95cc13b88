// How a transposed convolution forms its sums: as one chain of fused multiply-adds over all taps of an output, or by taps, each tap's
// products a chain of their own from 0, and then the sums of the output's taps, in their order.
//
// By taps, the products of an input pixel are a row of a product of matrices, [pixels, inputs] by [inputs, taps * outputs], whatever outputs they
// belong to: outputs of few channels fill the lanes of a panel, and no input is copied.
//
// A function of the layer and of the input's rows and columns: all kernels, and emitted code, form the same sums. Its limits are where the two took
// equally long on an Intel Xeon with AVX-512 (docs/benchmarks.md).
#pragma once

#include <cstdint>

#include "sluice/core/panels.h"
#include "sluice/core/units.h"
#include "sluice/core/window.h"

namespace sluice {

/// Sums of taps that are formed at once, at most: those of a pixel, and of a column of the pixels that an output reads.
inline constexpr std::int64_t kMostTapLanes = 384, kMostTapLanesOfRows = 2048;

/// How many taps of an output may be formed at once, for one that reads the rows of such a window.
constexpr std::int64_t tap_lanes(const Window& w) noexcept {
  const std::int64_t of_rows = kMostTapLanesOfRows / ((w.kernel_h - 1) * w.dilation_h / w.stride_h + 2);
  return of_rows < kMostTapLanes ? of_rows : kMostTapLanes;
}

constexpr bool sums_by_taps(const Window& w, std::int64_t groups, std::int64_t inputs, std::int64_t outputs) noexcept {
  // Of few inputs the sums of taps cost more than they save; of whole panels of outputs there is nothing to save.
  constexpr std::int64_t kLeastInputs = 32, kInputsOfAnOutput = 8, kFewOutputs = 10, kMostOutputs = 21;
  constexpr std::int64_t kInputsOfFive = 64, kInputsOfEleven = 96, kMostReach = 64;
  constexpr std::int64_t kLeastPixels = 144;  // of fewer, putting the weights' taps beside each other costs more than it saves
  if (groups != 1 || inputs < kLeastInputs || outputs > kMostOutputs) return false;
  if (w.in_h < kLeastPixels && w.in_w < kLeastPixels && w.in_h * w.in_w < kLeastPixels) return false;
  if (w.kernel_h > kMostReach || w.kernel_w > kMostReach || w.dilation_h > kMostReach || w.dilation_w > kMostReach) return false;
  const std::int64_t reach_h = (w.kernel_h - 1) * w.dilation_h, reach_w = (w.kernel_w - 1) * w.dilation_w;
  if (reach_h > kMostReach || reach_w > kMostReach || w.pad_top > kMostReach || w.pad_left > kMostReach) return false;
  if (reach_h < w.stride_h && reach_w < w.stride_w) return false;  // no two taps meet
  if (w.kernel_h * w.kernel_w > tap_lanes(w)) return false;
  if (outputs <= kFewOutputs) return inputs >= kInputsOfAnOutput * outputs && (outputs < 5 || inputs >= kInputsOfFive);
  const std::int64_t last = outputs % kPanelLanes;
  return inputs >= kInputsOfEleven && last > 0 && last <= (outputs < kPanelLanes ? 12 : 5);
}

}  // namespace sluice
