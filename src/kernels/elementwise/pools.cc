// Pools of one and two axes, row after row of outputs.
#include <algorithm>
#include <array>

#include "src/core/build_list.h"
#include "src/kernels/elementwise/overlapping_pools.h"
#include "src/kernels/elementwise/row_walks.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/elementwise/steps.h"
#include "src/kernels/reference/pool_window.h"

namespace sluice::kernels::elementwise {
namespace {

/// Neighbouring outputs of a row whose windows lie inside: with stride 1 each of their taps meets neighbouring inputs, so that, of pixels without
/// gaps, all their channels are one run. Of few channels the runs would else be short.
Interval<std::int64_t> joined_columns(const operators::PoolParameters& a, const RowView& in, const RowView& out) noexcept {
  constexpr std::int64_t kMostChannels = 64, kFloat = sizeof(float);
  const Window& w = a.window;
  if (w.stride_w != 1 || sums_in_lanes(a, in) || in.channels >= kMostChannels || in.pixel_pitch != in.channels * kFloat ||
      out.pixel_pitch != out.channels * kFloat)
    return {0, 0};
  return inner_columns(w);
}

/// One row of outputs, whatever the padding: those inside along the row at once, those at its ends one by one.
class PoolRow {
 public:
  PoolRow(const KernelCall& call, const RunTable& runs, std::int64_t row, ChannelRange channels) noexcept
      : a_(call.parameters<operators::PoolParameters>()),
        in_(call.inputs[0].view),
        out_(call.outputs[0].view),
        runs_(runs),
        finish_(a_.activation),
        row_(row),
        channels_(channels),
        window_(pool_window(a_, row, 0)) {}

  /// Few rows, and no mean that is summed in lanes.
  bool takes() const noexcept { return window_.y.count <= PoolPixels::kMostRows && !sums_in_lanes(a_, in_); }
  void run() noexcept {
    const Interval<std::int64_t> inner = inner_columns(a_.window);
    for (std::int64_t x = 0; x < inner.begin; ++x) pool(x, 1);
    if (inner.begin < inner.end) pool(inner.begin, inner.size());
    for (std::int64_t x = inner.end; x < out_.pixels; ++x) pool(x, 1);
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);

  void pool(std::int64_t x, std::int64_t pixels) noexcept {
    move_to_column(a_, x, window_);
    std::array<const float*, PoolPixels::kMostRows> rows;
    const std::int64_t pitch = in_.pixel_pitch / kFloat;
    PoolPixels run{.rows = rows.data(),
                   .taps = window_.x.count,
                   .tap_step = window_.x.step * pitch,
                   .pixel_step = a_.window.stride_w * pitch,
                   .out_step = out_.pixel_pitch / kFloat,
                   .channels = channels_.size(),
                   .pixels = pixels,
                   .divisor = static_cast<float>(window_.divisor),
                   .bounds = finish_.bounds()};
    if (run.taps > 0)
      for (std::int64_t y = window_.y.begin; y < window_.y.end; y += window_.y.step)
        rows[static_cast<std::size_t>(run.row_count++)] = in_.at<const float>(window_.first_row + y, window_.x.begin) + channels_.begin;
    float* const to = out_.at<float>(row_, x) + channels_.begin;
    runs_.pool_pixels(a_.kind, run, to);
    if (run.out_step == run.channels) return finish_(runs_, to, pixels * run.channels);
    for (std::int64_t p = 0; p < pixels; ++p) finish_(runs_, to + p * run.out_step, run.channels);
  }

