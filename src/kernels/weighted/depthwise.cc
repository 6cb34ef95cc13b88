// Depthwise convolutions. Each output row reads its input rows in place, through the view, so rings and pitches need no copy:
//
//     | left border | interior: all taps of a kernel row lie inside the image; tiles of several pixels | right border |
//
// A border pixel is a tile of its own with the taps that lie inside.
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/lanes.h"

namespace sluice::kernels::weighted {
namespace {

/// Taps [begin, end) of `kernel` that fall on [0, extent) when tap 0 falls on `first`.
Interval<std::int64_t> taps_inside(std::int64_t first, std::int64_t kernel, std::int64_t dilation, std::int64_t extent) noexcept {
  const std::int64_t begin = first >= 0 ? 0 : std::min(kernel, ceil_div(-first, dilation));
  const std::int64_t end = first >= extent ? 0 : std::min(kernel, (extent - 1 - first) / dilation + 1);
  return {begin, std::max(begin, end)};
}

/// Outputs whose taps are all inside.
Interval<std::int64_t> interior(const model::Window& w) noexcept {
  const std::int64_t begin = std::min(w.out_w, ceil_div(w.pad_left, w.stride_w));
  const std::int64_t room = w.in_w - 1 - (w.kernel_w - 1) * w.dilation_w + w.pad_left;
  const std::int64_t end = room < 0 ? 0 : std::min(w.out_w, room / w.stride_w + 1);
  return {begin, std::max(begin, end)};
}

std::uint64_t table_bytes(const model::Window& w) noexcept {
  return align_up(static_cast<std::uint64_t>(w.kernel_h) * sizeof(std::int64_t), 64);
}

/// One output row of one panel.
class RowOfPanel {
 public:
  RowOfPanel(const KernelCall& call, const TileTable& tiles, std::int64_t row, std::int64_t* offsets) noexcept
      : call_(call), tiles_(tiles), w_(call.node->as<model::ConvAttributes>().window), row_(row), offsets_(offsets) {
    const RowView& in = call.inputs[0].view;
    const std::int64_t image = row / w_.out_h * w_.in_h;
    const std::int64_t first = row % w_.out_h * w_.stride_h - w_.pad_top;
    taps_y_ = taps_inside(first, w_.kernel_h, w_.dilation_h, w_.in_h);
    first_row_ = taps_y_.empty() ? in.at<float>(0) : in.at<float>(image + first + taps_y_.begin * w_.dilation_h);
    for (std::int64_t ky = taps_y_.begin; ky < taps_y_.end; ++ky)
      offsets[ky - taps_y_.begin] = in.at<float>(image + first + ky * w_.dilation_h) - first_row_;
    pixel_floats_ = in.pixel_pitch / static_cast<std::int64_t>(sizeof(float));
  }

  void run(const Block& block) const noexcept {
    TileJob job = make_job(call_, block);
    job.segment_offsets = offsets_;
    job.segments = taps_y_.size();
    job.segment_floats = w_.kernel_w * model::kPanelLanes;
    job.a_step = w_.dilation_w * pixel_floats_;
    job.panels += taps_y_.begin * job.segment_floats;
    const auto inner = interior(w_);
    for (std::int64_t x = 0; x < inner.begin; ++x) run_border(job, block.channel, x);
    job.depth = w_.kernel_w;
    if (!inner.empty()) run_pixels(job, block.channel, inner, 0);
    for (std::int64_t x = inner.end; x < w_.out_w; ++x) run_border(job, block.channel, x);
  }

 private:
  void run_border(TileJob job, std::int64_t channel, std::int64_t x) const noexcept {
    const auto taps_x = taps_inside(x * w_.stride_w - w_.pad_left, w_.kernel_w, w_.dilation_w, w_.in_w);
    job.depth = taps_x.size();
    job.panels += taps_x.begin * model::kPanelLanes;
    run_pixels(job, channel, {x, x + 1}, taps_x.begin);
  }

  void run_pixels(const TileJob& job, std::int64_t channel, Interval<std::int64_t> pixels, std::int64_t first_tap) const noexcept {
    constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
    const std::int64_t in_x = pixels.begin * w_.stride_w - w_.pad_left + first_tap * w_.dilation_w;
    const RowView& out = call_.outputs[0].view;
    LaneRun run;
    run.count = pixels.size();
    run.a = first_row_ + (job.depth == 0 ? 0 : in_x * pixel_floats_) + channel;
    run.a_pixel = w_.stride_w * pixel_floats_;
    run.out = out.at<float>(row_, pixels.begin) + channel;
    run.out_pixel = out.pixel_pitch / kFloat;
    if (job.has_residual) {
      const RowView& residual = call_.inputs.back().view;
      run.residual = residual.at<float>(row_, pixels.begin) + channel;
      run.residual_pixel = residual.pixel_pitch / kFloat;
    }
    tiles_.lane_run(run, job);
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const model::Window& w_;
  std::int64_t row_;
  std::int64_t* offsets_;
  const float* first_row_ = nullptr;
  std::int64_t pixel_floats_ = 0;
  Interval<std::int64_t> taps_y_;
};

}  // namespace

bool depthwise_supports(const model::Graph& graph, const model::Node& node) noexcept {
  return tensors_and_weights_fit(graph, node, model::WeightLayout::kDepthwise) && node.as<model::ConvAttributes>().depthwise();
}

Bytes depthwise_workspace(const model::Graph&, const model::Node& node, const StepExtent& extent) noexcept {
  return Bytes(table_bytes(node.as<model::ConvAttributes>().window) * static_cast<std::uint64_t>(extent.threads));
}

void run_depthwise(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.node->as<model::ConvAttributes>();
  const Blocks panels(*call.weights[0].weight, call.channels, conv.out_channels, 1, 1, 1);
  // Rows outside, panels inside: a few input rows stay in cache while all channels pass. Rows that are too few are shared by panels.
  const std::int64_t threads = thread_count(call);
  const std::int64_t row_parts = std::min(call.rows.size(), 4 * threads);
  const std::int64_t panel_parts = row_parts % threads == 0 ? 1 : std::min(panels.count(), threads);
  for_each_unit(call, row_parts * panel_parts, [&](std::int64_t unit, int thread) noexcept {
    auto* offsets = reinterpret_cast<std::int64_t*>(call.workspace + static_cast<std::uint64_t>(thread) * table_bytes(conv.window));
    const auto rows = even_part({call.rows.begin, call.rows.end}, unit / panel_parts, row_parts);
    const auto part = even_part({0, panels.count()}, unit % panel_parts, panel_parts);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const RowOfPanel one(call, tiles, row, offsets);
      for (std::int64_t panel = part.begin; panel < part.end; ++panel) one.run(panels[panel]);
    }
  });
}

}  // namespace sluice::kernels::weighted
