#include "src/kernels/integer/grouped.h"

#include <cstring>

#include "src/kernels/integer/lane_groups.h"
#include "src/kernels/integer/padded.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::integer {
namespace {

using weighted::for_each_area;
using weighted::OutArea;
using weighted::OutAreas;
using weighted::plan_strips;
using weighted::StripArea;
using weighted::StripPlan;
using weighted::Strips;
using weighted::UnitGrid;
using weighted::UnitPlace;

std::int64_t taps_of(const IntegerConvolutionParameters& conv) noexcept { return conv.window.taps() * conv.group_depth(); }
std::int64_t pixel_bytes(const IntegerConvolutionParameters& conv) noexcept { return conv.group_depth() * kWidestLanes; }

StripPlan plan_of(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return plan_strips(conv.window, pixel_bytes(conv) / kWord, extent, ceil_div(extent.channels.size(), kWidestLanes));
}

/// The inputs of `groups` whole groups of so many outputs as `Repeated` has bytes, of `pixels` pixels that lie `step` bytes apart.
template <class Repeated>
void spread_whole(const std::uint8_t* from, std::int64_t step, std::int64_t pixels, std::int64_t depth, std::int64_t groups,
                  std::uint8_t* to) noexcept {
  constexpr auto kOnes = static_cast<Repeated>(static_cast<Repeated>(~Repeated{0}) / 255);
  for (std::int64_t x = 0; x < pixels; ++x, from += step)
    for (std::int64_t k = 0; k < depth; ++k, to += kWidestLanes)
      for (std::int64_t group = 0; group < groups; ++group) {
        const auto repeated = static_cast<Repeated>(from[group * depth + k] * kOnes);
        std::memcpy(to + group * static_cast<std::int64_t>(sizeof repeated), &repeated, sizeof repeated);
      }
}

/// How the inputs of the lanes of one block of at most 64 outputs are found in a pixel. Lanes that are no outputs stay as they are.
class Spread {
 public:
  Spread(const IntegerConvolutionParameters& conv, std::int64_t channel, std::int64_t live) noexcept
      : depth_(conv.group_depth()), live_(live) {
    const std::int64_t outputs = conv.group_outputs();
    if (channel % outputs == 0 && live % outputs == 0) outputs_ = outputs;
    for (std::int64_t lane = 0; lane < live; ++lane) source_[lane] = (channel + lane) / outputs * depth_;
  }

  void operator()(const std::uint8_t* from, std::int64_t step, std::int64_t pixels, std::uint8_t* to) const noexcept {
    switch (outputs_) {
      case 1:
        return spread_whole<std::uint8_t>(from + source_[0], step, pixels, depth_, live_, to);
      case 2:
        return spread_whole<std::uint16_t>(from + source_[0], step, pixels, depth_, live_ / 2, to);
      case 4:
        return spread_whole<std::uint32_t>(from + source_[0], step, pixels, depth_, live_ / 4, to);
      case 8:
        return spread_whole<std::uint64_t>(from + source_[0], step, pixels, depth_, live_ / 8, to);
      default:
        break;
    }
    for (std::int64_t x = 0; x < pixels; ++x, from += step)
      for (std::int64_t k = 0; k < depth_; ++k, to += kWidestLanes)
        for (std::int64_t lane = 0; lane < live_; ++lane) to[lane] = from[source_[lane] + k];
  }

 private:
  std::int64_t depth_;
  std::int64_t live_;
  std::int64_t outputs_ = 0;           // of a group, where the block is whole groups
  std::int64_t source_[kWidestLanes];  // of each live lane's first input
};

/// The weights of a panel as lanes read them: value i of a lane, i counting taps and in each the group's inputs.
class PanelTaps {
 public:
  explicit PanelTaps(const IntegerConvolutionParameters& conv) noexcept
      : depth_(conv.group_depth()),
        interleave_(conv.weighted.panels.layout.k_interleave),
        padded_(ceil_div(depth_, interleave_) * interleave_) {}

  Sixteen operator()(const std::int8_t* panel, std::int64_t i) const noexcept {
    const std::int64_t place = i / depth_ * padded_ + i % depth_;
    const std::int8_t* const from = panel + place / interleave_ * kPanelLanes * interleave_ + place % interleave_;
    Sixteen lanes;
    for (int lane = 0; lane < kPanelLanes; ++lane) lanes[lane] = static_cast<std::uint8_t>(from[lane * interleave_]);
    return lanes;
  }

