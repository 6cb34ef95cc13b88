#include "src/kernels/weighted/direct.h"

#include "src/kernels/weighted/blocks.h"
#include "src/kernels/weighted/strip.h"

namespace sluice::kernels::weighted {
namespace {

/// How a step is cut into units. A function of node and extent alone, so that `workspace` and `run` agree.
struct Cut {
  StripPlan strip;
  Blocks blocks;
};

Cut cut_step(const model::Graph& graph, const model::Node& node, const StepExtent& extent) noexcept {
  const auto& conv = node.as<model::ConvAttributes>();
  Blocks blocks(graph.weight(node.weights[0]), extent.channels, conv.out_channels, conv.out_channels / conv.groups, kBlockBytes, 2);
  const StripPlan strip = plan_strips(conv.window, conv.in_channels / conv.groups, extent, blocks.count());
  if (extent.threads > 1) {
    const std::int64_t areas = OutAreas(extent.rows, conv.window, strip).count();
    if (areas * blocks.count() % extent.threads != 0 && areas * blocks.count() < 8 * extent.threads)
      blocks.set_count(ceil_div(blocks.count(), extent.threads) * extent.threads);
  }
  return {strip, blocks};
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
  const OutAreas areas(call.rows, w, plan);
  const Strips strips(call.workspace, plan, threads);
  set_segments(w, plan, strips.segment_offsets());

  for_each_unit(call, areas.count() * cut.blocks.count(), [&](std::int64_t unit, int thread) noexcept {
    const OutArea area = areas[unit % areas.count()];
    const Block block = cut.blocks[unit / areas.count()];
    float* const strip = strips.strip(thread);
    if (!strips.holds(thread, block.group * areas.count() + unit % areas.count())) {
      fill_strip(call.inputs[0].view, w, strip_area(w, area), block.group * plan.depth, plan, strip);
    }
    TileJob job = make_job(call, block);
    job.segment_offsets = strips.segment_offsets();
    job.segments = plan.segments;
    job.depth = w.taps() / plan.segments * plan.depth;
    for_each_tile(call, w, area, plan, strip, tiles.rows, block.channel, job, tiles.panels);
  });
}

}  // namespace sluice::kernels::weighted
