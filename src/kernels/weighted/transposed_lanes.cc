// Transposed convolutions whose window is as large as its stride, of few outputs: heads that make a mask or a picture as large as the
// input. No two taps meet, so each output has one tap, and an input pixel has a square of outputs of its own. The outputs of one phase
// would fill a few lanes of a panel; here the phases of a square are the lanes, and the weights are put beside each other for the step:
//
//     weights: [panels][k][16 lanes], lane = (phase of rows * phases of columns + phase of columns) * outputs + output
//
// Each output sums the products of its one tap as transposed.cc does: the same bits.
#include <algorithm>
#include <cstring>

#include "src/kernels/weighted/direct.h"

namespace sluice::kernels::weighted {
namespace {

std::int64_t phases_of(const Window& w) noexcept { return w.stride_h * w.stride_w; }
std::int64_t lane_panels(const ConvolutionParameters& conv) noexcept {
  return ceil_div(phases_of(conv.window) * conv.out_channels, kPanelLanes);
}

/// The workspace, in floats: weights, a bias for each lane, for each thread the sums of a tile, [pixel][lanes], and a narrow panel as
/// floats.
class Room {
 public:
  Room(const ConvolutionParameters& conv, std::byte* at, int threads) noexcept
      : lanes_(lane_panels(conv) * kPanelLanes), depth_(conv.in_channels), threads_(threads) {
    first_ = reinterpret_cast<float*>(at);
  }
  static std::int64_t floats(const ConvolutionParameters& conv, int threads) noexcept {
    const std::int64_t widened = is_narrow(conv.weighted.panels.layout) ? phases_of(conv.window) * conv.in_channels * kPanelLanes : 0;
    return lane_panels(conv) * kPanelLanes * (conv.in_channels + 1 + threads * std::int64_t{kMaxTileRows}) + widened;
  }

  std::int64_t lanes() const noexcept { return lanes_; }
  float* weights() const noexcept { return first_; }
  float* bias() const noexcept { return first_ + lanes_ * depth_; }
  float* sums(int thread) const noexcept { return bias() + lanes_ * (1 + thread * std::int64_t{kMaxTileRows}); }
  float* widened() const noexcept { return sums(threads_); }

 private:
  std::int64_t lanes_;
  std::int64_t depth_;
  int threads_;
  float* first_;
};

/// Fills a room with the weights of `job`, whose one panel has a tap for each phase, and its bias.
void put_beside(const ConvolutionParameters& conv, TileJob job, const TileTable& tiles, const Room& room) noexcept {
  const std::int64_t depth = conv.in_channels, outputs = conv.out_channels, phases = phases_of(conv.window);
  if (tiles.widen != nullptr) {
    tiles.widen(reinterpret_cast<const std::byte*>(job.panels), job.k_group, 0, phases * depth, room.widened());
    job.panels = room.widened();
  }
  std::memset(room.weights(), 0, static_cast<std::size_t>(room.lanes() * (depth + 1)) * sizeof(float));
  for (std::int64_t lane = 0; lane < phases * outputs; ++lane) {
    const float* const from = job.panels + lane / outputs * depth * kPanelLanes + lane % outputs;
    float* const to = room.weights() + lane / kPanelLanes * depth * kPanelLanes + lane % kPanelLanes;
    for (std::int64_t k = 0; k < depth; ++k) to[k * kPanelLanes] = from[k * kPanelLanes];
    if (job.bias != nullptr) room.bias()[lane] = job.bias[lane % outputs];
  }
}

template <std::size_t kFloats>
void copy_few(const float* from, float* to) noexcept {
  std::memcpy(to, from, kFloats * sizeof(float));
}
/// Neighbouring outputs of one pixel and row: a few.
void copy_outputs(const float* from, float* to, std::int64_t floats) noexcept {
  switch (floats) {
    case 2:
      return copy_few<2>(from, to);
    case 4:
      return copy_few<4>(from, to);
    case 6:
      return copy_few<6>(from, to);
    case 8:
      return copy_few<8>(from, to);
    default:
      std::memcpy(to, from, static_cast<std::size_t>(floats) * sizeof(float));
  }
}

/// One row of inputs, and the rows of outputs among `call.rows` that it makes.
class TransposedRow {
 public:
  TransposedRow(const KernelCall& call, const TileTable& tiles, const Room& room) noexcept
      : call_(call), tiles_(tiles), w_(call.parameters<ConvolutionParameters>().window), room_(room) {}