 private:
  std::int64_t depth_, interleave_, padded_;
};

/// Runs one area of one block, whose strip is filled.
void run_area(const KernelCall& call, const TileTable& table, const StripPlan& plan, const OutArea& area, const std::uint8_t* strip,
              LaneRun run, std::int64_t channel) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const Window& w = conv.window;
  const RowView& out = call.outputs[0].view;
  const std::int64_t depth = conv.group_depth(), pixel = pixel_bytes(conv), row = plan.in_columns * pixel;
  const std::int64_t tap_row = (plan.rows_apart ? plan.out_rows : w.dilation_h) * row;
  const std::int64_t tap_column = (plan.columns_apart ? plan.out_columns : w.dilation_w) * pixel;
  const std::int64_t out_row_step = (plan.rows_apart ? 1 : w.stride_h) * row;
  std::int64_t steps[kMostLaneTaps];
  std::fill_n(steps, run.fours * 4, (plan.columns_apart ? 1 : w.stride_w) * pixel);
  const std::uint8_t* taps[kMostLaneTaps];
  run.steps = steps;
  run.taps = taps;
  run.count = area.columns.size();
  run.even_rows = w.kernel_h == 3 && w.kernel_w == 3 && depth == 1;
  run.out_step = out.pixel_pitch;
  for (std::int64_t y = 0; y < area.rows.size(); ++y) {
    const std::uint8_t* const first = strip + y * out_row_step;
    for (std::int64_t i = 0; i < run.fours * 4; ++i) {
      const std::int64_t tap = i / depth;
      // Behind the last tap weights are zero.
      taps[i] = tap >= w.taps() ? first : first + tap / w.kernel_w * tap_row + tap % w.kernel_w * tap_column + i % depth * kWidestLanes;
    }
    run.out = out.at<std::byte>(area.image * w.out_h + area.rows.begin + y, area.columns.begin) +
              channel * static_cast<std::int64_t>(size_of(out.dtype));
    table.lane_run(run);
  }
}

}  // namespace

bool takes_groups(const IntegerConvolutionParameters& conv) noexcept {
  return operators::runs_by_lanes(conv.group_outputs(), taps_of(conv)) && !conv.weighted.epilogue.has_residual;
}

Bytes grouped_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return Bytes(static_cast<std::uint64_t>(LaneGroups::bytes(taps_of(conv), extent.channels.size()))) +
         weighted::strip_workspace(plan_of(conv, extent), extent.threads) + terms_workspace(conv.weighted, extent.channels);
}

void run_grouped(const KernelCall& call, const TileTable& table) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const int threads = thread_count(call);
  const ChannelRange channels = call.channels;
  const StripPlan plan = plan_of(conv, {call.rows, channels, threads});
  std::byte* const strips_at = call.workspace + LaneGroups::bytes(taps_of(conv), channels.size());
  const Strips strips(strips_at, plan, threads);
  const Terms terms = terms_of(call, strips_at + weighted::strip_workspace(plan, threads).count());
  const LaneGroups groups(call, table.lane_bytes, taps_of(conv));
  groups.prepare(terms, PanelTaps(conv));

  const OutAreas areas(call.rows, conv.window, plan);
  const UnitGrid units{.blocks = ceil_div(channels.size(), kWidestLanes), .runs = areas.count()};
  const int zero = zero_of(call);
  const std::int64_t bytes = pixel_bytes(conv);
  for_each_unit(call, units.count(), [&](std::int64_t unit, int thread) noexcept {
    const UnitPlace place = units[unit];
    const OutArea area = areas[place.run];
    const std::int64_t first = place.block * kWidestLanes, live = std::min(kWidestLanes, channels.size() - first);
    const Spread spread(conv, channels.begin + first, live);
    auto* const strip = reinterpret_cast<std::uint8_t*>(strips.strip(thread));
    for_each_area(conv.window, area, plan, [&](const StripArea& part, std::int64_t before) noexcept {
      fill_padded(call.inputs[0].view, conv.window, part, bytes, plan.in_columns * bytes, zero, spread, strip + before * bytes);
    });
    run_area(call, table, plan, area, strip, groups.run_of(first, live), channels.begin + first);
  });
  finish_floats(call, table.isa);
}

}  // namespace sluice::kernels::integer
