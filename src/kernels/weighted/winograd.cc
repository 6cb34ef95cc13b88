#include "src/kernels/weighted/winograd.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/kernels/weighted/winograd_cut.h"
#include "src/kernels/weighted/winograd_tile.h"

namespace sluice::kernels::weighted {
namespace {

using winograd::kInTile;
using winograd::kOutTile;
using winograd::kPoints;

constexpr std::int64_t kLanes = kPanelLanes;
/// What one transform of 36 values takes of the time of the products, in flops: 38 ns for 16 of them at 178 GFLOP/s, four times their
/// arithmetic, because what they read and write passes through L2.
constexpr std::uint64_t kTransformFlops = 400;
/// What it takes to read a byte of transformed weights from memory, beyond what is read while products are computed: kept transformed, all
/// convolutions of VGG-19 take 155 ms instead of 138, those of ResNet-50 50 instead of 46.
constexpr std::uint64_t kDerivedByteFlops = 4;

const ConvolutionParameters& conv_of(const KernelCall& call) noexcept { return call.parameters<ConvolutionParameters>(); }

const std::byte* raw_panel(const KernelCall& call, std::int64_t panel) noexcept {
  const WeightOperand& weight = call.weights[0];
  return weight.data + (panel - weight.panels.begin) * static_cast<std::int64_t>(conv_of(call).weighted.panels.panel_bytes.count());
}

/// Channels `k` as they are stored; of narrow panels, the lines where they lie, for fetching alone.
RawPanels raw_panels(const KernelCall& call, std::int64_t panel, Interval<std::int64_t> k) noexcept {
  constexpr std::int64_t kValueBytes = sizeof(float), kLineBytes = kLanes * kValueBytes;
  const PanelGeometry& geometry = conv_of(call).weighted.panels;
  const std::int64_t value = static_cast<std::int64_t>(geometry.panel_bytes.count()) / geometry.values;  // of 16 lanes
  return {reinterpret_cast<const float*>(raw_panel(call, panel) + k.begin * value), conv_of(call).group_depth() * value / kValueBytes,
          ceil_div(k.size() * value, kLineBytes)};
}

/// Transforms channels `k` of a raw panel. `u`: where those of the first of them lie.
void transform_panel(const KernelCall& call, const WinogradTable& loops, std::int64_t panel, Interval<std::int64_t> k, float* u,
                     std::int64_t u_point) noexcept {
  if (loops.widen == nullptr) return loops.weights(raw_panels(call, panel, k), u, u_point);
  constexpr std::int64_t kWidened = 32;  // channels at a time: 18 KiB of floats
  alignas(64) float values[9 * kWidened * kLanes];
  for (std::int64_t begin = k.begin; begin < k.end; begin += kWidened) {
    const std::int64_t count = std::min(kWidened, k.end - begin);
    for (std::int64_t tap = 0; tap < 9; ++tap)
      loops.widen(raw_panel(call, panel), conv_of(call).weighted.panels.layout.k_group, tap * conv_of(call).group_depth() + begin, count,
                  values + tap * count * kLanes);
    loops.weights({values, count * kLanes, count}, u + (begin - k.begin) * kLanes, u_point);
  }
}

float* derived_panel(const KernelCall& call, std::int64_t panel) noexcept {
  return reinterpret_cast<float*>(call.derived.data) +
         (panel - call.derived.panels.begin) * kPoints * winograd_u_point(conv_of(call).group_depth());
}

/// One thread at work on a step.
class Worker {
 public:
  Worker(const KernelCall& call, const WinogradCut& cut, const WinogradTable& loops, int thread) noexcept
      : call_(call),
        cut_(cut),
        loops_(loops),
        thread_(thread),
        memory_(reinterpret_cast<float*>(call.workspace) + thread * cut.memory.size) {}

  /// Before the first unit: v and u hold nothing, zeros are zeros.
  void reset() const noexcept {
    std::memset(memory_, 0, static_cast<std::size_t>(cut_.memory.v) * sizeof(float));
    held()[kInputs] = held()[kRun] = -1;
  }

