#include "src/kernels/plain/transposed_lines.h"

#include <algorithm>

#include "sluice/core/transposed_sums.h"
#include "sluice/kernels/call.h"
#include "src/kernels/plain/line_chains.h"

namespace sluice::kernels::plain {
namespace {

constexpr std::int64_t kOutputs = 8;  // of a unit
constexpr std::int64_t kTaps = 64;    // of a call
constexpr std::int64_t kLine = 256;   // sums of one output that lie on the stack
constexpr std::int64_t kVector = 8;   // products that are one operation

class TransposedLines {
 public:
  explicit TransposedLines(const Windows& w, bool by_taps = false) noexcept : outer_(w), most_taps_(by_taps ? 1 : kTaps) {
    const auto last = static_cast<std::size_t>(--outer_.axes);
    in_w_ = w.in[last];
    out_w_ = w.out[last];
    stride_ = w.stride[last];
    kernel_w_ = w.kernel[last];
    dilation_ = w.dilation[last];
    pad_ = w.before[last];
    // A shift is no more than a window before its output, and one place behind it.
    reach_ = (kernel_w_ - 1) * dilation_ / stride_ + pad_ / stride_ + 2;
    row_ = std::max(in_w_, out_w_ / stride_ + 1) + 2 * reach_;
  }

  std::int64_t plane() const noexcept { return outer_.inputs() * row_; }

  void pad(const float* image, std::int64_t channel, float* scratch) const noexcept {
    const std::int64_t rows = outer_.inputs();
    const float* from = image + channel * rows * in_w_;
    float* to = scratch + channel * plane();
    for (std::int64_t r = 0; r < rows; ++r, from += in_w_, to += row_) {
      std::fill_n(to, reach_, 0.0f);
      std::copy_n(from, in_w_, to + reach_);
      std::fill(to + reach_ + in_w_, to + row_, 0.0f);
    }
  }

  /// One row of outputs of a unit; `line` says all but taps and sums, `to` where its first output lies. False: the run is to end.
  bool add_row(std::int64_t row, LineChains line, float* to, std::int64_t to_row, Glances& glances) const noexcept {
    float sums[kOutputs * kLine];
    line.sums = sums;
    line.sum_row = kLine;
    for (std::int64_t phase = 0; phase < std::min(stride_, out_w_); ++phase) {
      const std::int64_t places = (out_w_ - phase + stride_ - 1) / stride_;
      for (std::int64_t first = 0; first < places; first += kLine) {
        line.count = std::min(kLine, places - first);
        std::fill_n(sums, line.outputs * kLine, 0.0f);
        if (!add_taps(row, phase, first, line, glances)) return false;
        for (std::int64_t o = 0; o < line.outputs; ++o)
          for (std::int64_t q = 0; q < line.count; ++q) to[o * to_row + (first + q) * stride_ + phase] = sums[o * kLine + q];
      }
    }
    return true;
  }

 private:
  bool add_taps(std::int64_t row, std::int64_t phase, std::int64_t first, LineChains line, Glances& glances) const noexcept {
    static const LineChainsRun run_line = line_chains_run(active_isa());
    std::int64_t offsets[kTaps], places[kTaps];
    line.offsets = offsets;
    line.places = places;
    line.taps = 0;
    const std::int64_t of_tap = 1 + line.channels * line.outputs * line.count / kVector;
    for (std::int64_t tap = 0; tap < outer_.taps(); ++tap) {
      const std::int64_t place = transposed_place(outer_, row, tap);
      if (glances.over(1)) return false;
      for (std::int64_t x = 0; place >= 0 && x < kernel_w_; ++x) {
        const std::int64_t from = phase + pad_ - x * dilation_;
        if (from % stride_ != 0) continue;
        offsets[line.taps] = place * row_ + reach_ + from / stride_ + first;
        places[line.taps] = tap * kernel_w_ + x;
        if (glances.over(of_tap)) return false;
        if (++line.taps == most_taps_) {
          most_taps_ == 1 ? add_tap(run_line, line) : run_line(line);
          line.taps = 0;
        }
      }
    }
    if (line.taps > 0) run_line(line);
    return true;
  }

