#include "src/kernels/elementwise/overlapping_pools.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/kernels/elementwise/row_walks.h"
#include "src/kernels/reference/pool_window.h"

namespace sluice::kernels::elementwise {
namespace {

/// Makes some rows of outputs of one image.
class OverlappingPool {
 public:
  OverlappingPool(const KernelCall& call, const RunTable& runs) noexcept
      : a_(call.parameters<operators::PoolParameters>()),
        w_(a_.window),
        in_(call.inputs[0].view),
        out_(call.outputs[0].view),
        runs_(runs),
        in_lanes_(sums_in_lanes(a_, in_)) {}

  /// Makes these rows of outputs of image `image`.
  void run(std::int64_t image, Interval<std::int64_t> rows) const noexcept {
    const std::int64_t most = std::max<std::int64_t>(1, kValues / out_.channels), first_row = image * w_.out_h;
    for (std::int64_t x = 0; x < out_.pixels; x += most) {
      const Interval<std::int64_t> columns{x, std::min(out_.pixels, x + most)};
      const float begin = a_.kind == PoolingKind::kMax ? -HUGE_VALF : 0.0f;
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        std::fill_n(out_.at<float>(first_row + row, x), columns.size() * out_.channels, begin);
      const std::int64_t first = std::max<std::int64_t>(0, rows.begin - w_.pad_top);
      const std::int64_t end = std::min(w_.in_h, rows.end - w_.pad_top + w_.kernel_h - 1);
      for (std::int64_t y = first; y < end; ++y) hand_over(image, y, rows, columns);
      if (a_.kind == PoolingKind::kAverage) divide(first_row, rows, columns);
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        activate(runs_, a_.activation, out_.at<float>(first_row + row, x), floats(columns.size()));
    }
  }
  static constexpr std::int64_t kValues = 4096;

 private:
  std::int64_t floats(std::int64_t columns) const noexcept { return columns * out_.channels; }

  /// Folds row `y` of the input into each row of outputs that meets it.
  void hand_over(std::int64_t image, std::int64_t y, Interval<std::int64_t> rows, Interval<std::int64_t> columns) const noexcept {
    alignas(64) std::array<float, kValues> part;
    fold_row(image * w_.in_h + y, columns, part.data());
    const std::int64_t end = std::min(rows.end, y + w_.pad_top + 1);
    for (std::int64_t row = std::max(rows.begin, y + w_.pad_top - w_.kernel_h + 1); row < end; ++row)
      runs_.fold(a_.kind, {.from = part.data()}, out_.at<float>(image * w_.out_h + row, columns.begin), floats(columns.size()));
  }

  /// The fold of the taps along row `y` of the input, for each of the columns.
  void fold_row(std::int64_t y, Interval<std::int64_t> columns, float* part) const noexcept {
    if (in_lanes_) return sum_lanes(y, columns, part);
    std::fill_n(part, floats(columns.size()), a_.kind == PoolingKind::kMax ? -HUGE_VALF : 0.0f);
    const float* const row = in_.at<const float>(y);
    // Outputs all of whose taps lie inside are one run; of the others each tap is one.
    const std::int64_t reach = (w_.kernel_w - 1) * w_.dilation_w;
    const std::int64_t inner = std::clamp(w_.pad_left, columns.begin, columns.end);
    const std::int64_t inner_end = std::clamp(w_.in_w + w_.pad_left - reach, inner, columns.end);
    if (inner < inner_end)
      runs_.fold(a_.kind, {row + floats(inner - w_.pad_left), floats(w_.dilation_w), w_.kernel_w}, part + floats(inner - columns.begin),
                 floats(inner_end - inner));
    for (const Interval<std::int64_t> border : {Interval<std::int64_t>{columns.begin, inner}, {inner_end, columns.end}})
      for (std::int64_t k = 0; k < w_.kernel_w; ++k) {
        const std::int64_t shift = k * w_.dilation_w - w_.pad_left;  // from an output to what the tap meets
        const std::int64_t begin = std::max(border.begin, -shift), end = std::min(border.end, w_.in_w - shift);
        if (begin >= end) continue;
        runs_.fold(a_.kind, {row + floats(begin + shift)}, part + floats(begin - columns.begin), floats(end - begin));
      }
  }

  /// Long rows of one channel (generic/folds.h).
  void sum_lanes(std::int64_t y, Interval<std::int64_t> columns, float* part) const noexcept {
    PoolRun run{&in_, {}, 0, 1};
    run.window.first_row = y;
    run.window.y = {.end = 1, .count = 1};
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      run.window.x = pool_axis(w_.in_w, w_.kernel_w, x - w_.pad_left, w_.dilation_w, w_.pad_right);
      runs_.pool(a_.kind, run, part++);
    }
  }

  /// Makes means of sums.
  void divide(std::int64_t first_row, Interval<std::int64_t> rows, Interval<std::int64_t> columns) const noexcept {
    alignas(64) std::array<float, kValues> divisors;
    std::int64_t held = -1;  // how many taps along y the divisors are for
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      PoolWindow window = pool_window(a_, row, columns.begin);
      const std::int64_t taps = a_.count_include_pad ? window.y.padded_count : window.y.count;
      for (std::int64_t x = columns.begin; taps != held && x < columns.end; ++x) {
        move_to_column(a_, x, window);
        std::fill_n(divisors.data() + floats(x - columns.begin), out_.channels, static_cast<float>(window.divisor));
      }
      held = taps;
      float* const to = out_.at<float>(first_row + row, columns.begin);
      runs_.binary(BinaryFunction::kDiv, {.values = to}, {.values = divisors.data()}, {}, to, floats(columns.size()));
    }
  }

  const operators::PoolParameters& a_;
  const Window& w_;
  const RowView &in_, &out_;
  const RunTable& runs_;
  const bool in_lanes_;
};

}  // namespace

bool row_folds_pay(const KernelCall& call) noexcept {
  constexpr std::int64_t kLeastRows = 4, kLeastTaps = 25;
  const Window& w = call.parameters<operators::PoolParameters>().window;
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  return w.stride_h == 1 && w.stride_w == 1 && w.dilation_h == 1 && w.kernel_h >= kLeastRows && w.kernel_h * w.kernel_w >= kLeastTaps &&
         std::min(w.out_h, call.rows.size()) >= kLeastRows && out.channels <= OverlappingPool::kValues && closed_rows(in) &&
         closed_rows(out);
}

void pool_overlapping(const KernelCall& call, const RunTable& runs) noexcept {
  const OverlappingPool pool(call, runs);
  const std::int64_t threads = call.pool == nullptr ? 1 : call.pool->thread_count(), count = call.rows.size();
  const std::int64_t out_h = call.parameters<operators::PoolParameters>().window.out_h;
  const auto task = [&](std::int64_t index, int) {
    const std::int64_t end = call.rows.begin + count * (index + 1) / threads;
    for (std::int64_t row = call.rows.begin + count * index / threads; row < end;) {
      const std::int64_t image = row / out_h, first = row % out_h, rows = std::min(out_h - first, end - row);
      pool.run(image, {first, first + rows});
      row += rows;
    }
  };
  if (call.pool != nullptr) return parallel_for(*call.pool, threads, task);
  task(0, 0);
}

}  // namespace sluice::kernels::elementwise
