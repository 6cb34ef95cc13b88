#include "src/kernels/weighted/strip.h"

#include <algorithm>
#include <cstring>

#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {
namespace {

constexpr std::uint64_t kLine = 64;

std::uint64_t table_bytes(const StripPlan& plan) noexcept {
  return align_up(static_cast<std::uint64_t>(plan.segments) * sizeof(std::int64_t), kLine);
}

// One line for the key, one that an inner loop may read past the end.
std::uint64_t thread_bytes(const StripPlan& plan) noexcept {
  return align_up(static_cast<std::uint64_t>(plan.strip_floats()) * sizeof(float), kLine) + 2 * kLine;
}

std::size_t bytes_of(std::int64_t floats) noexcept { return static_cast<std::size_t>(floats) * sizeof(float); }

}  // namespace

OutAreas::OutAreas(RowRange rows, std::int64_t out_h, std::int64_t out_w, std::int64_t area_rows, std::int64_t area_columns) noexcept
    : rows_(rows), out_h_(out_h), out_w_(out_w), area_rows_(area_rows), column_parts_(ceil_div(out_w, area_columns)) {
  for (std::int64_t image = rows.begin / out_h; image * out_h < rows.end; ++image)
    row_parts_ += ceil_div(of_image(image).size(), area_rows);
}

RowRange OutAreas::of_image(std::int64_t image) const noexcept {
  const std::int64_t first = image * out_h_;
  return {std::max(rows_.begin, first) - first, std::min(rows_.end, first + out_h_) - first};
}

OutArea OutAreas::operator[](std::int64_t i) const noexcept {
  const auto columns = even_part({0, out_w_}, i % column_parts_, column_parts_);
  std::int64_t part = i / column_parts_;
  for (std::int64_t image = rows_.begin / out_h_;; ++image) {
    const RowRange rows = of_image(image);
    const std::int64_t parts = ceil_div(rows.size(), area_rows_);
    if (part < parts) return {image, even_part(rows, part, parts), columns};
    part -= parts;
  }
}

Bytes strip_workspace(const StripPlan& plan, int threads) noexcept {
  return Bytes(table_bytes(plan) + thread_bytes(plan) * static_cast<std::uint64_t>(threads));
}

Strips::Strips(std::byte* workspace, const StripPlan& plan, int threads) noexcept
    : workspace_(workspace), table_bytes_(table_bytes(plan)), thread_bytes_(thread_bytes(plan)) {
  constexpr std::int64_t kNoStrip = -1;
  for (int thread = 0; thread < threads; ++thread) std::memcpy(key_of(thread), &kNoStrip, sizeof kNoStrip);
}

float* Strips::strip(int thread) const noexcept { return reinterpret_cast<float*>(key_of(thread) + kLine); }

std::byte* Strips::key_of(int thread) const noexcept {
  return workspace_ + table_bytes_ + static_cast<std::uint64_t>(thread) * thread_bytes_;
}

bool Strips::holds(int thread, std::int64_t key) const noexcept {
  std::int64_t held = 0;
  std::memcpy(&held, key_of(thread), sizeof held);
  std::memcpy(key_of(thread), &key, sizeof key);
  return held == key;
}

void fill_strip(const RowView& in, std::int64_t in_h, const StripArea& area, std::int64_t first_channel, const StripPlan& plan,
                float* strip) noexcept {
  const std::int64_t depth = plan.depth;
  const std::int64_t left = std::clamp<std::int64_t>(-area.column, 0, area.columns);
  const std::int64_t inside_end = std::clamp<std::int64_t>(in.pixels - area.column, left, area.columns);
  const bool contiguous = in.pixel_pitch == depth * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t r = 0; r < area.rows; ++r) {
    float* const to = strip + r * plan.in_columns * depth;
    const std::int64_t row = area.row + r;
    if (row < 0 || row >= in_h || inside_end == left) {
      std::memset(to, 0, bytes_of(area.columns * depth));
      continue;
    }
    std::memset(to, 0, bytes_of(left * depth));
    const std::byte* from = reinterpret_cast<const std::byte*>(in.at<float>(area.image * in_h + row, area.column + left) + first_channel);
    if (contiguous) {
      std::memcpy(to + left * depth, from, bytes_of((inside_end - left) * depth));
    } else {
      for (std::int64_t x = left; x < inside_end; ++x, from += in.pixel_pitch) std::memcpy(to + x * depth, from, bytes_of(depth));
    }
    std::memset(to + inside_end * depth, 0, bytes_of((area.columns - inside_end) * depth));
  }
}

}  // namespace sluice::kernels::weighted
