// Elementwise operators of views with gaps between a few channels, as boxes beside scores have: blocks of values are put one behind the other,
// and results back, where a call for each pixel would take longer than the pixel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/kernels/call.h"
#include "src/kernels/elementwise/row_walks.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/movement/strided_copy.h"

namespace sluice::kernels::elementwise {

/// Short runs with gaps between them, of operands that have the output's shape or one value: blocks of values are put one behind the other,
/// and results back.
class GatheredRuns {
 public:
  static constexpr std::int64_t kMostChannels = 16;
  static bool takes(const KernelCall& call) noexcept {
    const Operand& out = call.outputs[0];
    const auto fits = [&](const Operand& operand) {
      return operand.shape.element_count() == 1 || (operand.shape == out.shape && operand.view.ring_rows == 0);
    };
    return out.view.channels <= kMostChannels && out.view.ring_rows == 0 && std::all_of(call.inputs.begin(), call.inputs.end(), fits);
  }

  explicit GatheredRuns(const KernelCall& call) noexcept : call_(call), out_(call.outputs[0].view) {}

  /// body(values of each operand, where results go, count), for blocks that together are all values.
  template <class Body>
  void run(const Body& body) const noexcept {
    const std::int64_t pixels = std::min(out_.pixels, kValues / out_.channels), rows_at_once = kValues / (out_.channels * pixels);
    for_joined_rows(call_, true, [&](std::int64_t row, std::int64_t rows) {
      const std::int64_t end = row + rows;
      for (std::int64_t r = row; r < end; r += rows_at_once)
        for (std::int64_t p = 0; p < out_.pixels; p += pixels)
          run_block({r, p, pixels == out_.pixels ? std::min(rows_at_once, end - r) : 1, std::min(pixels, out_.pixels - p)}, body);
    });
  }

 private:
  static constexpr std::int64_t kValues = 1024;
  struct Block {
    std::int64_t row, pixel, rows, pixels;
  };

  static constexpr std::size_t kMostInputs = 2;

  template <class Body>
  void run_block(const Block& block, const Body& body) const noexcept {
    alignas(64) std::array<std::array<float, kValues>, kMostInputs + 1> room;
    const std::int64_t count = block.rows * block.pixels * out_.channels;
    std::array<Stream, kMostInputs> values;
    for (std::size_t i = 0; i < call_.inputs.size(); ++i) values[i] = gathered(call_.inputs[i], block, room[i].data());
    float* const to = runs_on(out_, block) ? out_.at<float>(block.row, block.pixel) : room[kMostInputs].data();
    body(values, to, count);
    if (to != room[kMostInputs].data()) return;
    copy(block, {reinterpret_cast<const std::byte*>(to), block.pixels * out_.channels * kFloat, out_.channels * kFloat},
         {reinterpret_cast<std::byte*>(out_.at<float>(block.row, block.pixel)), out_.row_pitch, out_.pixel_pitch});
  }

  static constexpr std::int64_t kFloat = sizeof(float);
  template <class Byte>
  struct Place {
    Byte* first;
    std::int64_t row, pixel;  // bytes from one to the next
  };

  static bool runs_on(const RowView& view, const Block& block) noexcept {
    return closed_rows(view) && (block.rows == 1 || view.row_pitch == view.pixels * view.pixel_pitch);
  }
  Stream gathered(const Operand& operand, const Block& block, float* room) const noexcept {
    const RowView& view = operand.view;
    if (operand.shape.element_count() == 1) return {view.at<const float>(0, 0), 0};
    const auto* const first = view.at<const float>(block.row, block.pixel);
    if (runs_on(view, block)) return {first, 1};
    copy(block, {reinterpret_cast<const std::byte*>(first), view.row_pitch, view.pixel_pitch},
         {reinterpret_cast<std::byte*>(room), block.pixels * out_.channels * kFloat, out_.channels * kFloat});
    return {room, 1};
  }
  void copy(const Block& block, const Place<const std::byte>& from, const Place<std::byte>& to) const noexcept {
    movement::StridedCopy copy;
    copy.element = kFloat;
    copy.from = from.first;
    copy.to = to.first;
    copy.add(block.rows, from.row, to.row);
    copy.add(block.pixels, from.pixel, to.pixel);
    copy.add(out_.channels, kFloat, kFloat);
    movement::run(copy, active_isa());
  }

  const KernelCall& call_;
  const RowView& out_;
};

}  // namespace sluice::kernels::elementwise
