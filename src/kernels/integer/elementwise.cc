#include "src/kernels/integer/elementwise.h"

#include <algorithm>

#include "src/kernels/integer/row_parts.h"
#include "src/kernels/reference/pool_window.h"
#include "src/kernels/reference/walk.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::integer {
namespace {

using weighted::even_part;
using weighted::for_each_unit;
using weighted::thread_count;

/// No gaps between a row's pixels: its values follow each other.
bool closed_rows(const RowView& view) noexcept {
  return view.pixels == 1 || view.pixel_pitch == view.channels * static_cast<std::int64_t>(size_of(view.dtype));
}

/// Pixels of fewer channels are brought together, so that one run takes many: of two channels, as of a detector's head, a run for each pixel
/// took fifteen times as long.
constexpr std::int64_t kFewChannels = 32;

/// Calls body(row, x) for `count` pixels from the first one on, in order.
template <class Body>
void for_pixels(const RowView& view, std::int64_t first, std::int64_t count, const Body& body) noexcept {
  std::int64_t row = first / view.pixels, x = first % view.pixels;
  for (std::int64_t i = 0; i < count; ++i) {
    body(row, x);
    if (++x == view.pixels) {
      x = 0;
      ++row;
    }
  }
}

template <class In, class Out, class Run>
void run_together(const RowView& in, const RowView& out, RowRange rows, const Run& run) noexcept {
  constexpr std::int64_t kMost = 512;  // values
  In values[kMost];
  Out results[kMost];
  const std::int64_t channels = out.channels, end = rows.end * out.pixels, step = kMost / channels;
  for (std::int64_t first = rows.begin * out.pixels; first < end; first += step) {
    const std::int64_t count = std::min(step, end - first);
    In* value = values;
    for_pixels(out, first, count, [&](std::int64_t row, std::int64_t x) noexcept {
      const In* from = reference::same_pixel<const In>(in, out, row, x);
      for (std::int64_t c = 0; c < channels; ++c) *value++ = from[c];
    });
    run(values, results, count * channels);
    const Out* result = results;
    for_pixels(out, first, count, [&](std::int64_t row, std::int64_t x) noexcept {
      Out* to = out.at<Out>(row, x);
      for (std::int64_t c = 0; c < channels; ++c) *to++ = *result++;
    });
  }
}

/// Calls run(in, out, n) for runs of values that follow each other in both views, which hold the same pixels.
template <class In, class Out, class Run>
void for_runs(const KernelCall& call, const Run& run) noexcept {
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  for_row_parts(call, [&](RowRange rows) noexcept {
    const std::int64_t row_values = out.pixels * out.channels;
    if (in.dense() && out.dense()) {
      const std::int64_t first = rows.begin * row_values;
      return run(reinterpret_cast<const In*>(in.data) + first, reinterpret_cast<Out*>(out.data) + first, rows.size() * row_values);
    }
    const bool whole = in.pixels == out.pixels && closed_rows(in) && closed_rows(out);
    if (out.channels < kFewChannels && !(whole && row_values >= kFewChannels)) return run_together<In, Out>(in, out, rows, run);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      if (whole) run(in.at<const In>(row), out.at<Out>(row), row_values);
      for (std::int64_t x = 0; !whole && x < out.pixels; ++x)
        run(reference::same_pixel<In>(in, out, row, x), out.at<Out>(row, x), out.channels);
    }
  });
}

/// One operand of a binary node, as seen from the output: where a row begins, and how far it moves a pixel.
class Walker {
 public:
  Walker(const Operand& operand, const Operand& out) noexcept : operand_(operand), out_(out) {
    const bool repeats_pixels = operand.shape.rank() != 4 || operand.shape[2] == 1;
    pixel_step_ = repeats_pixels ? 0 : operand.view.pixel_pitch;
    step_ = operand.shape.back() == 1 && (out.view.channels > 1 || pixel_step_ == 0) ? 0 : 1;
  }
  const std::uint8_t* row(std::int64_t row) const noexcept {
    const reference::Index index = reference::index_at(out_.shape, row, 0);
    return reinterpret_cast<const std::uint8_t*>(
        reference::address(operand_, reference::broadcast_index(operand_.shape, index, out_.shape.rank())));
  }
  ByteStream at(const std::uint8_t* row, std::int64_t pixel) const noexcept { return {row + pixel * pixel_step_, step_}; }
  /// Does a run over the whole row read the right values: all of a row without gaps, or the same one always?
  bool whole_rows() const noexcept {
    if (out_.view.pixels == 1) return true;
    if (step_ == 0) return pixel_step_ == 0;
    return pixel_step_ != 0 && operand_.view.channels == out_.view.channels && closed_rows(operand_.view);
  }
  /// Do the values of all rows follow each other as those of the output do?
  bool joined() const noexcept { return operand_.view.dense() && operand_.shape.element_count() == out_.shape.element_count(); }

 private:
  const Operand& operand_;
  const Operand& out_;
  std::int64_t pixel_step_ = 0;
  int step_ = 1;
};

}  // namespace

bool walks_beside(const Shape& operand, const Shape& out) noexcept {
  return out.rank() != 4 || operand.rank() == 4 || operand.element_count() == operand.back();
}

