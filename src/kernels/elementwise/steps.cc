#include "src/kernels/elementwise/steps.h"

#include <algorithm>
#include <array>
#include <new>

#include "src/kernels/elementwise/gathered_runs.h"
#include "src/kernels/elementwise/place_tables.h"
#include "src/kernels/elementwise/row_walks.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/movement/broadcast.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::elementwise {
void unary_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const Activation& function = call.parameters<operators::UnaryParameters>().function;
  const bool whole_rows = closed_rows(in) && closed_rows(out);
  const std::int64_t pieces = whole_rows ? 1 : out.pixels;
  const std::int64_t n = whole_rows ? out.pixels * out.channels : out.channels;
  if (n <= GatheredRuns::kMostChannels && !(in.dense() && out.dense()) && GatheredRuns::takes(call)) {
    GatheredRuns(call).run([&](const auto& values, float* to, std::int64_t count) { runs.unary(function, values[0].values, to, count); });
    return;
  }
  for_joined_rows(call, in.dense() && out.dense(), [&](std::int64_t row, std::int64_t rows) {
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      runs.unary(function, in.at<const float>(row, piece), out.at<float>(row, piece), rows * n);
  });
}

namespace {

/// The values of a few channels again and again, so that a run may go on over many pixels: a call a pixel takes longer than the pixel.
class RepeatedChannels {
 public:
  static constexpr std::int64_t kMostChannels = 64;

  RepeatedChannels(const float* values, std::int64_t channels) noexcept : size_(kValues / channels * channels) {
    for (std::int64_t i = 0; i < size_; i += channels) std::copy_n(values, channels, values_.begin() + i);
  }
  const float* values() const noexcept { return values_.data(); }
  std::int64_t size() const noexcept { return size_; }

 private:
  static constexpr std::int64_t kValues = 512;
  std::int64_t size_;
  std::array<float, kValues> values_;
};

}  // namespace

void affine_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const auto* scale = reinterpret_cast<const float*>(call.weights[0].data);
  const auto* shift = reinterpret_cast<const float*>(call.weights[1].data);
  const Finish finish(call.parameters<operators::AffineParameters>().activation);
  if (closed_rows(in) && closed_rows(out) && out.channels > 0 && out.channels <= RepeatedChannels::kMostChannels) {
    const RepeatedChannels scales(scale, out.channels), shifts(shift, out.channels);
    for_joined_rows(call, in.dense() && out.dense(), [&](std::int64_t row, std::int64_t rows) {
      const std::int64_t count = rows * out.pixels * out.channels;
      for (std::int64_t i = 0; i < count; i += scales.size()) {
        const std::int64_t n = std::min(scales.size(), count - i);
        float* to = out.at<float>(row) + i;
        runs.affine(in.at<const float>(row) + i, scales.values(), shifts.values(), finish.bounds(), to, n);
        finish(runs, to, n);
      }
    });
    return;
  }
  for_grouped_rows(call, [&](std::int64_t row) {
    for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel) {
      float* to = out.at<float>(row, pixel);
      runs.affine(in.at<const float>(row, pixel), scale, shift, finish.bounds(), to, out.channels);
      finish(runs, to, out.channels);
    }
  });
}

