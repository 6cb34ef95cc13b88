// Which taps, inputs and outputs of a transposed convolution meet along one axis.
//
//     output o = stride * q + phase meets tap t at input q + shift(t),  shift(t) = (phase + pad - t * dilation) / stride
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "sluice/core/interval.h"
#include "sluice/core/units.h"
#include "sluice/core/window.h"

namespace sluice::kernels::weighted {

struct TransposedAxis {
  std::int64_t kernel, stride, dilation, pad;

  /// The first tap of a phase, or one past all; the others of it follow in distances of `period`.
  std::int64_t first_tap(std::int64_t of_phase) const noexcept {
    if (dilation == 1) return std::min(kernel, (of_phase + pad) % stride);
    std::int64_t tap = 0;
    while (tap < kernel && phase(tap) != of_phase) ++tap;
    return tap;
  }
  std::int64_t period() const noexcept { return stride / std::gcd(stride, dilation); }
  std::int64_t phase(std::int64_t tap) const noexcept { return ((tap * dilation - pad) % stride + stride) % stride; }
  std::int64_t shift(std::int64_t tap) const noexcept { return (phase(tap) + pad - tap * dilation) / stride; }
  /// The first input that outputs from `begin` on may meet; one early at worst.
  std::int64_t first_input(std::int64_t begin) const noexcept { return floor_div(begin + pad - (kernel - 1) * dilation, stride); }
  /// One past the last input that outputs before `end` may meet.
  std::int64_t end_input(std::int64_t end) const noexcept { return floor_div(end - 1 + pad, stride) + 1; }
};

inline TransposedAxis vertical(const Window& w) noexcept { return {w.kernel_h, w.stride_h, w.dilation_h, w.pad_top}; }
inline TransposedAxis horizontal(const Window& w) noexcept { return {w.kernel_w, w.stride_w, w.dilation_w, w.pad_left}; }

/// Outputs begin..end of one phase: o = phase + stride * q.
inline Interval<std::int64_t> outputs_of_phase(Interval<std::int64_t> outputs, std::int64_t phase, std::int64_t stride) noexcept {
  const auto first_q = [&](std::int64_t o) { return o <= phase ? 0 : ceil_div(o - phase, stride); };
  return {first_q(outputs.begin), first_q(outputs.end)};
}

}  // namespace sluice::kernels::weighted
