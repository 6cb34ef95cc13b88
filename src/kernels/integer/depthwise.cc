#include "src/kernels/integer/depthwise.h"

#include <cstring>

#include "src/kernels/integer/lane_groups.h"
#include "src/kernels/weighted/inside.h"

namespace sluice::kernels::integer {
namespace {

std::int64_t padding_bytes(std::int64_t channels) noexcept { return (ceil_div(channels, kWidestLanes) + 1) * kWidestLanes; }

/// What is the same for all rows of a step.
class RowRunner {
 public:
  RowRunner(const KernelCall& call, const TileTable& table, const LaneGroups& groups, const std::byte* padding) noexcept
      : call_(call),
        table_(table),
        conv_(call.parameters<IntegerConvolutionParameters>()),
        groups_(groups),
        inner_(weighted::interior_columns(conv_.window)),
        padding_(reinterpret_cast<const std::uint8_t*>(padding)) {}

  /// Groups [groups.begin, groups.end) of the step's channels.
  void run(std::int64_t row, Interval<std::int64_t> groups) const noexcept {
    const Window& w = conv_.window;
    const std::int64_t first = groups.begin * table_.lane_bytes;
    LaneRun run = groups_.run_of(first, std::min(groups.end * table_.lane_bytes, call_.channels.size()) - first);
    for (std::int64_t x = 0; x < w.out_w;) {
      const bool inside = inner_.contains(x);
      run.count = inside ? inner_.end - x : 1;
      run.even_rows = inside && w.kernel_h == 3 && w.kernel_w == 3;
      run_pixels(row, x, call_.channels.begin + first, run);
      x += run.count;
    }
  }

 private:
  void run_pixels(std::int64_t row, std::int64_t x, std::int64_t channel, LaneRun& run) const noexcept {
    const Window& w = conv_.window;
    const RowView& in = call_.inputs[0].view;
    const RowView& out = call_.outputs[0].view;
    const std::uint8_t* taps[kMostLaneTaps];
    std::int64_t steps[kMostLaneTaps];
    const std::int64_t image = row / w.out_h * w.in_h, top = row % w.out_h * w.stride_h - w.pad_top, left = x * w.stride_w - w.pad_left;
    for (std::int64_t ky = 0, t = 0; ky < w.kernel_h; ++ky) {
      const std::int64_t iy = top + ky * w.dilation_h;
      const std::uint8_t* const from = iy < 0 || iy >= w.in_h ? nullptr : in.at<const std::uint8_t>(image + iy) + channel;
      for (std::int64_t kx = 0; kx < w.kernel_w; ++kx, ++t) {
        const std::int64_t ix = left + kx * w.dilation_w;
        const bool padded = from == nullptr || ix < 0 || ix >= w.in_w;
        taps[t] = padded ? padding_ : from + ix * in.pixel_pitch;
        steps[t] = padded ? 0 : w.stride_w * in.pixel_pitch;
      }
    }
    for (std::int64_t t = w.taps(); t < run.fours * 4; ++t) {  // their weights are zero
      taps[t] = taps[0];
      steps[t] = steps[0];
    }
    run.taps = taps;
    run.steps = steps;
    run.out = out.at<std::byte>(row, x) + channel * static_cast<std::int64_t>(size_of(out.dtype));
    run.out_step = out.pixel_pitch;
    table_.lane_run(run);
  }

  const KernelCall& call_;
  const TileTable& table_;
  const IntegerConvolutionParameters& conv_;
  const LaneGroups& groups_;
  Interval<std::int64_t> inner_;
  const std::uint8_t* padding_;
};

}  // namespace

bool takes_lanes(const IntegerConvolutionParameters& conv) noexcept {
  return conv.depthwise() && conv.window.taps() <= kMostLaneTaps && !conv.weighted.epilogue.has_residual;
}

/// The workspace: prepared groups, a pixel of padding, then the terms of a step whose zero point comes at run time.
Bytes depthwise_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const std::int64_t channels = extent.channels.size();
  return Bytes(static_cast<std::uint64_t>(LaneGroups::bytes(conv.window.taps(), channels) + padding_bytes(channels))) +
         terms_workspace(conv.weighted, extent.channels);
}

void run_depthwise(const KernelCall& call, const TileTable& table) noexcept {
  const std::int64_t taps = call.parameters<IntegerConvolutionParameters>().window.taps();
  const std::int64_t channels = call.channels.size(), threads = thread_count(call);
  std::byte* const padding = call.workspace + LaneGroups::bytes(taps, channels);
  const LaneGroups prepared(call, table.lane_bytes, taps);
  prepared.prepare(terms_of(call, padding + padding_bytes(channels)),
                   [](const std::int8_t* panel, std::int64_t i) noexcept { return load_lanes(panel + i * kPanelLanes); });
  std::memset(padding, zero_of(call), static_cast<std::size_t>(padding_bytes(channels)));
  const RowRunner runner(call, table, prepared, padding);
  // Rows that are too few for all threads are shared by groups of channels.
  const std::int64_t groups = ceil_div(channels, std::int64_t{table.lane_bytes});
  const std::int64_t parts = threads > 1 && call.rows.size() < 8 * threads ? std::min(groups, 4 * threads) : 1;
  for_each_unit(call, call.rows.size() * parts, [&](std::int64_t unit, int) noexcept {
    runner.run(call.rows.begin + unit / parts, even_part({0, groups}, unit % parts, parts));
  });
  finish_floats(call, table.isa);
}

}  // namespace sluice::kernels::integer