void softmax_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const bool log = call.parameters<operators::SoftmaxParameters>().log;
  if (closed_rows(in) && closed_rows(out)) {
    const auto of_rows = out.channels <= kFewChannels ? runs.softmax_pixels : runs.softmax_rows;
    for_joined_rows(call, in.dense() && out.dense(), [&](std::int64_t row, std::int64_t rows) {
      of_rows(log, in.at<const float>(row), out.at<float>(row), out.channels, rows * out.pixels);
    });
    return;
  }
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
  /// Do the values of all rows follow each other as those of the output do, or is there one value only?
  bool joined() const noexcept {
    return one_value() || (operand_.view.dense() && operand_.shape.element_count() == out_.shape.element_count());
  }
  /// From the first value of `row` on, along rows that are joined.
  Stream along(const std::byte* row) const noexcept { return {reinterpret_cast<const float*>(row), one_value() ? 0 : 1}; }
  /// Is it the same few channels at each pixel?
  bool repeats() const noexcept {
    const std::int64_t channels = out_.view.channels;
    return channels > 1 && channels <= RepeatedChannels::kMostChannels && operand_.shape.element_count() == channels &&
           operand_.shape.back() == channels;
  }
  /// Does a run over the whole row read the right values: all of a row without gaps, or the same one always?
  bool whole_rows() const noexcept {
    if (out_.view.pixels == 1) return true;
    if (channel_step_ == 0) return pixel_step_ == 0;
    return pixel_step_ != 0 && operand_.view.channels == out_.view.channels && closed_rows(operand_.view);
  }

 private:
  bool one_value() const noexcept { return operand_.shape.element_count() == 1; }

  const Operand& operand_;
  const Operand& out_;
  std::int64_t pixel_step_ = 0;
  int channel_step_ = 1;
};

}  // namespace

namespace {

/// Where one operand is the same few channels at each pixel, and the other's rows are runs.
void repeat_binary(const KernelCall& call, const RunTable& runs, const Walker& a, const Walker& b) noexcept {
  const RowView& out = call.outputs[0].view;
  const auto& parameters = call.parameters<operators::BinaryParameters>();
  const Finish finish(parameters.activation);
  const bool first_repeats = a.repeats();
  const Walker& walked = first_repeats ? b : a;
  const Stream channels = (first_repeats ? a : b).at((first_repeats ? a : b).row(0), 0);
  const RepeatedChannels repeated(channels.values, out.channels);
  const bool joined = walked.joined() && out.dense();
  for_joined_rows(call, joined, [&](std::int64_t row, std::int64_t rows) {
    const std::int64_t count = rows * out.pixels * out.channels;
    const Stream from = joined ? walked.along(walked.row(row)) : walked.at(walked.row(row), 0);
    for (std::int64_t i = 0; i < count; i += repeated.size()) {
      const std::int64_t n = std::min(repeated.size(), count - i);
      float* to = out.at<float>(row) + i;
      const Stream other{from.values + i * from.step, from.step}, same{repeated.values(), 1};
      runs.binary(parameters.function, first_repeats ? same : other, first_repeats ? other : same, finish.bounds(), to, n);
      finish(runs, to, n);
    }
  });
}

/// Runs of fewer values come from blocks of several rows.
constexpr std::int64_t kShortRun = 64;

/// Are its values whole floats apart, and is there no ring? Then they may have gaps between them.
bool steps_evenly(const RowView& view) noexcept {
  constexpr std::int64_t kFloat = sizeof(float);
  return view.ring_rows == 0 && view.row_pitch % kFloat == 0 && view.pixel_pitch % kFloat == 0;
}

movement::BroadcastOperand broadcast_operand(const Operand& operand, const Shape& out) noexcept {
  constexpr std::int64_t kFloat = sizeof(float);
  movement::BroadcastOperand result{.data = operand.view.data, .element = kFloat};
  const int rank = operand.shape.rank(), pixel_axis = rank == 4 ? 2 : rank;
  std::int64_t rows = 1;  // of the axes behind, where the axis is one of rows
  for (int axis = rank; axis-- > 0;) {
    const bool of_rows = axis < std::min(pixel_axis, rank - 1);
    const std::int64_t step = axis == rank - 1 ? 1 : (of_rows ? rows * operand.view.row_pitch : operand.view.pixel_pitch) / kFloat;
    if (of_rows) rows *= operand.shape[axis];
    if (operand.shape[axis] != 1) result.strides[static_cast<std::size_t>(axis + out.rank() - rank)] = step;
  }
  return result;
}

/// Values [first, first + count) of a view that has gaps, from where they lie one behind the other.
void scatter(const float* from, const RowView& view, std::int64_t first, std::int64_t count) noexcept {
  constexpr std::int64_t kFloat = sizeof(float);
  const std::int64_t channels = view.channels, of_row = view.pixels * channels;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = first + done, row = at / of_row, pixel = at % of_row / channels, channel = at % channels, left = count - done;
    const bool rows = at % of_row == 0 && left >= of_row, pixels = channel == 0 && left >= channels;
    movement::StridedCopy copy;
    copy.element = kFloat;
    copy.from = reinterpret_cast<const std::byte*>(from + done);
    copy.to = reinterpret_cast<std::byte*>(view.at<float>(row, pixel) + channel);
    const std::int64_t row_count = rows ? left / of_row : 1;
    const std::int64_t pixel_count = rows ? view.pixels : pixels ? std::min(view.pixels - pixel, left / channels) : 1;
    const std::int64_t channel_count = pixels ? channels : std::min(channels - channel, left);
    copy.add(row_count, of_row * kFloat, view.row_pitch);
    copy.add(pixel_count, channels * kFloat, view.pixel_pitch);
    copy.add(channel_count, kFloat, kFloat);
    movement::run(copy, active_isa());
    done += row_count * pixel_count * channel_count;
  }
}

