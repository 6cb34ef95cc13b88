#include "src/kernels/elementwise/steps.h"

#include <algorithm>
#include <array>
#include <new>

#include "src/kernels/elementwise/runs.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::elementwise {
namespace {

// A task of fewer elements costs more to hand out than to do.
constexpr std::int64_t kTaskElements = 16 * 1024;

/// Calls body(row) for each row of the step; small rows are handed to a thread many at a time.
template <class Body>
void for_grouped_rows(const KernelCall& call, const Body& body) noexcept {
  const RowView& out = call.outputs[0].view;
  const std::int64_t group = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, out.pixels * out.channels));
  const auto do_group = [&](std::int64_t index, int) {
    const std::int64_t first = call.rows.begin + index * group;
    for (std::int64_t row = first; row < std::min(call.rows.end, first + group); ++row) body(row);
  };
  const std::int64_t groups = ceil_div(call.rows.size(), group);
  if (call.pool != nullptr) return parallel_for(*call.pool, groups, do_group);
  for (std::int64_t index = 0; index < groups; ++index) do_group(index, 0);
}

/// Are the pixels of a row neighbours, so that the row is one run?
bool closed_rows(const RowView& view) noexcept { return view.pixel_pitch == view.channels * std::int64_t{sizeof(float)}; }

/// The activation of a result, while it is still in the first cache. A second pass, so that no inner loop exists once a function.
void activate(const RunTable& runs, const Activation& f, float* out, std::int64_t n) noexcept {
  if (f.function != Function::kNone) runs.unary(f, out, out, n);
}

}  // namespace

void unary_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const Activation& function = call.parameters<operators::UnaryParameters>().function;
  const bool whole_rows = closed_rows(in) && closed_rows(out);
  const std::int64_t pieces = whole_rows ? 1 : out.pixels;
  const std::int64_t n = whole_rows ? out.pixels * out.channels : out.channels;
  for_grouped_rows(call, [&](std::int64_t row) {
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      runs.unary(function, in.at<const float>(row, piece), out.at<float>(row, piece), n);
  });
}

void affine_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  const Activation& activation = call.parameters<operators::AffineParameters>().activation;
  for_grouped_rows(call, [&](std::int64_t row) {
    for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel) {
      float* to = out.at<float>(row, pixel);
      runs.affine(in.at<const float>(row, pixel), scale, shift, to, out.channels);
      activate(runs, activation, to, out.channels);
    }
  });
}

void softmax_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const bool log = call.parameters<operators::SoftmaxParameters>().log;
  for_grouped_rows(call, [&](std::int64_t row) {
    for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel)
      runs.softmax(log, in.at<const float>(row, pixel), out.at<float>(row, pixel), out.channels);
  });
}

bool walks_beside(const Shape& operand, const Shape& out) noexcept {
  return out.rank() != 4 || operand.rank() == 4 || operand.element_count() == operand.back();
}

namespace {

/// One operand of a binary node, as seen from the output: where a row begins, and how far it moves a pixel.
class Walker {
 public:
  Walker(const Operand& operand, const Operand& out) noexcept : operand_(operand), out_(out) {
    const bool repeats_pixels = operand.shape.rank() != 4 || operand.shape[2] == 1;
    pixel_step_ = repeats_pixels ? 0 : operand.view.pixel_pitch;
    channel_step_ = operand.shape.back() == 1 && (out.view.channels > 1 || pixel_step_ == 0) ? 0 : 1;
  }

  const std::byte* row(std::int64_t row) const noexcept {
    const reference::Index index = reference::index_at(out_.shape, row, 0);
    return reference::address(operand_, reference::broadcast_index(operand_.shape, index, out_.shape.rank()));
  }
  Stream at(const std::byte* row, std::int64_t pixel) const noexcept {
    return {reinterpret_cast<const float*>(row + pixel * pixel_step_), channel_step_};
  }
  /// Does a run over the whole row read the right values: all of a row without gaps, or the same one always?
  bool whole_rows() const noexcept {
    if (out_.view.pixels == 1) return true;
    if (channel_step_ == 0) return pixel_step_ == 0;
    return pixel_step_ != 0 && operand_.view.channels == out_.view.channels && closed_rows(operand_.view);
  }

