// Depthwise convolutions. Each output row reads its input rows in place, through the view, so rings and pitches need no copy:
//
//     | left border | interior: all taps of a kernel row lie inside the image; tiles of several pixels | right border |
//
// A border pixel is a tile of its own with the taps that lie inside.
//
// Of fewer than 16 channels whose pixels lie behind each other, a row's values are lanes one after the other, as if the row were one pixel.
// Vectors `channels` apart begin with the same channel: their weights are the same.
//
//     three channels:  abca bcab cabc | abca ...    (vectors of four)
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/inside.h"
#include "src/kernels/weighted/lanes.h"

namespace sluice::kernels::weighted {
namespace {

/// Output rows whose input rows stay in cache while all panels pass.
constexpr std::int64_t kMostBandRows = 16;
/// Panels of a block: 1 KiB of a pixel at a time is read at full speed, and the block's weights stay in the first cache.
constexpr std::int64_t kMostPanels = 16;

std::uint64_t table_bytes(const Window& w) noexcept {
  return align_up(static_cast<std::uint64_t>(w.kernel_h * kMostBandRows) * sizeof(std::int64_t), 64);
}

std::int64_t band_rows(const RowView& in) noexcept {
  return std::clamp<std::int64_t>(kStripBytes / (in.pixels * in.pixel_pitch), 1, kMostBandRows);
}

/// Parts that threads take by turns: several for each, so that one may help the other out, but not of so few rows that their borders, which
/// lie in two caches, cost more. Rows that do not share out evenly are parts of their own, to be shared by panels.
std::int64_t row_parts_of(std::int64_t rows, std::int64_t threads) noexcept {
  constexpr std::int64_t kLeastRows = 8;
  if (threads == 1) return 1;
  if (rows < kLeastRows * threads && rows % threads != 0) return rows;
  return threads * std::clamp<std::int64_t>(rows / (kLeastRows * threads), 1, 4);
}

/// Weights and biases of the vectors that begin with one channel after the other, where values are lanes.
struct FewChannels {
  static constexpr std::int64_t kMostFloats = 16 * 1024;  // they stay in the first two caches

  static bool fit(const ConvolutionParameters& conv) noexcept {
    const std::int64_t channels = conv.out_channels;
    return channels < kPanelLanes && conv.window.stride_w == 1 && (conv.window.taps() + 1) * channels * kPanelLanes <= kMostFloats;
  }
  static std::uint64_t bytes(const ConvolutionParameters& conv) noexcept {
    return fit(conv) ? static_cast<std::uint64_t>((conv.window.taps() + 1) * conv.out_channels * kPanelLanes) * sizeof(float) : 0;
  }

  FewChannels(const KernelCall& call, std::byte* memory) noexcept
      : conv_(call.parameters<ConvolutionParameters>()), floats_(reinterpret_cast<float*>(memory)) {
    const auto lie_behind_each_other = [&](const RowView& view) {
      return view.pixel_pitch == conv_.out_channels * static_cast<std::int64_t>(sizeof(float));
    };
    usable_ = fit(conv_) && is_worth_it(call) && call.channels.size() == conv_.out_channels && lie_behind_each_other(call.inputs[0].view) &&
              lie_behind_each_other(call.inputs.back().view) && lie_behind_each_other(call.outputs[0].view);
    if (!usable_) return;
    const TileJob job = make_job(call, {.panels = 1, .last_lanes = static_cast<int>(conv_.out_channels)});
    for (std::int64_t tap = 0; tap < taps(); ++tap) put(job.panels + tap * kPanelLanes, tap);
    if (job.bias != nullptr) put(job.bias, taps());
  }

  bool usable() const noexcept { return usable_; }

