// Pools of one and two axes, row after row of outputs.
#include <algorithm>

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
  const bool lanes = a.kind == PoolingKind::kAverage && in.channels == 1 && w.dilation_w == 1 && w.kernel_w >= generic::kLeastOfLanes;
  if (w.stride_w != 1 || lanes || in.channels >= kMostChannels || in.pixel_pitch != in.channels * kFloat ||
      out.pixel_pitch != out.channels * kFloat)
    return {0, 0};
  const std::int64_t begin = std::min(w.pad_left, out.pixels), end = w.in_w + w.pad_left - (w.kernel_w - 1) * w.dilation_w;
  return {begin, std::clamp(end, begin, out.pixels)};
}

void pool_row(const KernelCall& call, const RunTable& runs, std::int64_t row, ChannelRange channels) noexcept {
  const auto& a = call.parameters<operators::PoolParameters>();
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  const Interval<std::int64_t> joined = channels.size() == out.channels ? joined_columns(a, in, out) : Interval<std::int64_t>{0, 0};
  PoolRun run{&in, pool_window(a, row, 0), channels.begin, channels.size()};
  for (std::int64_t x = 0; x < out.pixels;) {
    const std::int64_t pixels = x == joined.begin ? std::max<std::int64_t>(1, joined.size()) : 1;
    move_to_column(a, x, run.window);
    run.count = pixels * channels.size();
    float* to = out.at<float>(row, x) + channels.begin;
    runs.pool(a.kind, run, to);
    activate(runs, a.activation, to, run.count);
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
  if (means_of_rows(call.parameters<operators::PoolParameters>(), call.inputs[0].view)) return mean_rows(call, runs);
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
