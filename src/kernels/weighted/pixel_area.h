// The walk of tiles whose lanes are pixels (TileTable::pixel_lanes) over an area of outputs. In a plane its rows lie `pitch` pixels apart; where
// little lies between them they are one run, so that short rows fill vectors and chains too:
//
//     plane:  y y y y y y . . y y y y y y . . y y y y y y       three rows of six outputs; the sums of dots are made and left out
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "sluice/core/units.h"
#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::weighted {

struct PixelArea {
  std::int64_t first = 0;  // where the first output reads in a plane
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pitch = 0;  // from row to row in a plane
};

/// One row. outputs_of(row, column, count): the outputs of neighbouring pixels of a row.
template <class OutputsOf>
void run_pixel_row(const TileTable& tiles, std::span<const PixelPlanes> planes, const PixelArea& area, std::int64_t row, const TileJob& job,
                   const OutputsOf& outputs_of) noexcept {
  const std::int64_t begin = area.first + row * area.pitch, parts = ceil_div(area.columns, kMostPixels);
  const std::int64_t of_part = ceil_div(ceil_div(area.columns, parts), kPanelLanes) * kPanelLanes;
  for (std::int64_t p = 0; p < area.columns; p += of_part) {
    const std::int64_t end = std::min(area.columns, p + of_part);
    const PixelOutputs outputs = outputs_of(row, p, end - p);
    tiles.pixel_lanes(planes, {begin + p, begin + end}, {&outputs, 1}, job);
  }
}

template <class OutputsOf>
void run_pixel_area(const TileTable& tiles, std::span<const PixelPlanes> planes, const PixelArea& area, const TileJob& job,
                    const OutputsOf& outputs_of) noexcept {
  if (area.columns <= 0 || area.rows <= 0) return;
  const std::int64_t between = area.pitch - area.columns;
  if (between < 0 || 4 * between > area.pitch || area.rows == 1) {
    for (std::int64_t row = 0; row < area.rows; ++row) run_pixel_row(tiles, planes, area, row, job, outputs_of);
    return;
  }
  const std::int64_t span = (area.rows - 1) * area.pitch + area.columns;
  const std::int64_t parts = ceil_div(span, kMostPixels), of_part = ceil_div(ceil_div(span, parts), kPanelLanes) * kPanelLanes;
  std::array<PixelOutputs, static_cast<std::size_t>(kMostPixels)> outputs;
  for (std::int64_t p = 0; p < span; p += of_part) {
    const Interval<std::int64_t> run{p, std::min(span, p + of_part)};
    std::size_t count = 0;
    for (std::int64_t r = p / area.pitch; r < area.rows && r * area.pitch < run.end; ++r) {
      const std::int64_t of_row = r * area.pitch;
      const Interval<std::int64_t> columns{std::max(run.begin - of_row, std::int64_t{0}), std::min(run.end - of_row, area.columns)};
      if (columns.begin >= columns.end) continue;
      outputs[count] = outputs_of(r, columns.begin, columns.size());
      outputs[count++].first = of_row + columns.begin - run.begin;
    }
    tiles.pixel_lanes(planes, {area.first + run.begin, area.first + run.end}, {outputs.data(), count}, job);
  }
}

/// The outputs of `count` pixels of output row `row` of all images from column `x` on, `step` pixels apart; `channel` is the panel's first.
inline PixelOutputs pixel_outputs(const KernelCall& call, std::int64_t row, std::int64_t x, std::int64_t step, std::int64_t count,
                                  std::int64_t channel) noexcept {
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  const RowView& out = call.outputs[0].view;
  PixelOutputs outputs{.count = count, .out = out.at<float>(row, x) + channel, .out_pixel = step * out.pixel_pitch / kFloat};
  if (weighted_of(call).epilogue.has_residual) {
    const RowView& residual = call.inputs.back().view;
    outputs.residual = residual.at<const float>(row, x) + channel;
    outputs.residual_pixel = step * residual.pixel_pitch / kFloat;
  }
  return outputs;
}

}  // namespace sluice::kernels::weighted