  const operators::PoolParameters& a_;
  const RowView &in_, &out_;
  const RunTable& runs_;
  const Finish finish_;
  std::int64_t row_;
  ChannelRange channels_;
  PoolWindow window_;
};

void pool_row(const KernelCall& call, const RunTable& runs, std::int64_t row, ChannelRange channels) noexcept {
  const auto& a = call.parameters<operators::PoolParameters>();
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  const Interval<std::int64_t> joined =
      has_pool(0) && channels.size() == out.channels ? joined_columns(a, in, out) : Interval<std::int64_t>{0, 0};
  if constexpr (has_pool(0))
    if (PoolRow apart(call, runs, row, channels); joined.begin == joined.end && apart.takes()) return apart.run();
  const Finish finish(a.activation);
  PoolRun run{&in, pool_window(a, row, 0), channels.begin, channels.size(), finish.bounds()};
  for (std::int64_t x = 0; x < out.pixels;) {
    const std::int64_t pixels = x == joined.begin ? std::max<std::int64_t>(1, joined.size()) : 1;
    move_to_column(a, x, run.window);
    run.count = pixels * channels.size();
    float* to = out.at<float>(row, x) + channels.begin;
    runs.pool(a.kind, run, to);
    finish(runs, to, run.count);
    x += pixels;
  }
}

/// Is each output the mean of a whole row of one channel?
bool means_of_rows(const operators::PoolParameters& a, const RowView& in) noexcept {
  const Window& w = a.window;
  return a.kind == PoolingKind::kAverage && in.channels == 1 && in.pixel_pitch == sizeof(float) && w.out_w == 1 && w.out_h == w.in_h &&
         w.kernel_w == w.in_w && w.kernel_h == 1 && w.stride_h == 1 && w.dilation_w == 1 && w.pad_top == 0 && w.pad_left == 0 &&
         w.pad_right == 0;
}

/// As pool_row, of many rows: finding the window of each takes longer than its sum.
void mean_rows(const KernelCall& call, const RunTable& runs) noexcept {
  const auto& a = call.parameters<operators::PoolParameters>();
  const RowView& in = call.inputs[0].view;
  const PoolWindow first = pool_window(a, 0, 0);
  const std::int64_t count = a.window.in_w;
  for_joined_rows(call, true, [&](std::int64_t row, std::int64_t rows) {
    const RowView& out = call.outputs[0].view;
    if (count >= generic::kLeastOfLanes && in.ring_rows == 0 && out.dense()) {
      runs.row_means(in.at<const float>(row), in.row_pitch / std::int64_t{sizeof(float)}, count, rows, out.at<float>(row));
      return activate(runs, a.activation, out.at<float>(row), rows);
    }
    for (const std::int64_t end = row + rows; row < end; ++row) {
      float* const to = call.outputs[0].view.at<float>(row);
      if (count >= generic::kLeastOfLanes) {
        PoolRun run{&in, first, 0, 1};
        run.window.first_row = row;
        runs.pool(a.kind, run, to);
      } else {
        float sum = 0.0f;
        for (const float* value = in.at<const float>(row); value < in.at<const float>(row) + count; ++value) sum += *value;
        *to = sum / static_cast<float>(count);
      }
      activate(runs, a.activation, to, 1);
    }
  });
}

}  // namespace

/// A global pool has one row an image: its channels are shared among the threads, in blocks of whole cache lines.
void pool_step(const KernelCall& call, const RunTable& runs) noexcept {
  constexpr std::int64_t kBlock = 64;
  if constexpr (has_pool(0)) {
    if (means_of_rows(call.parameters<operators::PoolParameters>(), call.inputs[0].view)) return mean_rows(call, runs);
    if (row_folds_pay(call)) return pool_overlapping(call, runs);
  }
  const std::int64_t channels = call.outputs[0].view.channels;
  const int threads = call.pool == nullptr ? 1 : call.pool->thread_count();
  const std::int64_t blocks = call.rows.size() < threads ? ceil_div(channels, kBlock) : 1;
  const auto task = [&](std::int64_t index, int) {
    const std::int64_t block = index % blocks;
    const ChannelRange part =
        blocks == 1 ? ChannelRange{0, channels} : ChannelRange{block * kBlock, std::min(channels, (block + 1) * kBlock)};
    pool_row(call, runs, call.rows.begin + index / blocks, part);
  };
  const std::int64_t tasks = call.rows.size() * blocks;
  if (call.pool != nullptr) return parallel_for(*call.pool, tasks, task);
  for (std::int64_t index = 0; index < tasks; ++index) task(index, 0);
}

}  // namespace sluice::kernels::elementwise
