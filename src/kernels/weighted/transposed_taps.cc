// Transposed convolutions that sum by taps (core/transposed_sums.h): a product of matrices, whose lanes are the taps of all outputs, and then
// for each output the sum of its taps.
//
//     weights:  [panels][k][16 lanes], lane = tap * outputs + output; put beside each other for the step
//     tiles:    pixels of the input, read in place -> [pixel][lanes of a few panels]
//     planes:   turned: a plane for each lane, [rows][columns], zeros where no input is
//     outputs:  neighbouring pixels of a phase sum their taps' planes, each at its distance, as tiles of pixels do (tile.h, PixelPlanes)
//
// A unit goes down its rows; rows of the input take turns in the planes, and those that the next outputs read too stay.
#include <algorithm>
#include <array>

#include "src/kernels/weighted/direct.h"
#include "src/kernels/weighted/pixel_area.h"
#include "src/kernels/weighted/strip.h"
#include "src/kernels/weighted/transposed_axis.h"

namespace sluice::kernels::weighted {
namespace {

constexpr auto kSumBytes = static_cast<std::int64_t>(sizeof(float));

/// Planes of a thread: where columns allow it they stay in L2 beside the weights of a few panels.
constexpr std::int64_t kPlaneBytes = 192 * 1024;
/// Weights of panels that all tiles of some rows pass by, and the sums of their tiles before they are turned.
constexpr std::int64_t kMostTapPanels = 12;
constexpr std::int64_t kTapPanelBytes = 192 * 1024;
constexpr std::int64_t kTileFloats = 8 * 1024;
constexpr std::int64_t kLeastColumns = 32;

std::int64_t lines_of(std::int64_t floats) noexcept { return ceil_div(floats, std::int64_t{kPanelLanes}) * kPanelLanes; }
/// From one plane to the next: a vector may be read past the end, and an odd number of lines lies between neighbours, so that they are in
/// different sets of the first cache.
std::int64_t plane_floats(std::int64_t floats) noexcept { return ((lines_of(floats) / kPanelLanes + 1) | 1) * kPanelLanes; }

std::int64_t span_of(std::int64_t outputs, std::int64_t kernel, std::int64_t stride, std::int64_t dilation) noexcept {
  return ceil_div(outputs + (kernel - 1) * dilation, stride) + 1;
}

/// How a step is cut: outputs in passes, each over all of its area. A function of parameters and extent alone.
struct TapPlan {
  std::int64_t passes = 1;
  std::int64_t first = 0, outputs = 0;  // of the pass, within the step; of the plan: the most that a pass has
  std::int64_t depth = 0, taps = 0;
  std::int64_t lanes = 0, panels = 0;
  StripPlan unit;                             // rows and columns of outputs
  std::int64_t rows = 1;                      // of outputs that are made at once
  std::int64_t in_rows = 1, in_columns = 1;   // of the taps' planes
  std::int64_t plane = 0;                     // floats from one plane to the next
  std::int64_t block_panels = 0, pixels = 0;  // whose sums are turned at once
  bool narrow = false;