/// Operands of any shapes, with gaps or without, as the output too. An operand that the output replaces has its shape and gaps.
void broadcast_binary(const KernelCall& call, const RunTable& runs) noexcept {
  const Operand& out = call.outputs[0];
  const auto& parameters = call.parameters<operators::BinaryParameters>();
  const Finish finish(parameters.activation);
  const std::array operands{broadcast_operand(call.inputs[0], out.shape), broadcast_operand(call.inputs[1], out.shape)};
  const std::int64_t row_floats = out.view.pixels * out.view.channels;
  for_joined_rows(call, true, [&](std::int64_t row, std::int64_t rows) {
    movement::BroadcastRuns(out.shape, operands, active_isa())
        .run(row * row_floats, (row + rows) * row_floats, [&](std::int64_t first, std::int64_t count, const auto& values) {
          constexpr std::int64_t kValues = 1024;
          alignas(64) std::array<float, kValues> room;
          const bool dense = out.view.dense();
          const std::int64_t at_once = dense ? count : kValues;
          for (std::int64_t i = 0; i < count; i += at_once) {
            const std::int64_t n = std::min(at_once, count - i);
            float* const to = dense ? out.view.at<float>(0) + first + i : room.data();
            const auto from = [&](std::size_t operand) {
              return Stream{values[operand].template as<float>() + i * values[operand].step, static_cast<int>(values[operand].step)};
            };
            runs.binary(parameters.function, from(0), from(1), finish.bounds(), to, n);
            finish(runs, to, n);
            if (!dense) scatter(to, out.view, first + i, n);
          }
          return true;
        });
  });
}

}  // namespace

void binary_step(const KernelCall& call, const RunTable& runs) noexcept {
  const RowView& out = call.outputs[0].view;
  const auto& parameters = call.parameters<operators::BinaryParameters>();
  const Finish finish(parameters.activation);
  const Walker a(call.inputs[0], call.outputs[0]), b(call.inputs[1], call.outputs[0]);
  if (closed_rows(out) && out.pixels * call.rows.size() > 1 && a.repeats() != b.repeats() && (a.repeats() ? b : a).whole_rows())
    return repeat_binary(call, runs, a, b);
  const bool whole_rows = a.whole_rows() && b.whole_rows() && closed_rows(out);
  if (out.dense() && a.joined() && b.joined()) {
    for_joined_rows(call, true, [&](std::int64_t row, std::int64_t rows) {
      const Stream first = a.along(a.row(row)), second = b.along(b.row(row));
      for_finished_pieces(finish, rows * out.pixels * out.channels, [&](std::int64_t i, std::int64_t n) {
        float* const to = out.at<float>(row) + i;
        runs.binary(parameters.function, first.later(i), second.later(i), finish.bounds(), to, n);
        finish(runs, to, n);
      });
    });
    return;
  }
  const std::int64_t pieces = whole_rows ? 1 : out.pixels;
  const std::int64_t n = whole_rows ? out.pixels * out.channels : out.channels;
  const bool dense = out.dense() && call.inputs[0].view.dense() && call.inputs[1].view.dense();
  const bool evenly = steps_evenly(out) && steps_evenly(call.inputs[0].view) && steps_evenly(call.inputs[1].view);
  // With gaps, values are copied: that is less than a call a pixel where channels are few, and than finding the row of each pixel.
  const bool copies = evenly && !GatheredRuns::takes(call) && (n <= GatheredRuns::kMostChannels || out.pixels == 1);
  if (n < kShortRun && (dense || copies)) return broadcast_binary(call, runs);
  if (n <= GatheredRuns::kMostChannels && GatheredRuns::takes(call)) {
    GatheredRuns(call).run([&](const auto& values, float* to, std::int64_t count) {
      runs.binary(parameters.function, values[0], values[1], finish.bounds(), to, count);
      finish(runs, to, count);
    });
    return;
  }
  for_grouped_rows(call, [&](std::int64_t row) {
    const std::byte* a_row = a.row(row);
    const std::byte* b_row = b.row(row);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      float* to = out.at<float>(row, piece);
      runs.binary(parameters.function, a.at(a_row, piece), b.at(b_row, piece), finish.bounds(), to, n);
      finish(runs, to, n);
    }
  });
}

