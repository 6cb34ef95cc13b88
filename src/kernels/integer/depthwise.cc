#include "src/kernels/integer/depthwise.h"

#include <cstring>

#include "src/kernels/weighted/inside.h"

namespace sluice::kernels::integer {
namespace {

constexpr std::int64_t kWidestLanes = 64;  // bytes of a vector

std::int64_t fours_of(const Window& w) noexcept { return ceil_div(w.taps(), 4); }
std::int64_t group_bytes(const Window& w, std::int64_t lanes) noexcept { return (fours_of(w) + 2) * 4 * lanes; }

/// The workspace: prepared groups, then a pixel of padding.
std::int64_t prepared_bytes(const Window& w, std::int64_t channels) noexcept {
  // No width takes more: vectors are halves of wider ones.
  return ceil_div(channels, kWidestLanes) * group_bytes(w, kWidestLanes);
}
std::int64_t padding_bytes(std::int64_t channels) noexcept { return (ceil_div(channels, kWidestLanes) + 1) * kWidestLanes; }

using Sixteen = std::uint8_t __attribute__((vector_size(16)));

Sixteen load_lanes(const std::int8_t* from) noexcept {
  Sixteen lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// Puts the bytes of four taps of a panel side by side, a lane's four after each other; `j`th quarter of the lanes to quarters[j].
void interleave(const Sixteen (&t)[4], std::byte* const (&quarters)[4]) noexcept {
  const auto low = [](Sixteen a, Sixteen b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto high = [](Sixteen a, Sixteen b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  };
  // Twice: of 0 2 and 1 3, then of the results, gives 0 1 2 3.
  const Sixteen low02 = low(t[0], t[2]), low13 = low(t[1], t[3]), high02 = high(t[0], t[2]), high13 = high(t[1], t[3]);
  const Sixteen all[4] = {low(low02, low13), high(low02, low13), low(high02, high13), high(high02, high13)};
  for (int j = 0; j < 4; ++j) std::memcpy(quarters[j], &all[j], sizeof all[j]);
}

/// Prepares the panels of the step's channels for vectors of `lanes` bytes.
void prepare(const KernelCall& call, std::int64_t lanes) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const std::int64_t taps = conv.window.taps(), fours = fours_of(conv.window), blocks = lanes / kPanelLanes;
  const std::int64_t panels = ceil_div(call.channels.size(), kPanelLanes);
  const WeightOperand& weight = call.weights[0];
  const auto panel_bytes = static_cast<std::int64_t>(weight.panel_bytes.count());
  const std::int64_t first = call.channels.begin / kPanelLanes;
  const auto* bias = call.weights[1].data + call.channels.begin * 4;
  const auto* multipliers = call.weights[2].data + call.channels.begin * 4;
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
      there ? std::memcpy(place(fours + 1, j), multipliers + from, 16) : std::memset(place(fours + 1, j), 0, 16);
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
    run.out = out.at<std::uint8_t>(row, x) + channel;
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
  return Bytes(static_cast<std::uint64_t>(prepared_bytes(conv.window, channels) + padding_bytes(channels)));
}

void run_depthwise(const KernelCall& call, const TileTable& table) noexcept {
  const auto& conv = call.parameters<IntegerConvolutionParameters>();
  const std::int64_t channels = call.channels.size(), threads = thread_count(call);
  prepare(call, table.lane_bytes);
  std::memset(call.workspace + prepared_bytes(conv.window, channels), conv.weighted.epilogue.zero_in,
              static_cast<std::size_t>(padding_bytes(channels)));
  const RowRunner runner(call, table);
  // Rows that are too few for all threads are shared by groups of channels.
  const std::int64_t groups = ceil_div(channels, std::int64_t{table.lane_bytes});
  const std::int64_t parts = threads > 1 && call.rows.size() < 8 * threads ? std::min(groups, 4 * threads) : 1;
  for_each_unit(call, call.rows.size() * parts, [&](std::int64_t unit, int) noexcept {
    runner.run(call.rows.begin + unit / parts, even_part({0, groups}, unit % parts, parts));
  });
}

}  // namespace sluice::kernels::integer