  /// A chain of its own.
  static void add_tap(LineChainsRun run_line, LineChains line) noexcept {
    float chains[kOutputs * kLine] = {};
    float* const sums = line.sums;
    line.sums = chains;
    run_line(line);
    for (std::int64_t i = 0; i < line.outputs * kLine; ++i) sums[i] += chains[i];
  }

  Windows outer_;           // all axes but the last
  std::int64_t most_taps_;  // of a chain
  std::int64_t in_w_, out_w_, stride_, kernel_w_, dilation_, pad_;
  std::int64_t reach_, row_;  // zeros before a row, and floats of it
};

}  // namespace

bool takes_sums_by_taps(const Windows& w, std::int64_t groups, const DenseWeight& weight) noexcept {
  if (w.axes > 2) return false;
  const auto last = static_cast<std::size_t>(w.axes - 1);
  Window window{.in_w = w.in[last],
                .kernel_w = w.kernel[last],
                .stride_w = w.stride[last],
                .dilation_w = w.dilation[last],
                .pad_left = w.before[last]};
  if (w.axes == 2) {
    window.in_h = w.in[0];
    window.kernel_h = w.kernel[0];
    window.stride_h = w.stride[0];
    window.dilation_h = w.dilation[0];
    window.pad_top = w.before[0];
  }
  return sums_by_taps(window, groups, weight.depth, weight.per_group);
}

bool takes_transposed_lines(const Windows& w) noexcept {
  constexpr std::int64_t kMostReach = 4096;  // zeros before a row
  const auto last = static_cast<std::size_t>(w.axes - 1);
  return (w.kernel[last] - 1) * w.dilation[last] <= kMostReach && w.before[last] <= kMostReach;
}

std::uint64_t transposed_lines_scratch(const PlainTensor& x, const Windows& w) noexcept {
  return static_cast<std::uint64_t>(x.shape[1] * TransposedLines(w).plane()) * sizeof(float);
}

void run_transposed_lines(const PlainNode& node, const PlainTensor& out, const Windows& w, const DenseWeight& weight,
                          float* scratch) noexcept {
  const TransposedLines lines(w, takes_sums_by_taps(w, out.shape[1] / weight.per_group, weight));
  ThreadPool* const pool = node.call() == nullptr ? nullptr : node.call()->pool;
  const auto for_all = [&](std::int64_t count, const auto& body) {
    if (pool != nullptr) return parallel_for(*pool, count, [&](std::int64_t i, int) { body(i); });
    for (std::int64_t i = 0; i < count; ++i) body(i);
  };
  const std::int64_t channels = node.in(0).shape[1], groups = out.shape[1] / weight.per_group,
                     blocks = ceil_div(weight.per_group, kOutputs);
  const std::int64_t outputs = w.outputs(), row = w.out[static_cast<std::size_t>(w.axes - 1)];
  const Glances none;  // of this thread's run, for all that work for it
  for (std::int64_t n = 0; n < out.shape[0]; ++n) {
    for_all(channels, [&](std::int64_t c) { lines.pad(node.in(0).as<const float>() + n * channels * w.inputs(), c, scratch); });
    for_all(groups * blocks, [&](std::int64_t unit) {
      const std::int64_t group = unit / blocks, first = unit % blocks * kOutputs;
      Glances glances = none;
      const LineChains line{.x = scratch + group * weight.depth * lines.plane(),
                            .x_channel = lines.plane(),
                            .w = node.in(1).as<const float>() + group * weight.group_step + first * weight.row_step,
                            .w_row = weight.row_step,
                            .w_channel = weight.step,
                            .channels = weight.depth,
                            .outputs = std::min(kOutputs, weight.per_group - first)};
      float* to = out.as<float>() + (n * out.shape[1] + group * weight.per_group + first) * outputs;
      for (std::int64_t at = 0; at < outputs / row; ++at, to += row)
        if (!lines.add_row(at, line, to, outputs, glances)) return;
    });
  }
}

}  // namespace sluice::kernels::plain