namespace {

std::uint64_t columns_bytes(std::int64_t pixels) noexcept { return align_up(static_cast<std::uint64_t>(pixels) * sizeof(ResizeTaps), 64); }

}  // namespace

Bytes resize_workspace(const operators::ResizeParameters& p, const StepExtent&) noexcept {
  return Bytes(columns_bytes(p.out_columns) + (PlaceTables::fits(p.out_channels) ? PlaceTables::bytes(p.out_columns * p.out_channels) : 0));
}

void lrn_step(const KernelCall& call, const RunTable& runs) noexcept {
  const auto& a = call.parameters<operators::LrnParameters>();
  const RowView& in = call.inputs[0].view;
  const RowView& out = call.outputs[0].view;
  const LrnRun run{(a.size - 1) / 2, a.size / 2, a.alpha / static_cast<float>(a.size), a.beta, a.bias};
  for_grouped_rows(call, [&](std::int64_t row) {
    for (std::int64_t pixel = 0; pixel < out.pixels; ++pixel)
      runs.lrn(run, reference::same_pixel<float>(in, out, row, pixel), out.at<float>(row, pixel), out.channels);
  });
}

namespace {

/// The rows of the input that a row of the output is made of, with the products of their weights: of axes between the first and the row's.
struct RowSources {
  static constexpr std::size_t kMost = 16;  // four of each of two axes
  int count = 1;
  std::array<std::int64_t, kMost> row{};
  std::array<float, kMost> weight{};

  RowSources(const operators::ResizeParameters& a, const Operand& in, const Operand& out, std::int64_t out_row) noexcept {
    const int row_axes = out.shape.rank() - 3;
    std::array<ResizeTaps, 2> taps;
    for (int axis = row_axes; axis >= 1; --axis) {
      taps[static_cast<std::size_t>(axis - 1)] = resize_taps(a, in.shape, out.shape, axis, out_row % out.shape[axis]);
      out_row /= out.shape[axis];
    }
    row[0] = out_row;
    weight[0] = 1.0f;
    for (int axis = 1; axis <= row_axes; ++axis) {
      const ResizeTaps& along = taps[static_cast<std::size_t>(axis - 1)];
      const auto known = static_cast<std::size_t>(count), each = static_cast<std::size_t>(along.count);
      for (std::size_t i = known; i-- > 0;)
        for (std::size_t t = each; t-- > 0;) {
          row[i * each + t] = row[i] * in.shape[axis] + along.source[t];
          weight[i * each + t] = weight[i] * along.weight[t];
        }
      count = static_cast<int>(known * each);
    }
  }
  std::array<const float*, kMost> at(const RowView& in) const noexcept {
    std::array<const float*, kMost> rows{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) rows[i] = in.at<const float>(row[i]);
    return rows;
  }
};

/// One pixel of up to 16 x 4 others.
void blend_pixel(const RunTable& runs, const RowSources& sources, const float* const* rows, const ResizeTaps& x, std::int64_t pitch,
                 float* out, std::int64_t channels) noexcept {
  std::array<const float*, 4 * RowSources::kMost> from;
  std::array<float, 4 * RowSources::kMost> weights;
  std::size_t taps = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(sources.count); ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(x.count); ++j, ++taps) {
      from[taps] = rows[i] + x.source[j] * pitch;
      weights[taps] = sources.weight[i] * x.weight[j];
    }
  runs.blend(from.data(), weights.data(), static_cast<int>(taps), out, channels);
}