  /// All values of `run`, whose job is that of the panel.
  void run(const TileTable& tiles, TileJob job, const PixelRun& pixels, std::int64_t first_tap) const noexcept {
    const std::int64_t channels = conv_.out_channels, values = pixels.count * channels, whole = values / kPanelLanes;
    job.last_lanes = kPanelLanes;
    PixelRun run = pixels;
    run.a_pixel = run.out_pixel = run.residual_pixel = channels * kPanelLanes;
    const auto run_from = [&](std::int64_t vector, std::int64_t count) {
      const std::int64_t value = vector * kPanelLanes;
      const float* const weights = floats_ + value % channels * (taps() + 1) * kPanelLanes;
      job.panels = weights + first_tap * kPanelLanes;
      if (job.bias != nullptr) job.bias = weights + taps() * kPanelLanes;
      run.count = count;
      run.a = pixels.a + value;
      run.out = pixels.out + value;
      if (job.has_residual) run.residual = pixels.residual + value;
      tiles.lane_run(run, job);
    };
    for (std::int64_t vector = 0; vector < std::min(channels, whole); ++vector) run_from(vector, ceil_div(whole - vector, channels));
    if (values % kPanelLanes == 0) return;
    job.last_lanes = static_cast<int>(values % kPanelLanes);
    run_from(whole, 1);
  }

 private:
  std::int64_t taps() const noexcept { return conv_.window.taps(); }
  /// The values of a tap, or of the bias behind the last one, for vectors that begin with each channel.
  void put(const float* of_channel, std::int64_t tap) const noexcept {
    const std::int64_t channels = conv_.out_channels;
    float line[2 * kPanelLanes];  // one channel after the other, over and over
    std::copy_n(of_channel, channels, line);
    for (std::int64_t i = channels; i < channels + kPanelLanes; ++i) line[i] = line[i - channels];
    for (std::int64_t first = 0; first < channels; ++first)
      std::copy_n(line + first, kPanelLanes, floats_ + (first * (taps() + 1) + tap) * kPanelLanes);
  }
  /// Lanes that are saved pay for the table.
  bool is_worth_it(const KernelCall& call) const noexcept {
    const std::int64_t channels = conv_.out_channels, pixels = call.rows.size() * interior_columns(conv_.window).size();
    return pixels * (kPanelLanes - channels) >= 4 * kPanelLanes * channels;
  }

  const ConvolutionParameters& conv_;
  float* const floats_;
  bool usable_ = false;
};

/// What is the same for all rows of a step.
class RowRunner {
 public:
  RowRunner(const KernelCall& call, const TileTable& tiles, const FewChannels& few) noexcept
      : call_(call),
        tiles_(tiles),
        few_(few),
        w_(call.parameters<ConvolutionParameters>().window),
        inner_(interior_columns(w_)),
        pixel_floats_(call.inputs[0].view.pixel_pitch / static_cast<std::int64_t>(sizeof(float))),
        inputs_are_far_(w_.kernel_w > 1 && is_far(call.inputs[0].view)) {}

  /// A job for the panels of `block`, to be used with `run`.
  TileJob job_of(const Block& block) const noexcept {
    TileJob job = make_job(call_, block);
    job.segment_floats = w_.kernel_w * kPanelLanes;
    job.a_step = w_.dilation_w * pixel_floats_;
    return job;
  }

  void run(TileJob job, const InputRows& in, std::int64_t row, std::int64_t channel) const noexcept {
    job.segment_offsets = in.offsets;
    job.segments = in.taps.size();
    job.panels += in.taps.begin * job.segment_floats;
    job.depth = w_.kernel_w;
    job.fetches_row_below = inputs_are_far_ && in.taps.size() == w_.kernel_w;
    const int slid = slide(job, in, row, channel);
    if (slid == job.panel_count) return;
    job.panels += slid * job.panel_floats;
    if (job.bias != nullptr) job.bias += slid * kPanelLanes;
    job.panel_count -= slid;
    channel += slid * kPanelLanes;
    for (std::int64_t x = 0; x < inner_.begin; ++x) run_border(job, in, row, channel, x);
    if (!inner_.empty() && few_.usable()) {
      few_.run(tiles_, job, run_of(job, in, row, channel, inner_, 0), in.taps.begin * w_.kernel_w);
    } else if (!inner_.empty()) {
      tiles_.lane_run(run_of(job, in, row, channel, inner_, 0), job);
    }
    for (std::int64_t x = inner_.end; x < w_.out_w; ++x) run_border(job, in, row, channel, x);
  }

