#include "src/kernels/integer/resize.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::integer {
namespace {

using weighted::even_part;
using weighted::for_each_unit;
using weighted::thread_count;

/// Copies pixels of kBytes from the places that the columns name; of any number of bytes where that is 0.
template <std::size_t kBytes>
void copy_pixels(const std::byte* from, const std::int64_t* columns, std::size_t bytes, std::int64_t pixels, std::byte* to,
                 std::int64_t to_pitch) noexcept {
  for (std::int64_t x = 0; x < pixels; ++x) std::memcpy(to + x * to_pitch, from + columns[x], kBytes == 0 ? bytes : kBytes);
}

using CopyPixels = decltype(&copy_pixels<0>);
CopyPixels copy_of(std::int64_t channels) noexcept {
  switch (channels) {
    case 1:
      return copy_pixels<1>;
    case 3:
      return copy_pixels<3>;
    case 4:
      return copy_pixels<4>;
    case 16:
      return copy_pixels<16>;
    case 32:
      return copy_pixels<32>;
    case 64:
      return copy_pixels<64>;
    default:
      return copy_pixels<0>;
  }
}

}  // namespace

bool resizes_images(const operators::ResizeParameters& p, const Shape& in, const Shape& out) noexcept {
  return out.rank() == 4 && keeps_extent(p, in, out, 0) && keeps_extent(p, in, out, 3);
}

Bytes resize_workspace(const operators::IntegerResizeParameters& p, const StepExtent&) noexcept {
  return Bytes(static_cast<std::uint64_t>(p.resize.out_columns) * sizeof(std::int64_t));
}

void run_resize_step(const KernelCall& call) noexcept {
  const auto& p = call.parameters<operators::IntegerResizeParameters>().resize;
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  auto* const columns = reinterpret_cast<std::int64_t*>(call.workspace);
  for (std::int64_t x = 0; x < out.view.pixels; ++x) columns[x] = resize_taps(p, in.shape, out.shape, 2, x).source[0] * in.view.pixel_pitch;
  const auto source_of = [&](std::int64_t row) noexcept {
    return row / out.shape[1] * in.shape[1] + resize_taps(p, in.shape, out.shape, 1, row % out.shape[1]).source[0];
  };
  const CopyPixels copy = copy_of(out.view.channels);
  const auto bytes = static_cast<std::size_t>(out.view.channels);
  const bool closed = out.view.pixel_pitch == out.view.channels;
  const std::int64_t parts = std::min<std::int64_t>(call.rows.size(), 4 * thread_count(call));
  for_each_unit(call, parts, [&](std::int64_t part, int) noexcept {
    std::int64_t before = -1;
    const RowRange rows = even_part(call.rows, part, parts);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t source = source_of(row);
      auto* const to = out.view.at<std::byte>(row);
      if (closed && source == before)
        std::memcpy(to, out.view.at<const std::byte>(row - 1), bytes * static_cast<std::size_t>(out.view.pixels));
      else
        copy(in.view.at<const std::byte>(source), columns, bytes, out.view.pixels, to, out.view.pixel_pitch);
      before = source;
    }
  });
}

namespace {

/// The sources of a column, as distances from the begin of a row.
struct Column {
  std::int64_t from[2];
  float weights[2];
};

}  // namespace

Bytes resize_linear_workspace(const operators::IntegerResizeParameters& p, const StepExtent&) noexcept {
  return Bytes(static_cast<std::uint64_t>(p.resize.out_columns) * sizeof(Column));
}

void run_resize_linear_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<operators::IntegerResizeParameters>();
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  auto* const columns = reinterpret_cast<Column*>(call.workspace);
  for (std::int64_t x = 0; x < out.view.pixels; ++x) {
    const LinearTaps taps = linear_taps(p.resize, in.shape, out.shape, 2, x);
    new (columns + x)
        Column{{taps.source[0] * in.view.pixel_pitch, taps.source[1] * in.view.pixel_pitch}, {taps.weight[0], taps.weight[1]}};
  }
  const std::int64_t parts = std::min<std::int64_t>(call.rows.size(), 4 * thread_count(call));
  for_each_unit(call, parts, [&](std::int64_t part, int) noexcept {
    const RowRange rows = even_part(call.rows, part, parts);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const LinearTaps taps = linear_taps(p.resize, in.shape, out.shape, 1, row % out.shape[1]);
      const std::int64_t image = row / out.shape[1] * in.shape[1];
      const auto* first = in.view.at<const std::uint8_t>(image + taps.source[0]);
      const auto* second = in.view.at<const std::uint8_t>(image + taps.source[1]);
      for (std::int64_t x = 0; x < out.view.pixels; ++x) {
        const Column& column = columns[x];
        BlendRun run{.channels = out.view.channels};
        for (std::size_t i = 0; i < 4; ++i) {
          run.from[i] = (i < 2 ? first : second) + column.from[i % 2];
          run.weights[i] = column.weights[i % 2] * taps.weight[i / 2];
        }
        table.blend(p, run, out.view.at<std::uint8_t>(row, x));
      }
    }
  });
}

}  // namespace sluice::kernels::integer
