// Transposed convolutions of the long tail by lines: along the last axis the outputs of one phase (place mod stride) meet the same taps, at
// neighbouring inputs, so they are a line of neighbouring sums (line_chains.h). Each sum is the chain that `generic::run` forms tap by tap:
// taps in their order, channels rising in each; or the sum of such chains of its taps.
//
//     output o = stride * q + phase meets tap t at input q + shift(t),  shift(t) = (phase + before - t * dilation) / stride
#pragma once

#include <cstdint>

#include "sluice/operators/generic/windows.h"
#include "src/kernels/plain/elements.h"

namespace sluice::kernels::plain {

/// How the values of a weight lie that is no matrix of panels: those of output channel m of a group begin at m * row_step, those of its
/// input channels are `step` apart, its taps neighbours.
struct DenseWeight {
  std::int64_t group_step = 0;  // from the weights of one group to those of the next
  std::int64_t row_step = 0, step = 0;
  std::int64_t per_group = 0, depth = 0;  // output and input channels of a group
};

/// Where tap `tap` of output `at` meets the input, or -1: at (output + padding - tap) / stride on each axis, where that is whole.
inline std::int64_t transposed_place(const Windows& w, std::int64_t at, std::int64_t tap) noexcept {
  std::int64_t place = 0, scale = 1;
  for (int axis = w.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t i = at % w.out[a] + w.before[a] - tap % w.kernel[a] * w.dilation[a];
    at /= w.out[a];
    tap /= w.kernel[a];
    if (i < 0 || i % w.stride[a] != 0 || i / w.stride[a] >= w.in[a]) return -1;
    place += i / w.stride[a] * scale;
    scale *= w.in[a];
  }
  return place;
}

/// Do the sums of an output go by taps (core/transposed_sums.h)? Of one and two axes: those of more have no other kernel.
bool takes_sums_by_taps(const Windows& w, std::int64_t groups, const DenseWeight& weight) noexcept;

/// Are windows so small beside the rows that copies of these are no waste?
bool takes_transposed_lines(const Windows& w) noexcept;

/// A copy of one image's rows with zeros before and behind them.
std::uint64_t transposed_lines_scratch(const PlainTensor& x, const Windows& w) noexcept;

/// Adds to `out`, which holds zeros.
void run_transposed_lines(const PlainNode& node, const PlainTensor& out, const Windows& w, const DenseWeight& weight,
                          float* scratch) noexcept;

}  // namespace sluice::kernels::plain