  std::int64_t tile_pitch() const noexcept { return (block_panels + 1) * kPanelLanes; }
  std::int64_t turned_floats() const noexcept { return pixels * tile_pitch(); }
  std::int64_t widened_floats() const noexcept { return narrow ? taps * depth * kPanelLanes : 0; }
  std::int64_t weight_floats() const noexcept { return panels * depth * kPanelLanes; }
  std::int64_t ones() const noexcept { return taps * kPanelLanes; }
  std::int64_t tap_floats() const noexcept { return lines_of(6 * taps); }
  std::int64_t offsets() const noexcept { return lines_of(2 * taps); }  // floats of them
  std::int64_t thread_floats() const noexcept { return turned_floats() + panels * kPanelLanes * plane + offsets(); }
};

void set_outputs(Interval<std::int64_t> outputs, TapPlan& plan) noexcept {
  plan.first = outputs.begin;
  plan.outputs = outputs.size();
  plan.lanes = plan.taps * plan.outputs;
  plan.panels = ceil_div(plan.lanes, std::int64_t{kPanelLanes});
}

void set_rows(const Window& w, std::int64_t rows, TapPlan& plan) noexcept {
  plan.rows = rows;
  plan.in_rows = span_of(rows, w.kernel_h, w.stride_h, w.dilation_h);
  plan.plane = plane_floats(plan.in_rows * plan.in_columns);
}

bool fits(const TapPlan& plan) noexcept { return plan.lanes * plan.plane * kSumBytes <= kPlaneBytes; }

void set_columns(const Window& w, std::int64_t columns, TapPlan& plan) noexcept {
  plan.unit.out_columns = columns;
  plan.in_columns = span_of(columns, w.kernel_w, w.stride_w, w.dilation_w);
  set_rows(w, std::min(plan.unit.out_rows, w.stride_h), plan);
}

/// As many outputs a pass as leave the columns whole, but enough lanes for tiles; then columns, then rows.
void cut_area(const Window& w, const StepExtent& extent, TapPlan& plan) noexcept {
  constexpr std::int64_t kLeastLanes = 64;
  const std::int64_t image_rows = std::min(extent.rows.size(), w.out_h), outputs = extent.channels.size();
  plan.unit.out_rows = ceil_div(image_rows, std::int64_t{std::max(1, extent.threads)});
  set_columns(w, w.out_w, plan);
  const std::int64_t most = std::max(std::int64_t{1}, tap_lanes(w) / plan.taps), least = std::min(most, ceil_div(kLeastLanes, plan.taps));
  plan.passes = ceil_div(outputs, std::clamp(kPlaneBytes / (plan.plane * kSumBytes) / plan.taps, least, most));
  set_outputs({0, ceil_div(outputs, plan.passes)}, plan);
  for (std::int64_t parts = 2; !fits(plan) && plan.unit.out_columns > kLeastColumns * w.stride_w; ++parts)
    set_columns(w, ceil_div(w.out_w, parts), plan);
  for (bool more = fits(plan); more && plan.rows < plan.unit.out_rows;) {
    const TapPlan before = plan;
    set_rows(w, std::min(plan.rows + w.stride_h, plan.unit.out_rows), plan);
    more = fits(plan);
    if (!more) plan = before;
  }
}

TapPlan plan_taps(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  TapPlan plan;
  plan.depth = conv.in_channels;
  plan.taps = conv.window.taps();
  plan.narrow = is_narrow(conv.weighted.panels.layout);
  cut_area(conv.window, extent, plan);
  constexpr std::int64_t kGranule = 6;  // tiles take two panels or three
  const std::int64_t fitting = kTapPanelBytes / (plan.depth * kPanelLanes * kSumBytes) / kGranule * kGranule;
  plan.block_panels = std::min(plan.panels, std::clamp(fitting, kGranule, kMostTapPanels));
  plan.pixels = std::max<std::int64_t>(2 * kMaxTileRows, kTileFloats / (plan.block_panels * kPanelLanes));
  return plan;
}

/// A tap, in the order of the panels.
struct Tap {
  std::int64_t phase = 0;     // of rows * phases of columns + of columns
  std::int64_t row = 0;       // of the input, from the output's place
  std::int64_t distance = 0;  // from a pixel of the first tap's plane to what the same output reads of this one
};

/// The workspace of a step: weights, ones, a panel as floats; then for each thread offsets, what is turned, and planes.
class TapRoom {
 public:
  TapRoom(const TapPlan& plan, std::byte* at) noexcept : plan_(plan), first_(reinterpret_cast<float*>(at)) {}
  float* weights() const noexcept { return first_; }
  float* ones() const noexcept { return first_ + plan_.weight_floats(); }
  float* widened() const noexcept { return ones() + plan_.ones(); }
  Tap* taps() const noexcept { return reinterpret_cast<Tap*>(widened() + plan_.widened_floats()); }
  std::int64_t* offsets(int thread) const noexcept {
    return reinterpret_cast<std::int64_t*>(widened() + plan_.widened_floats() + plan_.tap_floats() + thread * plan_.thread_floats());
  }
  float* turned(int thread) const noexcept { return reinterpret_cast<float*>(offsets(thread)) + plan_.offsets(); }
  float* planes(int thread) const noexcept { return turned(thread) + plan_.turned_floats(); }