 private:
  /// Does the whole row for whole panels, if the instruction set slides over such windows. How many panels are done.
  int slide(TileJob job, const InputRows& in, std::int64_t row, std::int64_t channel) const noexcept {
    if (job.last_lanes < kPanelLanes) --job.panel_count;
    job.last_lanes = kPanelLanes;
    if (job.panel_count == 0 || w_.dilation_w != 1) return 0;
    PixelRun run = run_of(job, in, row, channel, {0, w_.out_w}, 0);
    run.first_input = w_.pad_left;
    run.end_input = w_.pad_left + w_.in_w;
    return tiles_.slide(run, job) ? job.panel_count : 0;
  }

  void run_border(TileJob job, const InputRows& in, std::int64_t row, std::int64_t channel, std::int64_t x) const noexcept {
    const auto taps_x = taps_inside(x * w_.stride_w - w_.pad_left, w_.kernel_w, w_.dilation_w, w_.in_w);
    job.depth = taps_x.size();
    job.panels += taps_x.begin * kPanelLanes;
    tiles_.lane_run(run_of(job, in, row, channel, {x, x + 1}, taps_x.begin), job);
  }

  PixelRun run_of(const TileJob& job, const InputRows& in, std::int64_t row, std::int64_t channel, Interval<std::int64_t> pixels,
                  std::int64_t first_tap) const noexcept {
    constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t in_x = pixels.begin * w_.stride_w - w_.pad_left + first_tap * w_.dilation_w;
    const RowView& out = call_.outputs[0].view;
    PixelRun run;
    run.count = pixels.size();
    run.a = in.first + (job.depth == 0 ? 0 : in_x * pixel_floats_) + channel;
    run.a_pixel = w_.stride_w * pixel_floats_;
    run.out = out.at<float>(row, pixels.begin) + channel;
    run.out_pixel = out.pixel_pitch / kFloatBytes;
    if (job.has_residual) {
      const RowView& residual = call_.inputs.back().view;
      run.residual = residual.at<float>(row, pixels.begin) + channel;
      run.residual_pixel = residual.pixel_pitch / kFloatBytes;
    }
    return run;
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const FewChannels& few_;
  const Window& w_;
  Interval<std::int64_t> inner_;
  std::int64_t pixel_floats_;
  bool inputs_are_far_;
};

}  // namespace

Bytes depthwise_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return Bytes(table_bytes(conv.window) * static_cast<std::uint64_t>(extent.threads) + FewChannels::bytes(conv));
}

void run_depthwise(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const RowView& in = call.inputs[0].view;
  // Rows that are too few for all threads are shared by panels.
  const std::int64_t threads = thread_count(call);
  const FewChannels few(call, call.workspace + table_bytes(conv.window) * static_cast<std::uint64_t>(threads));
  const RowRunner runner(call, tiles, few);
  const std::int64_t row_parts = row_parts_of(call.rows.size(), threads);
  Blocks blocks(conv.weighted.panels, call.channels, conv.out_channels, 1, INT64_MAX / 2, 1);
  blocks.set_count(std::max(ceil_div(blocks.panels(), kMostPanels), row_parts % threads == 0 ? 1 : threads));
  const std::int64_t block_parts = row_parts % threads == 0 ? 1 : std::min(blocks.count(), threads);
  for_each_unit(call, row_parts * block_parts, [&](std::int64_t unit, int thread) noexcept {
    auto* const offsets = reinterpret_cast<std::int64_t*>(call.workspace + static_cast<std::uint64_t>(thread) * table_bytes(conv.window));
    const auto rows = even_part({call.rows.begin, call.rows.end}, unit / block_parts, row_parts);
    const auto part = even_part({0, blocks.count()}, unit % block_parts, block_parts);
    const std::int64_t bands = ceil_div(rows.size(), band_rows(in));
    for (std::int64_t band = 0; band < bands; ++band) {
      const auto band_part = even_part(rows, band, bands);
      InputRows inputs[kMostBandRows];
      for (std::int64_t row = band_part.begin; row < band_part.end; ++row) {
        const std::int64_t i = row - band_part.begin;
        inputs[i] = input_rows(in, conv.window, row, offsets + i * conv.window.kernel_h);
      }
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const Block block = blocks[i];
        const TileJob job = runner.job_of(block);
        for (std::int64_t row = band_part.begin; row < band_part.end; ++row)
          runner.run(job, inputs[row - band_part.begin], row, block.channel);
      }
    }
  });
}

}  // namespace sluice::kernels::weighted
