// Pass: which weights are kept transformed (Winograd) in place of their raw panels.
//
//     raw      |----|                 read in each period, or kept: the kernel transforms it again in every run
//     derived  |----------------|     kept only: transformed once, in the prologue; larger (4 times, for 3x3), and the run is shorter
//
// A transform that does not stay would have to be made again in each period, which is what the kernel does by itself in its workspace: so
// derived means resident. Worth it where memory is left when the raw weights are in; the seconds that it saves for each byte that it costs
// decide the order.
// Invariant: only weights that one node reads, in panels, and that are not in the resident segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/core/units.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/select_kernels.h"
#include "sluice/profiler/latency.h"

namespace sluice::planner {

/// A buffer of the transforms of `panels`, with the tail that kernels may read.
inline std::uint64_t derived_bytes(const KernelChoice& kernels, NodeId id, PanelRange panels) {
  const std::uint64_t each = kernels.derived_panel_bytes(id);
  return align_up(each * static_cast<std::uint64_t>(panels.end - panels.begin) + kernels::kReadTail.count(), model::kWeightAlignment);
}

/// A node that could work from a transform, and what that brings.
struct DeriveOption {
  std::size_t position = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t derived_bytes = 0;
  double gain = 0;  // seconds of compute saved in each period; positive
};

/// The rows of a position's steps: one step of all, or as many as a chain has for it, mostly alike.
struct StepsOfRows {
  RowRange first;
  double count = 1;
};
inline StepsOfRows steps_of_rows(const std::vector<Chain>& chains, std::size_t position, std::int64_t rows) {
  const Chain* chain = chain_of(chains, position);
  StepsOfRows steps{{0, rows}, 0};
  if (chain != nullptr)
    for (const BandStep& step : chain->steps) {
      if (step.position != position) continue;
      if (step.rows.begin == 0) steps.first = step.rows;
      ++steps.count;
    }
  steps.count = std::max(steps.count, 1.0);
  return steps;
}

/// All of them, in execution order. Each band of a chain gains.
inline std::vector<DeriveOption> derive_options(const model::Graph& graph, const KernelChoice& kernels, const std::vector<NodeId>& order,
                                                const profiler::DeviceProfile& profile, int threads,
                                                const std::vector<Chain>& chains = {}) {
  std::vector<std::uint32_t> readers(graph.weights.size(), 0);
  std::vector<WeightId> reads;
  for (NodeId id : order) {
    reads.clear();
    model::weights_read_by(graph, graph.node(id), reads);
    for (WeightId w : reads) ++readers[w.index()];
  }
  std::vector<DeriveOption> options;
  for (std::size_t p = 0; p < order.size(); ++p) {
    const model::Node& node = graph.node(order[p]);
    const kernels::KernelDescriptor& kernel = *kernels[order[p].index()];
    if (kernel.derived_panel_bytes == nullptr || node.weights.empty()) continue;
    // Between slices of a block that is stored whole no other step comes.
    if (kernels.passing() != nullptr && kernels.passing()->stores(order[p])) continue;
    const model::Weight& weight = graph.weight(node.weights.front());
    if (weight.always_resident || readers[node.weights.front().index()] > 1) continue;
    const RowExtents whole = row_extents(graph.tensor(node.outputs[0]).shape);
    const StepsOfRows bands = steps_of_rows(chains, p, whole.rows);
    kernels::StepExtent extent{bands.first, {0, whole.channels}, threads};
    const auto work_of = [&](profiler::KernelUse use) {
      profiler::StepWork work = profiler::work_of(kernel, use, graph, node, extent);
      profiler::set_run(profile, kernels.run(), work);
      return work;
    };
    const auto seconds = [&](profiler::KernelUse use) { return profiler::step_seconds(profile, {kernel.id, use}, node, work_of(use)); };
    const double raw = seconds(profiler::KernelUse::kRun);
    extent.derived = true;
    constexpr profiler::KernelUse kUse = profiler::KernelUse::kRunDerived;
    const double derived = seconds(kUse);
    // Of few samples the fit is unsure: it promised bands of ResNet-50 and of a U-Net a third less, where reading four times the bytes took
    // them half as long again.
    if (derived * (1 + profiler::relative_error(profile, {kernel.id, kUse}, work_of(kUse).variant)) < raw)
      options.push_back({p, weight.bytes.count(), derived_bytes(kernels, order[p], {0, weight.panels}), (raw - derived) * bands.count});
  }
  return options;
}

/// By position, what to keep transformed when the raw weights are kept anyway and `spare` bytes are left: most seconds a byte first.
inline std::vector<bool> choose_derived(std::vector<DeriveOption> options, std::size_t positions, std::uint64_t spare) {
  const auto extra = [](const DeriveOption& o) { return std::max<std::uint64_t>(o.derived_bytes, o.raw_bytes + 1) - o.raw_bytes; };
  sluice::stable_sort(options.begin(), options.end(), [&](const DeriveOption& a, const DeriveOption& b) {
    return a.gain * static_cast<double>(extra(b)) > b.gain * static_cast<double>(extra(a));
  });
  std::vector<bool> chosen(positions, false);
  for (const DeriveOption& option : options) {
    if (extra(option) > spare) continue;
    spare -= extra(option);
    chosen[option.position] = true;
  }
  return chosen;
}

/// By position, what to keep transformed in `bytes`, where a byte that is kept for something else saves `price` seconds: options whose gain
/// is worth the bytes that they take beyond their raw weights, most gain an extra byte first.
inline std::vector<bool> choose_derived_at(std::vector<DeriveOption> options, std::size_t positions, std::uint64_t bytes, double price) {
  const auto extra = [](const DeriveOption& o) {
    return static_cast<double>(std::max<std::uint64_t>(o.derived_bytes, o.raw_bytes + 1) - o.raw_bytes);
  };
  std::erase_if(options, [&](const DeriveOption& o) { return o.gain < price * extra(o); });
  sluice::stable_sort(options.begin(), options.end(),
                      [&](const DeriveOption& a, const DeriveOption& b) { return a.gain * extra(b) > b.gain * extra(a); });
  std::vector<bool> chosen(positions, false);
  for (const DeriveOption& option : options) {
    if (option.derived_bytes > bytes) continue;
    bytes -= option.derived_bytes;
    chosen[option.position] = true;
  }
  return chosen;
}

}  // namespace sluice::planner