  static Bytes bytes(const TapPlan& plan, int threads) noexcept {
    const std::int64_t shared = plan.weight_floats() + plan.ones() + plan.widened_floats() + plan.tap_floats();
    return Bytes(static_cast<std::uint64_t>(shared + std::max(1, threads) * plan.thread_floats()) * sizeof(float));
  }

 private:
  const TapPlan& plan_;
  float* first_;
};

/// Fills the weights of a room with those of a pass. Panels of the step: [tap][k][16].
void put_taps_beside(const KernelCall& call, const TapPlan& plan, const TileTable& tiles, const TapRoom& room) noexcept {
  const std::int64_t depth = plan.depth, panel_floats = depth * kPanelLanes, end = plan.first + plan.outputs;
  const std::int64_t spare = plan.panels * kPanelLanes - plan.lanes;
  float* const last = room.weights() + (plan.panels - 1) * panel_floats;
  for (std::int64_t k = 0; k < depth && spare > 0; ++k) std::fill_n(last + (k + 1) * kPanelLanes - spare, spare, 0.0f);
  const TileJob job = make_job(call, {.first_panel = call.channels.begin / kPanelLanes, .panels = 1});
  for (std::int64_t begin = plan.first; begin < end;) {
    const std::int64_t panel = begin / kPanelLanes, until = std::min(end, (panel + 1) * kPanelLanes);
    const float* from = job.panels + panel * job.panel_floats;
    if (tiles.widen != nullptr) {
      tiles.widen(reinterpret_cast<const std::byte*>(from), job.k_group, 0, plan.taps * depth, room.widened());
      from = room.widened();
    }
    for (std::int64_t tap = 0; tap < plan.taps; ++tap, from += panel_floats)
      for (std::int64_t o = begin; o < until;) {
        const std::int64_t lane = tap * plan.outputs + o - plan.first, within = lane % kPanelLanes;
        const std::int64_t count = std::min(until - o, kPanelLanes - within);
        float* to = room.weights() + lane / kPanelLanes * panel_floats + within;
        const float* of_k = from + o % kPanelLanes;
        for (std::int64_t k = 0; k < depth; ++k, of_k += kPanelLanes, to += kPanelLanes)
          for (std::int64_t i = 0; i < count; ++i) to[i] = of_k[i];
        o += count;
      }
    begin = until;
  }
}

void set_taps(const Window& w, const TapPlan& plan, Tap* taps) noexcept {
  const TransposedAxis v = vertical(w), h = horizontal(w);
  std::int64_t tap = 0;
  for (std::int64_t phase_y = 0; phase_y < v.stride; ++phase_y)
    for (std::int64_t phase_x = 0; phase_x < h.stride; ++phase_x)
      for (std::int64_t ky = v.first_tap(phase_y); ky < v.kernel; ky += v.period())
        for (std::int64_t kx = h.first_tap(phase_x); kx < h.kernel; kx += h.period(), ++tap)
          taps[tap] = {phase_y * h.stride + phase_x, v.shift(ky), tap * plan.outputs * plan.plane + h.shift(kx)};
}

/// A unit: an area of outputs, by one thread.
class TapUnit {
 public:
  TapUnit(const KernelCall& call, const TileTable& tiles, const TapPlan& plan, const TapRoom& room, const OutArea& area,
          int thread) noexcept
      : call_(call),
        tiles_(tiles),
        w_(call.parameters<ConvolutionParameters>().window),
        plan_(plan),
        room_(room),
        area_(area),
        thread_(thread),
        offsets_(room.offsets(thread)),
        turned_(room.turned(thread)),
        planes_(room.planes(thread)),
        v_(vertical(w_)),
        h_(horizontal(w_)),
        first_column_(h_.first_input(area.columns.begin)) {
    columns_ = {std::max<std::int64_t>(0, first_column_), std::min(w_.in_w, h_.end_input(area.columns.end))};
    columns_.end = std::max(columns_.begin, columns_.end);
  }

  void run() noexcept {
    clear_margins();
    std::int64_t held = std::max<std::int64_t>(0, v_.first_input(area_.rows.begin));  // rows before it are in the planes, or not wanted
    for (std::int64_t y = area_.rows.begin; y < area_.rows.end; y += plan_.rows) {
      const RowRange rows{y, std::min(area_.rows.end, y + plan_.rows)};
      const std::int64_t end = std::min(w_.in_h, v_.end_input(rows.end));
      held = std::max(held, v_.first_input(rows.begin));
      if (held < end) multiply({held, end});
      held = std::max(held, end);
      for (std::int64_t row = rows.begin; row < rows.end; ++row) finish(row);
      pause_inside(call_, thread_);
    }
  }

