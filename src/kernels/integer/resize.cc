#include "src/kernels/integer/resize.h"

#include <algorithm>
#include <cstring>
#include <limits>
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

Bytes resize_linear_workspace(const operators::IntegerResizeParameters& p, const StepExtent&) noexcept {
  return Bytes(static_cast<std::uint64_t>(p.resize.out_columns) * sizeof(BlendColumn));
}

namespace {

constexpr std::int64_t kNarrow = 4;  // channels

/// The left and right neighbours of each value in a row of the input. Rows of the output that follow each other have most of them in common.
class Neighbours {
 public:
  void set(const BlendRow& row, std::int64_t begin, int count) noexcept {
    count_ = count;
    held_[0] = held_[1] = nullptr;
    for (int lane = 0; lane < count; ++lane)
      for (int i = 0; i < 2; ++i)
        from_[i][lane] = static_cast<std::int32_t>(row.columns[begin + lane / row.channels].from[i] + lane % row.channels);
  }

  /// Those of both rows: [row * 2 + side].
  void find(const std::uint8_t* const (&rows)[2], const std::uint8_t* (&bytes)[4]) noexcept {
    for (int r = 0; r < 2; ++r) {
      int slot = held_[0] == rows[r] ? 0 : 1;
      if (held_[slot] != rows[r]) fill(slot = held_[0] == rows[1 - r] ? 1 : held_[1] == rows[1 - r] ? 0 : r, rows[r]);
      bytes[2 * r] = bytes_[slot][0];
      bytes[2 * r + 1] = bytes_[slot][1];
    }
  }

 private:
  void fill(int slot, const std::uint8_t* row) noexcept {
    held_[slot] = row;
    for (int i = 0; i < 2; ++i)
      for (int lane = 0; lane < count_; ++lane) bytes_[slot][i][lane] = row[from_[i][lane]];
  }

  int count_ = 0;
  const std::uint8_t* held_[2];
  std::int32_t from_[2][BlendLanes::kMost];
  std::uint8_t bytes_[2][2][BlendLanes::kMost] = {};  // of two rows; behind the last value anything
};

/// Rows whose pixels have few channels: vectors hold several pixels.
template <class RowOf>
void blend_narrow(const operators::IntegerResizeParameters& p, const TileTable& table, const RowOf& row_of, const RowRange& rows) noexcept {
  BlendLanes lanes;
  Neighbours neighbours;
  const BlendRow first = row_of(rows.begin);
  const std::int64_t most = BlendLanes::kMost / first.channels;
  for (std::int64_t begin = 0; begin < first.pixels; begin += most) {
    lanes.count = static_cast<int>(std::min(most, first.pixels - begin) * first.channels);
    for (int lane = 0; lane < BlendLanes::kMost; ++lane)
      for (int i = 0; i < 2; ++i)
        lanes.weights[i][lane] = lane < lanes.count ? first.columns[begin + lane / first.channels].weights[i] : 0.0f;
    neighbours.set(first, begin, lanes.count);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      BlendRow part = row_of(row);
      part.out += begin * first.channels;
      neighbours.find(part.rows, lanes.bytes);
      table.blend_lanes(p, part, lanes);
    }
  }
}

}  // namespace

void run_resize_linear_step(const KernelCall& call, const TileTable& table) noexcept {
  const auto& p = call.parameters<operators::IntegerResizeParameters>();
  const Operand &in = call.inputs[0], &out = call.outputs[0];
  auto* const columns = reinterpret_cast<BlendColumn*>(call.workspace);
  for (std::int64_t x = 0; x < out.view.pixels; ++x) {
    const LinearTaps taps = linear_taps(p.resize, in.shape, out.shape, 2, x);
    new (columns + x)
        BlendColumn{{taps.source[0] * in.view.pixel_pitch, taps.source[1] * in.view.pixel_pitch}, {taps.weight[0], taps.weight[1]}};
  }
  const auto row_of = [&](std::int64_t row) noexcept {
    const LinearTaps taps = linear_taps(p.resize, in.shape, out.shape, 1, row % out.shape[1]);
    const std::int64_t image = row / out.shape[1] * in.shape[1];
    return BlendRow{
        .rows = {in.view.at<const std::uint8_t>(image + taps.source[0]), in.view.at<const std::uint8_t>(image + taps.source[1])},
        .weights = {taps.weight[0], taps.weight[1]},
        .columns = columns,
        .pixels = out.view.pixels,
        .channels = out.view.channels,
        .out = out.view.at<std::uint8_t>(row),
        .pitch = out.view.pixel_pitch};
  };
  const bool narrow = out.view.channels <= kNarrow && out.view.pixel_pitch == out.view.channels &&
                      in.view.pixels * in.view.pixel_pitch <= std::numeric_limits<std::int32_t>::max();
  const std::int64_t parts = std::min<std::int64_t>(call.rows.size(), 4 * thread_count(call));
  for_each_unit(call, parts, [&](std::int64_t part, int) noexcept {
    const RowRange rows = even_part(call.rows, part, parts);
    if (narrow) return blend_narrow(p, table, row_of, rows);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) table.blend(p, row_of(row));
  });
}

}  // namespace sluice::kernels::integer
