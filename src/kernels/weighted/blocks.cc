#include "src/kernels/weighted/blocks.h"

namespace sluice::kernels::weighted {
namespace {

/// A single panel that granules of three would leave stays with the last of them.
bool leaves_one(std::int64_t panels, std::int64_t granule) noexcept { return granule == 3 && panels % 3 == 1 && panels > 1; }
std::int64_t granules_of(std::int64_t panels, std::int64_t granule) noexcept {
  return leaves_one(panels, granule) ? panels / 3 : ceil_div(panels, granule);
}

}  // namespace

std::int64_t granule_for_threads(std::int64_t panels, std::int64_t most, std::int64_t least, int threads) noexcept {
  const auto longest_share = [&](std::int64_t granule) {
    const bool with_last = leaves_one(panels, granule);
    return std::min(panels, ceil_div(granules_of(panels, granule), std::int64_t{threads}) * granule + (with_last ? 1 : 0));
  };
  std::int64_t best = most;
  for (std::int64_t granule = most - 1; threads > 1 && granule >= least; --granule)
    if (longest_share(granule) < longest_share(best)) best = granule;
  return best;
}

Blocks::Blocks(const PanelGeometry& geometry, ChannelRange channels, std::int64_t outputs, std::int64_t outputs_per_group,
               std::int64_t block_bytes, std::int64_t granule) noexcept
    : channels_(channels),
      panels_(panels_of_channels(channels, outputs_per_group)),
      outputs_(outputs),
      per_group_(outputs_per_group),
      granule_(granule),
      granules_(granules_of(panels_.size(), granule)),
      count_(1) {
  if (are_groups()) {
    count_ = (channels.end - 1) / per_group_ - channels.begin / per_group_ + 1;
  } else {
    const auto granule_bytes = static_cast<std::int64_t>(geometry.panel_bytes.count()) * granule;
    set_count(ceil_div(granules_, std::max<std::int64_t>(1, block_bytes / granule_bytes)));
  }
}

void Blocks::set_count(std::int64_t count) noexcept {
  if (are_groups()) return;
  count_ = std::clamp<std::int64_t>(count, 1, granules_);
}

void Blocks::share(int threads) noexcept {
  if (threads == 1 || count_ >= 8 * threads) return;
  std::int64_t best = ceil_div(count_, threads) * threads;
  const auto of = [&](std::int64_t count) {
    return weighted::unevenness(granules_, std::clamp<std::int64_t>(count, 1, granules_), threads);
  };
  for (std::int64_t count = best + threads; of(best) > kEven && count <= std::min<std::int64_t>(granules_, 8 * threads); count += threads)
    if (of(count) < of(best)) best = count;
  set_count(best);
}

Block Blocks::operator[](std::int64_t i) const noexcept {
  PanelRange p;
  if (are_groups()) {
    const std::int64_t group = channels_.begin / per_group_ + i;
    const ChannelRange c{std::max(channels_.begin, group * per_group_), std::min(channels_.end, (group + 1) * per_group_)};
    p = panels_of_channels(c, per_group_);
  } else {
    const auto part = even_part({0, granules_}, i, count_);
    p = {panels_.begin + part.begin * granule_, i + 1 == count_ ? panels_.end : panels_.begin + part.end * granule_};
  }
  const ChannelRange c = channels_of_panels(p, per_group_, outputs_);
  return {p.begin, p.size(), c.begin / per_group_, c.begin, static_cast<int>(c.size() - (p.size() - 1) * kPanelLanes)};
}

TileJob make_job(const KernelCall& call, const Block& block) noexcept {
  const WeightedParameters& weighted = weighted_of(call);
  const WeightOperand& weight = call.weights[0];
  const auto panel_bytes = static_cast<std::int64_t>(weighted.panels.panel_bytes.count());
  TileJob job;
  job.panels = reinterpret_cast<const float*>(weight.data + (block.first_panel - weight.panels.begin) * panel_bytes);
  job.panel_floats = panel_bytes / static_cast<std::int64_t>(sizeof(float));
  job.next_panel_floats = job.panel_floats;
  job.panel_count = static_cast<int>(block.panels);
  job.last_lanes = block.last_lanes;
  if (weighted.epilogue.has_bias) job.bias = reinterpret_cast<const float*>(call.weights[1].data) + block.channel;
  job.has_residual = weighted.epilogue.has_residual;
  job.activation = weighted.epilogue.activation;
  job.outputs_are_far = is_far(call.outputs[0].view);
  job.k_group = weighted.panels.layout.k_group;
  job.values = weighted.panels.values;
  return job;
}

bool shares_pixels(const WeightedParameters& weighted, const StepExtent& extent) noexcept {
  const CostFeatures cost = weighted_cost(weighted, extent);
  return cost.weight_bytes <= 4 * (cost.input_bytes + cost.output_bytes);
}

bool blocks_are_uneven(Blocks blocks, std::int64_t pixels, int threads) noexcept {
  constexpr std::int64_t kLeastPixels = 64;  // of a weight's 4 bytes, which come from L3 in the time of some 8 products
  if (threads == 1 || pixels < kLeastPixels) return false;
  blocks.share(threads);
  return blocks.unevenness(threads) > kEven;
}

CostFeatures weighted_cost(const WeightedParameters& weighted, const StepExtent& extent) noexcept {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const PanelGeometry& geometry = weighted.panels;
  const PanelRange panels = panels_of_channels(extent.channels, geometry.outputs_per_group);
  const std::uint64_t outputs = unsigned_of(extent.rows.size() * weighted.out_pixels * extent.channels.size());
  CostFeatures cost;
  // A panel holds 16 lanes of so many values: as many products an output.
  const bool narrow = is_narrow(geometry.layout);
  cost.flops = outputs * (narrow ? unsigned_of(geometry.values) : geometry.panel_bytes.count() / (kPanelLanes * sizeof(float))) * 2;
  cost.weight_bytes = unsigned_of(panels.size()) * geometry.panel_bytes.count();
  cost.output_bytes = outputs * sizeof(float);
  const std::uint64_t whole_input = unsigned_of(weighted.input_elements) * sizeof(float);
  cost.input_bytes = weighted.out_rows == 0 ? 0 : whole_input * unsigned_of(extent.rows.size()) / unsigned_of(weighted.out_rows);
  if (weighted.epilogue.has_residual) cost.input_bytes += cost.output_bytes;
  return cost;
}

}  // namespace sluice::kernels::weighted
