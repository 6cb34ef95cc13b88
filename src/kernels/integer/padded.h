// Strips of bytes whose padding is the zero point of what they hold.
#pragma once

#include <algorithm>
#include <cstring>

#include "sluice/kernels/call.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::integer {

inline constexpr std::int64_t kWord = 4;  // bytes of what strips are counted in

/// Fills the part of a strip that holds `area`, in pixels of `bytes` and rows of `row_bytes`; what lies outside the image becomes `zero`.
/// `copy(from, step, pixels, to)` writes pixels that lie `step` bytes apart, the first at channel 0 of `from`.
template <class Copy>
void fill_padded(const RowView& in, const Window& w, const weighted::StripArea& area, std::int64_t bytes, std::int64_t row_bytes, int zero,
                 const Copy& copy, std::uint8_t* strip) noexcept {
  const std::int64_t step = area.column_step;
  const std::int64_t left = std::clamp<std::int64_t>(ceil_div(-area.column, step), 0, area.columns);
  const std::int64_t inside_end = std::clamp<std::int64_t>(ceil_div(in.pixels - area.column, step), left, area.columns);
  const auto pad = [&](std::uint8_t* to, std::int64_t pixels) { std::memset(to, zero, static_cast<std::size_t>(pixels * bytes)); };
  for (std::int64_t r = 0; r < area.rows; ++r) {
    std::uint8_t* const to = strip + r * row_bytes;
    const std::int64_t row = area.row + r * area.row_step;
    if (row < 0 || row >= w.in_h || inside_end == left) {
      pad(to, area.columns);
      continue;
    }
    pad(to, left);
    const auto* from = in.at<const std::uint8_t>(area.image * w.in_h + row, area.column + left * step);
    copy(from, step * in.pixel_pitch, inside_end - left, to + left * bytes);
    pad(to + inside_end * bytes, area.columns - inside_end);
  }
}

}  // namespace sluice::kernels::integer