  void run(std::int64_t unit) const noexcept {
    const std::int64_t block = cut_.block_of(unit), run = cut_.run_of(unit);
    const auto squares = cut_.squares_of(block);
    const PanelRange panels = cut_.panels_of(run);
    const std::int64_t inputs = cut_.inputs_of(unit);
    if (std::exchange(held()[kInputs], inputs) != inputs) transform_inputs(squares, cut_.group_of(run));
    if (cut_.keeps_weights && std::exchange(held()[kRun], run) != run) transform_weights(panels, {0, cut_.depth});
    for (std::int64_t p = panels.begin; p < panels.end; p += kPairPanels) {
      const PanelRange pair{p, std::min(p + kPairPanels, panels.end)};
      pause_inside(call_, thread_);
      if (call_.pool != nullptr && call_.pool->stopped()) return;
      multiply(squares.size(), panels, pair, unit + 1 == cut_.units() && pair.end == panels.end);
      transform_outputs(squares, pair);
    }
  }

 private:
  enum Held { kInputs = 0, kRun = 1 };

  std::int64_t* held() const noexcept { return reinterpret_cast<std::int64_t*>(memory_); }
  float* v() const noexcept { return memory_ + cut_.memory.v; }
  float* u() const noexcept { return memory_ + cut_.memory.u; }
  float* m() const noexcept { return memory_ + cut_.memory.m; }

  void transform_inputs(Interval<std::int64_t> squares, std::int64_t group) const noexcept {
    const Window& w = conv_of(call_).window;
    const RowView& in = call_.inputs[0].view;
    const float* const zeros = memory_ + cut_.memory.zeros;
    float* to = v();
    for (std::int64_t s = squares.begin; s < squares.end; ++s, to += cut_.memory.v_square) {
      const Square square = cut_.squares[s];
      const float* pixels[kPoints];
      for (std::int64_t i = 0; i < kInTile; ++i) {
        const std::int64_t y = square.y - w.pad_top + i, first = square.x - w.pad_left;
        const float** const of_row = pixels + i * kInTile;
        if (y < 0 || y >= w.in_h) {
          std::fill_n(of_row, kInTile, zeros);
          continue;
        }
        const std::byte* const row = in.row(square.image * w.in_h + y) + group * cut_.depth * static_cast<std::int64_t>(sizeof(float));
        if (first >= 0 && first + kInTile <= w.in_w) {
          for (std::int64_t j = 0; j < kInTile; ++j) of_row[j] = reinterpret_cast<const float*>(row + (first + j) * in.pixel_pitch);
          continue;
        }
        for (std::int64_t j = 0, x = first; j < kInTile; ++j, ++x)
          of_row[j] = x >= 0 && x < w.in_w ? reinterpret_cast<const float*>(row + x * in.pixel_pitch) : zeros;
      }
      loops_.input(pixels, cut_.depth, to, cut_.memory.v_point);
    }
  }

  void transform_weights(PanelRange panels, Interval<std::int64_t> k) const noexcept {
    for (std::int64_t p = panels.begin; p < panels.end; ++p)
      transform_panel(call_, loops_, p, k, u() + (p - panels.begin) * kPoints * cut_.memory.u_point, cut_.memory.u_point);
  }

  /// What is transformed after channels `k` of `pair`, if it is as much.
  RawPanels raw_after(PanelRange run, PanelRange pair, Interval<std::int64_t> k) const noexcept {
    if (k.end + k.size() <= cut_.depth) return raw_panels(call_, pair.begin, {k.end, k.end + k.size()});
    if (k.end == cut_.depth && pair.end + pair.size() <= run.end) return raw_panels(call_, pair.end, {0, k.size()});
    return {};
  }

  /// The weights of the next step, as if they were `depth` channels of raw panels.
  RawPanels next_step(std::int64_t depth) const noexcept {
    return {reinterpret_cast<const float*>(call_.next_weights.data()), depth * kLanes, depth};
  }

