#include "src/kernels/weighted/direct.h"

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

constexpr std::int64_t input_span(std::int64_t outputs, std::int64_t stride, std::int64_t kernel, std::int64_t dilation) noexcept {
  return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

/// How a step is cut into units. A function of node and extent alone, so that `workspace` and `run` agree.
struct Cut {
  StripPlan strip;
  Blocks blocks;
};

void set_area(StripPlan& plan, const model::Window& w, std::int64_t rows, std::int64_t columns) noexcept {
  plan.out_rows = rows;
  plan.out_columns = columns;
  plan.in_rows = input_span(rows, w.stride_h, w.kernel_h, w.dilation_h);
  plan.in_columns = input_span(columns, w.stride_w, w.kernel_w, w.dilation_w);
}

// As many rows as fit `kStripBytes`; if not even one does, fewer columns, but enough for a full tile of any instruction set.
StripPlan plan_strip(const model::ConvAttributes& conv, RowRange rows) noexcept {
  const model::Window& w = conv.window;
  StripPlan plan;
  plan.depth = conv.in_channels / conv.groups;
  plan.segments = w.dilation_w == 1 ? w.kernel_h : w.taps();
  const auto fits = [&] { return plan.strip_floats() * static_cast<std::int64_t>(sizeof(float)) <= kStripBytes; };
  std::int64_t columns = w.out_w;
  set_area(plan, w, 1, columns);
  while (!fits() && columns > 2 * kMaxTileRows) {
    columns = ceil_div(columns, 2);
    set_area(plan, w, 1, columns);
  }
  const std::int64_t most = std::min(rows.size(), w.out_h);
  while (plan.out_rows < most && fits()) set_area(plan, w, plan.out_rows + 1, columns);
  if (!fits() && plan.out_rows > 1) set_area(plan, w, plan.out_rows - 1, columns);
  set_area(plan, w, ceil_div(most, ceil_div(most, plan.out_rows)), columns);
  return plan;
}

Cut cut_step(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const auto& conv = node.as<model::ConvAttributes>();
  const model::Window& w = conv.window;
  Cut cut{plan_strip(conv, extent.rows),
          Blocks(graph.weight(node.weights[0]), extent.channels, conv.out_channels, conv.out_channels / conv.groups, kBlockBytes, 2)};
  const auto units = [&] {
    return OutAreas(extent.rows, w.out_h, w.out_w, cut.strip.out_rows, cut.strip.out_columns).count() * cut.blocks.count();
  };
  // An even share for each thread: fewer rows a strip, as long as a strip fills a few tiles; then more blocks.
  if (extent.threads > 1 && units() < 8 * extent.threads) {
    std::int64_t parts = ceil_div(std::min(extent.rows.size(), w.out_h), cut.strip.out_rows);
    while (units() % extent.threads != 0 && cut.strip.out_rows * cut.strip.out_columns > 4 * kMaxTileRows && cut.strip.out_rows > 1) {
      ++parts;
      set_area(cut.strip, w, ceil_div(std::min(extent.rows.size(), w.out_h), parts), cut.strip.out_columns);
    }
    if (units() % extent.threads != 0) cut.blocks.set_count(ceil_div(cut.blocks.count(), extent.threads) * extent.threads);
  }
  return cut;
}

void set_segments(const StripPlan& plan, const model::Window& w, std::int64_t* offsets) noexcept {
  const std::int64_t row = w.dilation_h * plan.in_columns * plan.depth;
  for (std::int64_t s = 0; s < plan.segments; ++s) {
    const std::int64_t ky = plan.segments == w.kernel_h ? s : s / w.kernel_w;
    const std::int64_t kx = plan.segments == w.kernel_h ? 0 : s % w.kernel_w;
    offsets[s] = ky * row + kx * w.dilation_w * plan.depth;
  }
}

}  // namespace

bool direct_supports(const model::Graph& graph, const model::Node& node) noexcept {
  if (!tensors_and_weights_fit(graph, node, model::WeightLayout::kPanels)) return false;
  const auto& conv = node.as<model::ConvAttributes>();
  return conv.groups == 1 || conv.out_channels / conv.groups >= model::kPanelLanes;
}

Bytes direct_workspace(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  return strip_workspace(cut_step(graph, node, extent).strip, extent.threads);
}

void run_direct(const KernelCall& call, const TileTable& tiles) noexcept {
  const auto& conv = call.node->as<model::ConvAttributes>();
  const model::Window& w = conv.window;
  const int threads = thread_count(call);
  const Cut cut = cut_step(*call.graph, *call.node, {call.rows, call.channels, threads});
  const StripPlan& plan = cut.strip;
  const OutAreas areas(call.rows, w.out_h, w.out_w, plan.out_rows, plan.out_columns);
  const Strips strips(call.workspace, plan, threads);
  set_segments(plan, w, strips.segment_offsets());

  for_each_unit(call, areas.count() * cut.blocks.count(), [&](std::int64_t unit, int thread) noexcept {
    const OutArea area = areas[unit % areas.count()];
    const Block block = cut.blocks[unit / areas.count()];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, block.group * areas.count() + unit % areas.count())) {
      const StripArea source{area.image, area.rows.begin * w.stride_h - w.pad_top, area.columns.begin * w.stride_w - w.pad_left,
                             input_span(area.rows.size(), w.stride_h, w.kernel_h, w.dilation_h),
                             input_span(area.columns.size(), w.stride_w, w.kernel_w, w.dilation_w)};
      fill_strip(call.inputs[0].view, w.in_h, source, block.group * plan.depth, plan, strip);
    }
    TileJob job = make_job(call, block);
    job.segment_offsets = strips.segment_offsets();
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * plan.depth;
    const std::int64_t columns = area.columns.size();
    const std::int64_t pixels = area.rows.size() * columns;
    const std::int64_t count = ceil_div(pixels, tiles.rows);
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const auto part = even_part({0, pixels}, tile, count);
      TileRows rows;
      rows.count = static_cast<int>(part.size());
      std::int64_t y = part.begin / columns;
      std::int64_t x = part.begin % columns;
      for (int m = 0; m < rows.count; ++m) {
        rows.a[m] = strip + (y * w.stride_h * plan.in_columns + x * w.stride_w) * plan.depth;
        set_output(call, job, area.image * w.out_h + area.rows.begin + y, area.columns.begin + x, block.channel, m, rows);
        if (++x == columns) {
          x = 0;
          ++y;
        }
      }
      tiles.panels(rows, job);
    }
  });
}

}  // namespace sluice::kernels::weighted