/// The pixels of tensors that have not four axes are rows (core/tensor.h). Here those of the last axis but one are a row again.
RowView with_columns(const Operand& operand) noexcept {
  RowView view = operand.view;
  if (operand.shape.rank() == 4) return view;
  view.pixels = operand.shape[operand.shape.rank() - 2];
  view.rows /= view.pixels;
  view.pixel_pitch = view.row_pitch;
  view.row_pitch *= view.pixels;
  return view;
}

/// Of views as images have them.
void resize_rows(const KernelCall& call, const RunTable& runs) noexcept {
  const auto& a = call.parameters<operators::ResizeParameters>();
  const Operand& in = call.inputs[0];
  const Operand& out = call.outputs[0];
  const int column_axis = out.shape.rank() - 2;
  auto* const columns = reinterpret_cast<ResizeTaps*>(call.workspace);
  for (std::int64_t x = 0; x < out.view.pixels; ++x) new (columns + x) ResizeTaps(resize_taps(a, in.shape, out.shape, column_axis, x));
  if (PlaceTables::fits(out.view.channels) && closed_rows(out.view) && PlaceTables::even(columns, in.view, out.view)) {
    const PlaceTables tables(columns, in.view, out.view, call.workspace + columns_bytes(out.view.pixels));
    const bool copies = a.mode == ResizeMode::kNearest && out.view.channels <= kMostCopied;
    for_grouped_rows(call, [&](std::int64_t row) {
      const RowSources sources(a, in, out, row);
      const auto rows = sources.at(in.view);
      if (copies) return runs.copy_pixels(rows[0], tables.places(), out.view.channels, out.view.at<float>(row), out.view.pixels);
      runs.blend_places(tables.run(rows.data(), sources.weight.data(), sources.count), out.view.at<float>(row),
                        out.view.pixels * out.view.channels);
    });
    return;
  }
  for_grouped_rows(call, [&](std::int64_t row) {
    const RowSources sources(a, in, out, row);
    const auto rows = sources.at(in.view);
    for (std::int64_t pixel = 0; pixel < out.view.pixels; ++pixel)
      blend_pixel(runs, sources, rows.data(), columns[pixel], in.view.pixel_pitch / std::int64_t{sizeof(float)},
                  out.view.at<float>(row, pixel), out.view.channels);
  });
}

}  // namespace

/// Images of one to three axes, channels last, N and C kept: up to 4 x 4 x 4 pixels blended into one.
void resize_step(const KernelCall& call, const RunTable& runs) noexcept {
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  if (out.shape.rank() == 4) return resize_rows(call, runs);
  const std::int64_t columns = out.shape[out.shape.rank() - 2];
  const bool whole = call.rows.begin % columns == 0 && call.rows.end % columns == 0;
  if (!whole || in.view.ring_rows != 0 || out.view.ring_rows != 0) return reference::resize(call);
  Operand in_rows = in, out_rows = out;
  in_rows.view = with_columns(in);
  out_rows.view = with_columns(out);
  KernelCall by_rows = call;
  by_rows.inputs = {&in_rows, 1};
  by_rows.outputs = {&out_rows, 1};
  by_rows.rows = {call.rows.begin / columns, call.rows.end / columns};
  resize_rows(by_rows, runs);
}

}  // namespace sluice::kernels::elementwise
