// Sums of products whose neighbours along a row are lanes: convolutions of the long tail, whose weights may come at run time, over planes
// of one channel each.
//
//     sum i of output o:  over taps t, then channels c:
//         x[offsets[t] + c * x_channel + i] * w[places[t] + c * w_channel + o * w_row]
//
// Each sum is the chain of generic/chains.h and goes on from the value that lies there, so that taps may come in parts.
#pragma once

#include <cstdint>

#include "sluice/core/cpu.h"

namespace sluice::kernels::plain {

struct LineChains {
  const float* x = nullptr;
  std::int64_t x_channel = 0;
  const float* w = nullptr;
  std::int64_t w_row = 0, w_channel = 0;
  const std::int64_t* offsets = nullptr;  // of the taps in x
  const std::int64_t* places = nullptr;   // of the taps in w
  std::int64_t taps = 0, channels = 0;
  float* sums = nullptr;
  std::int64_t sum_row = 0;  // from one output to the next
  std::int64_t outputs = 0, count = 0;
};

using LineChainsRun = void (*)(const LineChains& line) noexcept;

/// The code for an instruction set, or for the nearest lower one this build has. Nothing outside the values named is read or written.
LineChainsRun line_chains_run(Isa isa) noexcept;

}  // namespace sluice::kernels::plain