 private:
  /// Rows of the input take turns in the planes.
  std::int64_t slot(std::int64_t row) const noexcept { return row % plan_.in_rows; }
  float* plane_row(std::int64_t row) const noexcept { return planes_ + slot(row) * plan_.in_columns; }

  /// The products of these rows of the input, to the planes.
  void multiply(Interval<std::int64_t> rows) const noexcept {
    const std::int64_t columns = columns_.size(), pixels = rows.size() * columns;
    if (columns <= 0) return;
    const std::int64_t no_offset = 0, parts = ceil_div(pixels, plan_.pixels);
    TileJob job{.panel_floats = plan_.depth * kPanelLanes, .segment_offsets = &no_offset, .depth = plan_.depth};
    for (std::int64_t panel = 0; panel < plan_.panels; panel += plan_.block_panels) {
      job.panels = room_.weights() + panel * job.panel_floats;
      job.panel_count = static_cast<int>(std::min(plan_.block_panels, plan_.panels - panel));
      for (std::int64_t part = 0; part < parts; ++part) {
        const auto some = even_part({0, pixels}, part, parts);
        run_tiles(rows.begin, some, job);
        turn(rows.begin, some, panel * kPanelLanes, job.panel_count * std::int64_t{kPanelLanes});
      }
    }
  }

  /// Columns of the planes that lie in the padding: no tile writes them.
  void clear_margins() const noexcept {
    const std::int64_t left = columns_.begin - first_column_, end = columns_.end - first_column_;
    if (left == 0 && end == plan_.in_columns) return;
    for (std::int64_t lane = 0; lane < plan_.lanes; ++lane)
      for (std::int64_t row = 0; row < plan_.in_rows; ++row) {
        float* const to = planes_ + lane * plan_.plane + row * plan_.in_columns;
        for (std::int64_t x = 0; x < left; ++x) to[x] = 0.0f;
        for (std::int64_t x = end; x < plan_.in_columns; ++x) to[x] = 0.0f;
      }
  }

  void run_tiles(std::int64_t row, Interval<std::int64_t> pixels, const TileJob& job) const noexcept {
    const RowView& in = call_.inputs[0].view;
    const int tile_rows = tiles_.runs_in_threes(job.panel_count) ? tiles_.rows_of_three : tiles_.rows;
    const std::int64_t count = ceil_div(pixels.size(), std::int64_t{tile_rows}), columns = columns_.size();
    std::int64_t y = pixels.begin / columns, x = pixels.begin % columns;
    float* out = turned_;
    for (std::int64_t tile = 0; tile < count; ++tile) {
      TileRows rows;
      rows.count = static_cast<int>(even_part(pixels, tile, count).size());
      for (int m = 0; m < rows.count; ++m, out += plan_.tile_pitch()) {
        rows.a[m] = in.at<float>(area_.image * w_.in_h + row + y, columns_.begin + x);
        rows.out[m] = out;
        if (++x < columns) continue;
        x = 0;
        ++y;
      }
      tiles_.panels(rows, job);
    }
  }

  /// Lanes from `lane` on of some pixels, to their planes.
  void turn(std::int64_t row, Interval<std::int64_t> pixels, std::int64_t lane, std::int64_t lanes) const noexcept {
    const std::int64_t columns = columns_.size();
    for (std::int64_t p = pixels.begin; p < pixels.end;) {
      const std::int64_t y = p / columns, x = p % columns, count = std::min(columns - x, pixels.end - p);
      tiles_.turn(turned_ + (p - pixels.begin) * plan_.tile_pitch(), plan_.tile_pitch(), count, lanes,
                  plane_row(row + y) + lane * plan_.plane + columns_.begin - first_column_ + x, plan_.plane);
      p += count;
    }
  }