 private:
  const Operand& operand_;
  const Operand& out_;
  std::int64_t pixel_step_ = 0;
  int channel_step_ = 1;
};

}  // namespace

void binary_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& out = call.outputs[0].view;
  const auto& parameters = call.parameters<operators::BinaryParameters>();
  const Walker a(call.inputs[0], call.outputs[0]), b(call.inputs[1], call.outputs[0]);
  const bool whole_rows = a.whole_rows() && b.whole_rows() && closed_rows(out);
  const std::int64_t pieces = whole_rows ? 1 : out.pixels;
  const std::int64_t n = whole_rows ? out.pixels * out.channels : out.channels;
  for_grouped_rows(call, [&](std::int64_t row) {
    const std::byte* a_row = a.row(row);
    const std::byte* b_row = b.row(row);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      float* to = out.at<float>(row, piece);
      runs.binary(parameters.function, a.at(a_row, piece), b.at(b_row, piece), to, n);
      activate(runs, parameters.activation, to, n);
    }
  });
}

namespace {

void pool_row(const KernelCall& call, const RunTable& runs, std::int64_t row, ChannelRange channels) noexcept {
  const auto& a = call.parameters<operators::PoolParameters>();
  const RowView& out = call.outputs[0].view;
  PoolRun run{&call.inputs[0].view, pool_window(a, row, 0), channels.begin, channels.size()};
  for (std::int64_t x = 0; x < out.pixels; ++x) {
    move_to_column(a, x, run.window);
    float* to = out.at<float>(row, x) + channels.begin;
    runs.pool(a.kind, run, to);
    activate(runs, a.activation, to, channels.size());
  }
}

}  // namespace

/// A global pool has one row an image: its channels are shared among the threads, in blocks of whole cache lines.
void pool_step(const KernelCall& call, const RunTable& runs) noexcept {
  constexpr std::int64_t kBlock = 64;
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

Bytes resize_workspace(const operators::ResizeParameters& parameters, const StepExtent&) noexcept {
  return Bytes(static_cast<std::uint64_t>(parameters.out_columns) * sizeof(ResizeTaps));
}

/// NHWC with N and C kept: up to 4 x 4 pixels blended into one.
void resize_step(const KernelCall& call, const RunTable& runs) noexcept {
  const auto& a = call.parameters<operators::ResizeParameters>();
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  auto* const columns = reinterpret_cast<ResizeTaps*>(call.workspace);
  for (std::int64_t x = 0; x < out.view.pixels; ++x) new (columns + x) ResizeTaps(resize_taps(a, in.shape, out.shape, 2, x));
  for_grouped_rows(call, [&](std::int64_t row) {
    const ResizeTaps y = resize_taps(a, in.shape, out.shape, 1, row % out.shape[1]);
    std::array<const std::byte*, 4> rows;
    for (std::size_t i = 0; i < static_cast<std::size_t>(y.count); ++i)
      rows[i] = in.view.row(row / out.shape[1] * in.shape[1] + y.source[i]);
    for (std::int64_t pixel = 0; pixel < out.view.pixels; ++pixel) {
      const ResizeTaps& x = columns[pixel];
      std::array<const float*, 16> from;
      std::array<float, 16> weights;
      std::size_t taps = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(y.count); ++i) {
        for (std::size_t j = 0; j < static_cast<std::size_t>(x.count); ++j, ++taps) {
          from[taps] = reinterpret_cast<const float*>(rows[i] + x.source[j] * in.view.pixel_pitch);
          weights[taps] = y.weight[i] * x.weight[j];
        }
      }
      runs.blend(from.data(), weights.data(), static_cast<int>(taps), out.view.at<float>(row, pixel), out.view.channels);
    }
  });
}

}  // namespace sluice::kernels::elementwise