  /// `last`: these are the step's last products.
  void multiply(std::int64_t squares, PanelRange run, PanelRange pair, bool last) const noexcept {
    Products job{.v = v(),
                 .v_point = cut_.memory.v_point,
                 .v_square = cut_.memory.v_square,
                 .squares = squares,
                 .u = u(),
                 .u_point = cut_.memory.u_point,
                 .u_panel = kPoints * cut_.memory.u_point,
                 .panels = static_cast<int>(pair.size()),
                 .m = m(),
                 .m_point = cut_.memory.m_point};
    const bool derived = call_.derived.data != nullptr;
    if (derived) {
      job.u = derived_panel(call_, pair.begin);
      job.u_point = winograd_u_point(cut_.depth);
      job.u_panel = kPoints * job.u_point;
    } else if (cut_.keeps_weights) {
      job.u += (pair.begin - run.begin) * job.u_panel;
    }
    for (std::int64_t k = 0; k < cut_.depth; k += cut_.u_depth) {
      job.depth = std::min(cut_.u_depth, cut_.depth - k);
      job.first = k == 0;
      if (!derived && !cut_.keeps_weights) {
        transform_weights(pair, {k, k + job.depth});
        job.next = raw_after(run, pair, {k, k + job.depth});
      }
      if (last && k + job.depth == cut_.depth) job.next = next_step(job.depth);
      loops_.multiply(job);
      job.v += job.depth;
      if (derived) job.u += job.depth * kLanes;
    }
  }

  void transform_outputs(Interval<std::int64_t> squares, PanelRange panels) const noexcept {
    const Epilogue& epilogue = weighted_of(call_).epilogue;
    const ChannelRange channels = channels_of_panels(panels, conv_of(call_).group_outputs(), conv_of(call_).out_channels);
    const std::int64_t channel = channels.begin;
    TileJob job;
    job.panel_count = static_cast<int>(panels.size());
    job.last_lanes = static_cast<int>(channels.size() - (panels.size() - 1) * kLanes);
    if (epilogue.has_bias) job.bias = reinterpret_cast<const float*>(call_.weights[1].data) + channel;
    job.has_residual = epilogue.has_residual;
    job.activation = epilogue.activation;
    const bool far = is_far(call_.outputs[0].view);
    const float* from = m();
    TileRows rows[2];  // of a square, and of the one that follows
    set_rows(cut_.squares[squares.begin], channel, rows[squares.begin % 2]);
    for (std::int64_t s = squares.begin; s < squares.end; ++s, from += kSquareFloats) {
      TileRows& next = rows[(s + 1) % 2];
      if (s + 1 < squares.end) set_rows(cut_.squares[s + 1], channel, next);
      if (far && s + 1 < squares.end) fetch_outputs(next, job.panel_count);
      loops_.output(from, cut_.memory.m_point, rows[s % 2], job);
    }
  }

  /// Brings what a square will be written to into the first cache.
  static void fetch_outputs(const TileRows& rows, int panels) noexcept {
    for (int m = 0; m < rows.count; ++m)
      for (int p = 0; p < panels; ++p) __builtin_prefetch(rows.out[m] + p * kLanes, 0, 3);
  }

  void set_rows(const Square& square, std::int64_t channel, TileRows& rows) const noexcept {
    rows.count = kOutTile * kOutTile;
    set_pixels(call_.outputs[0].view, square, channel, rows.out);
    if (weighted_of(call_).epilogue.has_residual) set_pixels(call_.inputs.back().view, square, channel, rows.residual);
  }

  /// The positions of a square's pixels in a view. Those outside of the step are read and written in `dump`.
  template <class Float>
  void set_pixels(const RowView& view, const Square& square, std::int64_t channel, Float** pixels) const noexcept {
    const Window& w = conv_of(call_).window;
    float* const dump = memory_ + cut_.memory.dump;
    const std::int64_t columns = std::min(kOutTile, w.out_w - square.x);
    for (std::int64_t i = 0; i < kOutTile; ++i, pixels += kOutTile) {
      const std::int64_t y = square.y + i, row = square.image * w.out_h + y;
      if (y >= w.out_h || !call_.rows.contains(row)) {
        std::fill_n(pixels, kOutTile, dump);
        continue;
      }
      std::byte* const first = view.row(row) + square.x * view.pixel_pitch + channel * static_cast<std::int64_t>(sizeof(float));
      for (std::int64_t j = 0; j < kOutTile; ++j) pixels[j] = j < columns ? reinterpret_cast<float*>(first + j * view.pixel_pitch) : dump;
    }
  }