  /// A row of outputs, phase after phase of its columns.
  void finish(std::int64_t y) noexcept {
    const std::int64_t q = y / w_.stride_h, first_phase = y % w_.stride_h * w_.stride_w;
    const Tap* const end = room_.taps() + plan_.taps;
    const Tap* tap = std::lower_bound(static_cast<const Tap*>(room_.taps()), end, first_phase,
                                      [](const Tap& t, std::int64_t phase) { return t.phase < phase; });
    for (std::int64_t phase_x = 0; phase_x < w_.stride_w; ++phase_x) {
      std::int64_t count = 0;
      for (; tap < end && tap->phase == first_phase + phase_x; ++tap) {
        const std::int64_t row = q + tap->row;
        if (row >= 0 && row < w_.in_h) offsets_[count++] = tap->distance + slot(row) * plan_.in_columns;
      }
      for (std::int64_t first = 0; first < plan_.outputs; first += kPanelLanes) finish_phase(y, first, count, phase_x);
    }
  }

  /// Outputs of the pass from `first` on, as many as the lanes of a panel.
  void finish_phase(std::int64_t y, std::int64_t first, std::int64_t taps, std::int64_t phase_x) noexcept {
    const auto qx = outputs_of_phase(area_.columns, phase_x, w_.stride_w);
    if (first != sums_of_) begin_sums(first);
    const std::span planes = std::span(sums_).first(static_cast<std::size_t>(job_.last_lanes));
    for (PixelPlanes& of_output : planes) of_output.taps = taps;
    const PixelArea pixels{.first = qx.begin - first_column_, .rows = 1, .columns = qx.size(), .pitch = qx.size()};
    const std::int64_t channel = call_.channels.begin + plan_.first + first;
    run_pixel_area(tiles_, planes, pixels, job_, [&](std::int64_t, std::int64_t column, std::int64_t count) {
      const std::int64_t x = (qx.begin + column) * w_.stride_w + phase_x;
      return pixel_outputs(call_, area_.image * w_.out_h + y, x, w_.stride_w, count, channel);
    });
  }
  void begin_sums(std::int64_t first) noexcept {
    sums_of_ = first;
    const int lanes = static_cast<int>(std::min<std::int64_t>(kPanelLanes, plan_.outputs - first));
    job_ = make_job(call_, {.first_panel = call_.channels.begin / kPanelLanes,
                            .panels = 1,
                            .channel = call_.channels.begin + plan_.first + first,
                            .last_lanes = lanes});
    for (int o = 0; o < lanes; ++o)
      sums_[static_cast<std::size_t>(o)] = {.first = planes_ + (first + o) * plan_.plane,
                                            .tap_offsets = offsets_,
                                            .depth = 1,
                                            .weights = room_.ones(),
                                            .first_lane = o,
                                            .end_lane = o + 1};
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const Window& w_;
  const TapPlan& plan_;
  const TapRoom& room_;
  const OutArea area_;
  const int thread_;
  std::int64_t* const offsets_;
  float* const turned_;
  float* const planes_;
  const TransposedAxis v_, h_;
  const std::int64_t first_column_;       // of the planes; it may lie in the padding
  Interval<std::int64_t> columns_{0, 0};  // of the input
  std::int64_t sums_of_ = -1;             // the first of the outputs whose sums are formed, as these say
  TileJob job_;
  std::array<PixelPlanes, kPanelLanes> sums_;
};

}  // namespace

Bytes transposed_taps_workspace(const ConvolutionParameters& conv, const StepExtent& extent) noexcept {
  return TapRoom::bytes(plan_taps(conv, extent), extent.threads);
}

void run_transposed_taps(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.parameters<ConvolutionParameters>();
  const TapPlan plan = plan_taps(conv, {call.rows, call.channels, thread_count(call)});
  const TapRoom room(plan, call.workspace);
  const OutAreas areas(call.rows, conv.window, plan.unit);
  std::fill_n(room.ones(), plan.ones(), 1.0f);
  for (std::int64_t pass = 0; pass < plan.passes; ++pass) {
    TapPlan of_pass = plan;
    set_outputs(even_part({0, call.channels.size()}, pass, plan.passes), of_pass);
    put_taps_beside(call, of_pass, tiles, room);
    set_taps(conv.window, of_pass, room.taps());
    for_each_unit(call, areas.count(),
                  [&](std::int64_t unit, int thread) noexcept { TapUnit(call, tiles, of_pass, room, areas[unit], thread).run(); });
  }
}

}  // namespace sluice::kernels::weighted