  void run(std::int64_t row, TileJob job, int thread) const noexcept {
    const std::int64_t in_w = w_.in_w;
    float* const sums = room_.sums(thread);
    const bool columns = job.panel_count == 1 && job.last_lanes <= tiles_.column_outputs && in_w >= tiles_.column_rows;
    const std::int64_t most = columns ? std::int64_t{kMaxTileRows} : tiles_.rows;
    for (Interval<std::int64_t> part{0, 0}; part.end < in_w;) {
      part = {part.end, std::min(in_w, part.end + most)};
      sum(part, row, job, sums, columns);
      for (std::int64_t phase = 0; phase < w_.stride_h; ++phase) {
        const std::int64_t out = row * w_.stride_h + phase;  // images follow each other in both
        if (out >= call_.rows.begin && out < call_.rows.end) store(phase, out, part, sums);
      }
    }
  }

 private:
  /// The sums of some pixels, all their phases.
  void sum(Interval<std::int64_t> part, std::int64_t row, const TileJob& job, float* sums, bool columns) const noexcept {
    const RowView& in = call_.inputs[0].view;
    const float* const first = in.at<float>(row, part.begin);
    if (columns) {
      const std::int64_t pitch = in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
      return tiles_.column_run({.count = part.size(), .a = first, .a_pixel = pitch, .out = sums, .out_pixel = room_.lanes()}, job);
    }
    TileRows rows;
    rows.count = static_cast<int>(part.size());
    for (int m = 0; m < rows.count; ++m) {
      rows.a[m] = in.at<float>(row, part.begin + m);
      rows.out[m] = sums + m * room_.lanes();
    }
    tiles_.panels(rows, job);
  }

  void store(std::int64_t phase, std::int64_t row, Interval<std::int64_t> part, const float* sums) const noexcept {
    const RowView& out = call_.outputs[0].view;
    const std::int64_t outputs = call_.parameters<ConvolutionParameters>().out_channels;
    const std::int64_t pitch = out.pixel_pitch / static_cast<std::int64_t>(sizeof(float)), of_row = w_.stride_w * outputs;
    float* to = out.at<float>(row, part.begin * w_.stride_w);
    sums += phase * of_row;
    for (std::int64_t m = 0; m < part.size(); ++m, sums += room_.lanes(), to += w_.stride_w * pitch) {
      if (pitch == outputs) {
        copy_outputs(sums, to, of_row);
      } else {
        for (std::int64_t x = 0; x < w_.stride_w; ++x) copy_outputs(sums + x * outputs, to + x * pitch, outputs);
      }
    }
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const Window& w_;
  const Room& room_;
};

}  // namespace

bool phases_are_lanes(const ConvolutionParameters& conv) noexcept {
  const Window& w = conv.window;
  const bool apart = w.kernel_h == w.stride_h && w.kernel_w == w.stride_w && w.dilation_h == 1 && w.dilation_w == 1 && w.pad_top == 0 &&
                     w.pad_left == 0 && w.out_h == w.in_h * w.stride_h && w.out_w == w.in_w * w.stride_w;
  return apart && conv.groups == 1 && conv.out_channels <= kPanelLanes && 2 * lane_panels(conv) <= phases_of(w) &&
         !conv.weighted.epilogue.has_residual;
}

Bytes transposed_lanes_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return Bytes(static_cast<std::uint64_t>(Room::floats(conv, std::max(1, extent.threads))) * sizeof(float));
}

void run_transposed_lanes(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const Room room(conv, call.workspace, thread_count(call));
  const Blocks blocks(conv.weighted.panels, call.channels, conv.out_channels, conv.out_channels, kBlockBytes, 1);
  TileJob job = make_job(call, blocks[0]);
  put_beside(conv, job, tiles, room);
  const std::int64_t no_offset = 0, lanes = phases_of(conv.window) * conv.out_channels;
  job.panels = room.weights();
  job.panel_floats = conv.in_channels * kPanelLanes;
  job.panel_count = static_cast<int>(lane_panels(conv));
  job.last_lanes = static_cast<int>(lanes - (lane_panels(conv) - 1) * kPanelLanes);
  if (job.bias != nullptr) job.bias = room.bias();
  job.segment_offsets = &no_offset;
  job.depth = conv.in_channels;
  job.outputs_are_far = false;
  const std::int64_t first = call.rows.begin / conv.window.stride_h, end = ceil_div(call.rows.end, conv.window.stride_h);
  const TransposedRow runner(call, tiles, room);
  for_each_unit(call, end - first, [&](std::int64_t unit, int thread) noexcept { runner.run(first + unit, job, thread); });
}

}  // namespace sluice::kernels::weighted
