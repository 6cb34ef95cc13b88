#include "src/kernels/weighted/strip.h"

#include <algorithm>
#include <cstring>

namespace sluice::kernels::weighted {
namespace {

constexpr std::uint64_t kLine = 64;

std::uint64_t table_bytes(const StripPlan& plan) noexcept {
  return align_up(static_cast<std::uint64_t>(plan.segments) * sizeof(std::int64_t), kLine);
}

// One line for the key, one that an inner loop may read past the end.
std::uint64_t thread_bytes(const StripPlan& plan) noexcept {
  return table_bytes(plan) + align_up(static_cast<std::uint64_t>(plan.strip_floats()) * sizeof(float), kLine) + 2 * kLine;
}

std::size_t bytes_of(std::int64_t floats) noexcept { return static_cast<std::size_t>(floats) * sizeof(float); }

std::int64_t input_span(std::int64_t outputs, std::int64_t stride, std::int64_t kernel, std::int64_t dilation) noexcept {
  return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

/// Inputs that meet a run of `outputs` of a transposed convolution, wherever it begins.
std::int64_t transposed_span(std::int64_t outputs, std::int64_t stride, std::int64_t kernel, std::int64_t dilation) noexcept {
  return ceil_div(outputs + (kernel - 1) * dilation, stride) + 1;
}

void set_area(const Window& w, Direction direction, std::int64_t rows, std::int64_t columns, StripPlan& plan) noexcept {
  const auto span = direction == Direction::kTransposed ? transposed_span : input_span;
  plan.out_rows = rows;
  plan.out_columns = columns;
  plan.in_rows = span(rows, w.stride_h, w.kernel_h, w.dilation_h);
  plan.in_columns = span(columns, w.stride_w, w.kernel_w, w.dilation_w);
  const auto far_apart = [&](std::int64_t dilation, std::int64_t taps, std::int64_t inputs) {
    return direction != Direction::kTransposed && dilation > 1 && taps < inputs;
  };
  plan.rows_apart = far_apart(w.dilation_h, rows * w.kernel_h, plan.in_rows);
  plan.columns_apart =
      far_apart(w.dilation_w, columns * w.kernel_w, plan.in_columns) || (direction == Direction::kColumns && w.stride_w > 1);
  if (plan.rows_apart) plan.in_rows = rows * w.kernel_h;
  if (plan.columns_apart) plan.in_columns = columns * w.kernel_w;
}

std::int64_t strip_bytes(const StripPlan& plan) noexcept { return plan.strip_floats() * static_cast<std::int64_t>(sizeof(float)); }

bool fits(const StripPlan& plan) noexcept { return strip_bytes(plan) <= kStripBytes; }

bool few_tiles(const StripPlan& plan) noexcept { return plan.out_rows * plan.out_columns <= 3 * kMaxTileRows; }

/// The most output rows of `columns` that fit, at least one.
std::int64_t most_rows(const Window& w, Direction direction, std::int64_t most, std::int64_t columns, StripPlan plan) noexcept {
  std::int64_t low = 1, high = most;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    set_area(w, direction, middle, columns, plan);
    fits(plan) ? low = middle : high = middle - 1;
  }
  return low;
}

// Neighbouring strips overlap, and what overlaps is copied twice: of the ways to cut the columns evenly, the one that copies least for an
// output, unless rows of the whole width copy hardly more.
std::int64_t best_columns(const Window& w, Direction direction, std::int64_t most, StripPlan plan) noexcept {
  std::int64_t best = w.out_w;
  bool best_fits = false;
  double least = 0.0;
  for (std::int64_t parts = 1; parts == 1 || ceil_div(w.out_w, parts) >= kMaxTileRows; ++parts) {
    const std::int64_t columns = ceil_div(w.out_w, parts);
    set_area(w, direction, most_rows(w, direction, most, columns, plan), columns, plan);
    const double copied = static_cast<double>(plan.in_rows * plan.in_columns) / static_cast<double>(plan.out_rows * plan.out_columns);
    if (!best_fits || (fits(plan) && copied < 0.8 * least)) {
      best = columns;
      best_fits = fits(plan);
      least = copied;
    }
  }
  return best;
}

}  // namespace

/// Floats between pixels of a strip whose inputs would all lie at the same place of a cache line.
constexpr std::int64_t kGapOfLines = 4;

StripPlan plan_strips(const Window& w, std::int64_t depth, const StepExtent& extent, std::int64_t blocks, Direction direction,
                      std::int64_t gap) noexcept {
  StripPlan plan;
  plan.depth = depth;
  plan.gap = gap;
  plan.segments = direction != Direction::kTransposed && w.dilation_w == 1 ? w.kernel_h : w.taps();
  const std::int64_t most = std::min(extent.rows.size(), w.out_h);
  const std::int64_t columns = best_columns(w, direction, most, plan);
  set_area(w, direction, most_rows(w, direction, most, columns, plan), columns, plan);
  if (few_tiles(plan)) {
    StripPlan whole = plan;
    set_area(w, direction, most, w.out_w, whole);
    if (strip_bytes(whole) <= kWholeStripBytes) plan = whole;
  }
  std::int64_t parts = ceil_div(most, plan.out_rows);
  set_area(w, direction, ceil_div(most, parts), plan.out_columns, plan);
  const auto units = [&] { return OutAreas(extent.rows, w, plan).count() * blocks; };
  const auto uneven = [&] { return units() < 8 * extent.threads && units() % extent.threads != 0; };
  // Threads without work are worth short strips.
  const auto least_pixels = [&] { return units() < extent.threads ? kMaxTileRows : 4 * kMaxTileRows; };
  while (uneven() && plan.out_rows > 1 && plan.out_rows * plan.out_columns > least_pixels())
    set_area(w, direction, ceil_div(most, ++parts), plan.out_columns, plan);
  for (std::int64_t across = ceil_div(w.out_w, plan.out_columns); uneven() && plan.out_rows == 1 && plan.out_columns > least_pixels();)
    set_area(w, direction, 1, ceil_div(w.out_w, ++across), plan);
  return plan;
}

StripCut cut_strips(const ConvolutionParameters& conv, const StepExtent& extent, Direction direction) noexcept {
  const auto blocks_of = [&](std::int64_t bytes) {
    return Blocks(conv.weighted.panels, extent.channels, conv.out_channels, conv.out_channels / conv.groups, bytes, 2);
  };
  // Narrow panels are widened, and the blocks of sparse ones listed, a pair at a time.
  const PanelLayout& layout = conv.weighted.panels.layout;
  const bool in_pairs = is_narrow(layout) || layout.layout == WeightLayout::kSparse;
  Blocks blocks = blocks_of(in_pairs ? 1 : kBlockBytes);
  const std::int64_t all_pixels = extent.rows.size() * conv.window.out_w;
  bool by_pixels = extent.threads > 1 && (shares_pixels(conv.weighted, extent) || blocks_are_uneven(blocks, all_pixels, extent.threads));
  if (!by_pixels) blocks.share(extent.threads);
  const std::int64_t depth = conv.in_channels / conv.groups;
  // Tiles over sparse panels load an input for each multiply-add, and a core loads one a cycle of those at the same place of a line.
  const std::int64_t gap = layout.layout == WeightLayout::kSparse && depth % 16 == 0 ? kGapOfLines : 0;
  const auto strips_of = [&](std::int64_t units) { return plan_strips(conv.window, depth, extent, units, direction, gap); };
  const auto count_of = [&](const StripPlan& plan) { return OutAreas(extent.rows, conv.window, plan).count(); };
  StripPlan strip = strips_of(by_pixels ? 1 : blocks.count());
  std::int64_t areas = count_of(strip);
  if (by_pixels && areas % extent.threads != 0) {
    by_pixels = false;
    blocks.share(extent.threads);
    strip = strips_of(blocks.count());
    areas = count_of(strip);
  }
  // Weights come back from L3 while tiles work; strips would be copied again by a core that waits for them. Threads that share the blocks
  // keep theirs.
  const std::int64_t pixels = strip.out_rows * strip.out_columns;
  const bool areas_outside = conv.groups == 1 && (by_pixels || extent.threads == 1);
  if (!in_pairs && areas_outside && pixels <= kFewTiles * kMaxTileRows) blocks = blocks_of(kSmallBlockBytes);
  const std::int64_t parts = by_pixels ? extent.threads : 1;
  return {strip, blocks, {parts, blocks.count(), areas / parts, areas_outside}};
}

void set_segments(const Window& w, const StripPlan& plan, std::int64_t* offsets) noexcept {
  const std::int64_t row = (plan.rows_apart ? plan.out_rows : w.dilation_h) * plan.in_columns * plan.pitch();
  const std::int64_t column = (plan.columns_apart ? plan.out_columns : w.dilation_w) * plan.pitch();
  const std::int64_t taps_in_segment = w.taps() / plan.segments;
  for (std::int64_t s = 0; s < plan.segments; ++s) {
    const std::int64_t tap = s * taps_in_segment;
    offsets[s] = tap / w.kernel_w * row + tap % w.kernel_w * column;
  }
}

OutAreas::OutAreas(RowRange rows, const Window& w, const StripPlan& plan) noexcept
    : rows_(rows), out_h_(w.out_h), out_w_(w.out_w), area_rows_(plan.out_rows), column_parts_(ceil_div(w.out_w, plan.out_columns)) {
  for (std::int64_t image = rows.begin / out_h_; image * out_h_ < rows.end; ++image)
    row_parts_ += ceil_div(of_image(image).size(), area_rows_);
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
  return Bytes(thread_bytes(plan) * static_cast<std::uint64_t>(threads));
}

Strips::Strips(std::byte* workspace, const StripPlan& plan, int threads) noexcept
    : workspace_(workspace), table_bytes_(table_bytes(plan)), thread_bytes_(thread_bytes(plan)) {
  constexpr std::int64_t kNoStrip = -1;
  for (int thread = 0; thread < threads; ++thread) std::memcpy(key_of(thread), &kNoStrip, sizeof kNoStrip);
}

float* Strips::strip(int thread) const noexcept { return reinterpret_cast<float*>(key_of(thread) + kLine + table_bytes_); }

bool Strips::holds(int thread, std::int64_t key) const noexcept {
  std::int64_t held = 0;
  std::memcpy(&held, key_of(thread), sizeof held);
  std::memcpy(key_of(thread), &key, sizeof key);
  return held == key;
}

void fill_strip(const RowView& in, const Window& w, const StripArea& area, std::int64_t first_channel, const StripPlan& plan,
                float* strip) noexcept {
  const std::int64_t depth = plan.depth, pitch = plan.pitch(), step = area.column_step;
  const std::int64_t left = std::clamp<std::int64_t>(ceil_div(-area.column, step), 0, area.columns);
  const std::int64_t inside_end = std::clamp<std::int64_t>(ceil_div(in.pixels - area.column, step), left, area.columns);
  const bool contiguous = step == 1 && plan.gap == 0 && in.pixel_pitch == depth * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t r = 0; r < area.rows; ++r) {
    float* const to = strip + r * plan.in_columns * pitch;
    const std::int64_t row = area.row + r * area.row_step;
    if (row < 0 || row >= w.in_h || inside_end == left) {
      std::memset(to, 0, bytes_of(area.columns * pitch));
      continue;
    }
    std::memset(to, 0, bytes_of(left * pitch));
    const std::byte* from =
        reinterpret_cast<const std::byte*>(in.at<float>(area.image * w.in_h + row, area.column + left * step) + first_channel);
    if (contiguous) {
      std::memcpy(to + left * pitch, from, bytes_of((inside_end - left) * pitch));
    } else {
      for (std::int64_t x = left; x < inside_end; ++x, from += step * in.pixel_pitch) std::memcpy(to + x * pitch, from, bytes_of(depth));
    }
    std::memset(to + inside_end * pitch, 0, bytes_of((area.columns - inside_end) * pitch));
  }
}

}  // namespace sluice::kernels::weighted