void run_quantize_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<operators::IntegerBorderParameters>();
  for_runs<float, std::uint8_t>(call, [&](const float* in, std::uint8_t* out, std::int64_t n) noexcept { table.quantize(p, in, out, n); });
}

void run_dequantize_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<operators::IntegerBorderParameters>();
  for_runs<std::uint8_t, float>(call,
                                [&](const std::uint8_t* in, float* out, std::int64_t n) noexcept { table.dequantize(p, in, out, n); });
}

void run_table_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto* results = reinterpret_cast<const std::uint8_t*>(call.weights[0].data);
  for_runs<std::uint8_t, std::uint8_t>(
      call, [&](const std::uint8_t* in, std::uint8_t* out, std::int64_t n) noexcept { table.look_up(results, in, out, n); });
}

void run_binary_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<operators::IntegerBinaryParameters>();
  const RowView& out = call.outputs[0].view;
  const Walker a(call.inputs[0], call.outputs[0]), b(call.inputs[1], call.outputs[0]);
  const bool joined = a.joined() && b.joined() && out.dense();
  const bool whole = a.whole_rows() && b.whole_rows() && closed_rows(out);
  const std::int64_t pieces = whole ? 1 : out.pixels, n = whole ? out.pixels * out.channels : out.channels;
  for_row_parts(call, [&](RowRange rows) noexcept {
    if (joined) return table.binary(p, {a.row(rows.begin), 1}, {b.row(rows.begin), 1}, out.at<std::uint8_t>(rows.begin), rows.size() * n);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::uint8_t *a_row = a.row(row), *b_row = b.row(row);
      for (std::int64_t piece = 0; piece < pieces; ++piece)
        table.binary(p, a.at(a_row, piece), b.at(b_row, piece), out.at<std::uint8_t>(row, piece), n);
    }
  });
}

namespace {

/// Window rows that are found at a time.
constexpr std::int64_t kMostWindowRows = 256;

/// Do the windows of neighbouring outputs meet neighbouring inputs, tap by tap, of pixels without gaps? Those inside are then one run.
bool joins_columns(const operators::PoolParameters& a, const RowView& in, const RowView& out, ChannelRange channels) noexcept {
  return a.window.stride_w == 1 && channels.size() == out.channels && closed_rows(in) && closed_rows(out);
}

/// The row's pixels, of those channels.
void pool_row(const KernelCall& call, const TileTable& table, std::int64_t row, ChannelRange channels) noexcept {
  const auto& p = call.parameters<operators::IntegerPoolParameters>();
  const RowView &in = call.inputs[0].view, &out = call.outputs[0].view;
  PoolWindow window = pool_window(p.pool, row, 0);
  const std::uint8_t *first[kMostWindowRows], *rows[kMostWindowRows];
  WindowRun run{.rows = rows,
                .range = p.range,
                .zero_in = p.zero_in,
                .whole = p.whole(),
                .scale_in = p.scale_in,
                .scale = p.scale,
                .offset = p.offset};
  for (std::int64_t iy = window.y.begin; iy < window.y.end; iy += window.y.step)
    first[run.row_count++] = in.at<const std::uint8_t>(window.first_row + iy) + channels.begin;
  const bool joins = joins_columns(p.pool, in, out, channels);
  const Interval<std::int64_t> joined = joins ? inner_columns(p.pool.window) : Interval<std::int64_t>{0, 0};
  for (std::int64_t x = 0, pixels; x < out.pixels; x += pixels) {
    pixels = x == joined.begin ? std::max<std::int64_t>(1, joined.size()) : 1;
    move_to_column(p.pool, x, window);
    for (std::int64_t i = 0; i < run.row_count; ++i) rows[i] = first[i] + window.x.begin * in.pixel_pitch;
    run.columns = window.x.count;
    run.column_step = window.x.step * in.pixel_pitch;
    run.values = pixels * channels.size();
    run.count = static_cast<float>(window.divisor);
    run.multiplier = p.scale_in / (p.scale * run.count);
    (p.pool.kind == PoolingKind::kMax ? table.largest : table.mean)(run, out.at<std::uint8_t>(row, x) + channels.begin);
  }
}

}  // namespace

/// A global pool has one row an image: its channels are shared among the threads, in blocks of whole cache lines.
void run_pool_step(const KernelCall& call, const TileTable& table) noexcept {
  constexpr std::int64_t kBlock = 64;
  const std::int64_t channels = call.outputs[0].view.channels;
  const std::int64_t blocks = call.rows.size() < thread_count(call) ? ceil_div(channels, kBlock) : 1;
  for_each_unit(call, call.rows.size() * blocks, [&](std::int64_t unit, int) noexcept {
    const std::int64_t block = unit % blocks;
    const ChannelRange part =
        blocks == 1 ? ChannelRange{0, channels} : ChannelRange{block * kBlock, std::min(channels, (block + 1) * kBlock)};
    pool_row(call, table, call.rows.begin + unit / blocks, part);
  });
}

bool takes_window(const Window& w) noexcept { return w.kernel_h <= kMostWindowRows; }

}  // namespace sluice::kernels::integer
