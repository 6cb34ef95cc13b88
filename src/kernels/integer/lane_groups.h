// The weights, biases and multipliers of a step, as runs of lanes read them (depthwise.h), in the step's workspace.
//
//     a group of B channels:  [taps / 4][4 vectors][B] i8 | bias: [4 vectors][B / 4] i32 | multipliers: [4 vectors][B / 4] f32
#pragma once

#include <algorithm>
#include <cstring>

#include "src/kernels/integer/interleave.h"
#include "src/kernels/integer/tile.h"
#include "src/kernels/integer/walk.h"

namespace sluice::kernels::integer {

inline constexpr std::int64_t kWidestLanes = 64;  // bytes of a vector

/// The groups of the step's channels, at the begin of the workspace, for vectors of `lanes` bytes.
class LaneGroups {
 public:
  /// Enough for any width of vectors: those of all are parts of the widest.
  static constexpr std::int64_t bytes(std::int64_t taps, std::int64_t channels) noexcept {
    return ceil_div(channels, kWidestLanes) * group_bytes(ceil_div(taps, std::int64_t{4}), kWidestLanes);
  }

  LaneGroups(const KernelCall& call, std::int64_t lanes, std::int64_t taps) noexcept
      : call_(call), lanes_(lanes), taps_(taps), fours_(ceil_div(taps, std::int64_t{4})) {}

  /// `tap(panel, i)` gives the 16 weights of tap i of a panel, as `Sixteen`.
  template <class Tap>
  void prepare(const Terms& terms, const Tap& tap) const noexcept {
    const std::int64_t blocks = lanes_ / kPanelLanes, panels = ceil_div(call_.channels.size(), kPanelLanes);
    const WeightOperand& weight = call_.weights[0];
    const auto panel_bytes = static_cast<std::int64_t>(weight.panel_bytes.count());
    const std::int64_t first = call_.channels.begin / kPanelLanes;
    const auto* bias = reinterpret_cast<const std::byte*>(terms.bias + (call_.channels.begin - terms.first));
    const auto* multipliers = terms.multipliers == nullptr
                                  ? nullptr
                                  : reinterpret_cast<const std::byte*>(terms.multipliers + (call_.channels.begin - terms.first));
    for (std::int64_t p = 0; p < ceil_div(panels, blocks) * blocks; ++p) {
      std::byte* const group = call_.workspace + p / blocks * group_bytes(fours_, lanes_);
      const auto place = [&](std::int64_t four, std::int64_t j) { return group + (four * 4 + j) * lanes_ + p % blocks * kPanelLanes; };
      const bool there = p < panels;
      const auto* values = reinterpret_cast<const std::int8_t*>(weight.data) + (first + p - weight.panels.begin) * panel_bytes;
      for (std::int64_t four = 0; four < fours_; ++four) {
        Sixteen t[4] = {};
        for (std::int64_t i = 0; i < 4; ++i)
          if (there && four * 4 + i < taps_) t[i] = tap(values, four * 4 + i);
        interleave(t, {place(four, 0), place(four, 1), place(four, 2), place(four, 3)});
      }
      for (std::int64_t j = 0; j < 4; ++j) {
        const std::int64_t from = (p * kPanelLanes + j * 4) * 4;
        there ? std::memcpy(place(fours_, j), bias + from, 16) : std::memset(place(fours_, j), 0, 16);
        there&& multipliers != nullptr ? std::memcpy(place(fours_ + 1, j), multipliers + from, 16)
                                       : std::memset(place(fours_ + 1, j), 0, 16);
      }
    }
  }

  /// A run over `channels` channels from the step's channel `first` on, which begins a group; where it reads and writes is not said yet.
  LaneRun run_of(std::int64_t first, std::int64_t channels) const noexcept {
    LaneRun run;
    run.fours = fours_;
    run.prepared = call_.workspace + first / lanes_ * group_bytes(fours_, lanes_);
    run.channels = channels;
    run.range = weighted_of(call_).epilogue.range;
    run.type = call_.outputs[0].view.dtype;
    return run;
  }

 private:
  static constexpr std::int64_t group_bytes(std::int64_t fours, std::int64_t lanes) noexcept { return (fours + 2) * 4 * lanes; }

  const KernelCall& call_;
  std::int64_t lanes_;
  std::int64_t taps_;
  std::int64_t fours_;
};

}  // namespace sluice::kernels::integer
