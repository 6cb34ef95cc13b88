#include "src/kernels/integer/depthwise.h"

#include <cstring>

#include "src/kernels/integer/interleave.h"
#include "src/kernels/weighted/inside.h"

namespace sluice::kernels::integer {
namespace {

constexpr std::int64_t kWidestLanes = 64;  // bytes of a vector

std::int64_t fours_of(const Window& w) noexcept { return ceil_div(w.taps(), 4); }
std::int64_t group_bytes(const Window& w, std::int64_t lanes) noexcept { return (fours_of(w) + 2) * 4 * lanes; }

/// The workspace: prepared groups, a pixel of padding, then the terms of a step whose zero point comes at run time.
std::int64_t prepared_bytes(const Window& w, std::int64_t channels) noexcept {
  // No width takes more: vectors are halves of wider ones.
  return ceil_div(channels, kWidestLanes) * group_bytes(w, kWidestLanes);
}
std::int64_t padding_bytes(std::int64_t channels) noexcept { return (ceil_div(channels, kWidestLanes) + 1) * kWidestLanes; }

std::byte* terms_room(const KernelCall& call) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const std::int64_t channels = call.channels.size();
  return call.workspace + prepared_bytes(conv.window, channels) + padding_bytes(channels);
}

/// Prepares the panels of the step's channels for vectors of `lanes` bytes.
void prepare(const KernelCall& call, std::int64_t lanes) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const std::int64_t taps = conv.window.taps(), fours = fours_of(conv.window), blocks = lanes / kPanelLanes;
  const std::int64_t panels = ceil_div(call.channels.size(), kPanelLanes);
  const WeightOperand& weight = call.weights[0];
  const auto panel_bytes = static_cast<std::int64_t>(weight.panel_bytes.count());
  const std::int64_t first = call.channels.begin / kPanelLanes;
  const Terms terms = terms_of(call, terms_room(call));
  const auto* bias = reinterpret_cast<const std::byte*>(terms.bias + (call.channels.begin - terms.first));
  const auto* multipliers =
      terms.multipliers == nullptr ? nullptr : reinterpret_cast<const std::byte*>(terms.multipliers + (call.channels.begin - terms.first));
  for (std::int64_t p = 0; p < ceil_div(panels, blocks) * blocks; ++p) {
    std::byte* const group = call.workspace + p / blocks * group_bytes(conv.window, lanes);
    const auto place = [&](std::int64_t four, std::int64_t j) { return group + (four * 4 + j) * lanes + p % blocks * 16; };
    const bool there = p < panels;
    const auto* values = reinterpret_cast<const std::int8_t*>(weight.data) + (first + p - weight.panels.begin) * panel_bytes;
    for (std::int64_t four = 0; four < fours; ++four) {
      Sixteen t[4] = {};
      for (std::int64_t i = 0; i < 4; ++i)
        if (there && four * 4 + i < taps) t[i] = load_lanes(values + (four * 4 + i) * kPanelLanes);
      interleave(t, {place(four, 0), place(four, 1), place(four, 2), place(four, 3)});
    }
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t from = (p * kPanelLanes + j * 4) * 4;
      there ? std::memcpy(place(fours, j), bias + from, 16) : std::memset(place(fours, j), 0, 16);
      there&& multipliers != nullptr ? std::memcpy(place(fours + 1, j), multipliers + from, 16) : std::memset(place(fours + 1, j), 0, 16);
    }
  }
}

/// What is the same for all rows of a step.
class RowRunner {
 public:
  RowRunner(const KernelCall& call, const TileTable& table) noexcept
      : call_(call),
        table_(table),
        conv_(call.parameters<IntegerConvolutionParameters>()),
        inner_(weighted::interior_columns(conv_.window)),
        padding_(reinterpret_cast<const std::uint8_t*>(call.workspace) + prepared_bytes(conv_.window, call.channels.size())) {}

  /// Groups [groups.begin, groups.end) of the step's channels.
  void run(std::int64_t row, Interval<std::int64_t> groups) const noexcept {
    const Window& w = conv_.window;
    const std::int64_t first = groups.begin * table_.lane_bytes;
    LaneRun run;
    run.fours = fours_of(w);
    run.prepared = call_.workspace + groups.begin * group_bytes(w, table_.lane_bytes);
    run.channels = std::min(groups.end * table_.lane_bytes, call_.channels.size()) - first;
    run.range = conv_.weighted.epilogue.range;
    run.type = call_.outputs[0].view.dtype;
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
  Interval<std::int64_t> inner_;
  const std::uint8_t* padding_;
};

}  // namespace

bool takes_lanes(const IntegerConvolutionParameters& conv) noexcept {
  return conv.depthwise() && conv.window.taps() <= kMostLaneTaps && !conv.weighted.epilogue.has_residual;
}

Bytes depthwise_workspace(const IntegerConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const std::int64_t channels = extent.channels.size();
  return Bytes(static_cast<std::uint64_t>(prepared_bytes(conv.window, channels) + padding_bytes(channels))) +
         terms_workspace(conv.weighted, extent.channels);
}

void run_depthwise(const KernelCall& call, const TileTable& table) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const std::int64_t channels = call.channels.size(), threads = thread_count(call);
  prepare(call, table.lane_bytes);
  std::memset(call.workspace + prepared_bytes(conv.window, channels), zero_of(call), static_cast<std::size_t>(padding_bytes(channels)));
  const RowRunner runner(call, table);
  // Rows that are too few for all threads are shared by groups of channels.
  const std::int64_t groups = ceil_div(channels, std::int64_t{table.lane_bytes});
  const std::int64_t parts = threads > 1 && call.rows.size() < 8 * threads ? std::min(groups, 4 * threads) : 1;
  for_each_unit(call, call.rows.size() * parts, [&](std::int64_t unit, int) noexcept {
    runner.run(call.rows.begin + unit / parts, even_part({0, groups}, unit % parts, parts));
  });
  finish_floats(call, table.isa);
}

}  // namespace sluice::kernels::integer