  const KernelCall& call_;
  const WinogradCut& cut_;
  const WinogradTable& loops_;
  const int thread_;
  float* memory_;
};

}  // namespace

Bytes winograd_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const auto floats = static_cast<std::uint64_t>(WinogradCut(conv, extent).memory.size);
  return Bytes(floats * sizeof(float) * static_cast<std::uint64_t>(extent.threads));
}

void run_winograd(const KernelCall& call, const WinogradTable& loops) noexcept {
  const int threads = thread_count(call);
  const WinogradCut cut(conv_of(call), {call.rows, call.channels, threads, call.derived.data != nullptr});
  for (int thread = 0; thread < threads; ++thread) Worker(call, cut, loops, thread).reset();
  for_each_unit(call, cut.units(), [&](std::int64_t unit, int thread) noexcept { Worker(call, cut, loops, thread).run(unit); });
}

Bytes winograd_panel_bytes(const ConvolutionParameters& conv) noexcept {
  const std::int64_t floats = kPoints * winograd_u_point(conv.group_depth());
  return Bytes(static_cast<std::uint64_t>(floats) * sizeof(float));
}

void prepare_winograd(const KernelCall& call, const WinogradTable& loops) noexcept {
  constexpr std::int64_t kUnitDepth = 64;
  const std::int64_t depth = conv_of(call).group_depth();
  const std::int64_t parts = ceil_div(depth, kUnitDepth);
  const PanelRange panels = panels_of_channels(call.channels, conv_of(call).group_outputs());
  for_each_unit(call, panels.size() * parts, [&](std::int64_t unit, int) noexcept {
    const std::int64_t panel = panels.begin + unit / parts;
    const auto k = even_part({0, depth}, unit % parts, parts);
    transform_panel(call, loops, panel, k, derived_panel(call, panel) + k.begin * kLanes, winograd_u_point(depth));
  });
}

CostFeatures winograd_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const WinogradCut cut(conv, extent);
  const std::uint64_t squares = unsigned_of(cut.squares.count()), depth = unsigned_of(cut.depth);
  const std::uint64_t outputs = unsigned_of(cut.panels.size() * kLanes);
  CostFeatures cost = weighted_cost(conv.weighted, extent);
  const std::uint64_t inputs = depth * unsigned_of(cut.grouped ? cut.runs : 1);
  cost.flops = squares * outputs * depth * unsigned_of(kPoints) * 2 + squares * (inputs + outputs) * kTransformFlops;
  const std::uint64_t readings = unsigned_of(cut.keeps_weights ? 1 : cut.blocks);
  if (extent.derived) {
    cost.weight_bytes = unsigned_of(cut.panels.size()) * winograd_panel_bytes(conv).count();
    cost.flops += cost.weight_bytes * kDerivedByteFlops * readings;
  } else {
    cost.flops += outputs * depth * kTransformFlops * readings;
  }
  cost.weight_bytes *= readings;  // they outlast no block in L2
  return cost;
}

CostFeatures winograd_prepare_cost(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  const auto panels = static_cast<std::uint64_t>(panels_of_channels(extent.channels, conv.group_outputs()).size());
  CostFeatures cost;
  cost.flops = panels * kLanes * static_cast<std::uint64_t>(conv.group_depth()) * kTransformFlops;
  cost.weight_bytes = panels * conv.weighted.panels.panel_bytes.count();
  cost.output_bytes = panels * winograd_panel_bytes(conv).count();
  return cost;
}

}  // namespace sluice::kernels::weighted
