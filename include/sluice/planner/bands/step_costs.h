// What steps in bands take and need, whatever the views (planner/bands/partitioned.h adds them up).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sluice/planner/cut/slice.h"
#include "sluice/planner/order/chain.h"
#include "sluice/planner/order/row_needs.h"
#include "sluice/planner/stream/problem.h"

namespace sluice::planner {

/// The memory that a position of the order needs.
struct Need {
  std::uint64_t activations = 0;
  std::uint64_t weights = 0;
  std::uint64_t all() const noexcept { return activations + weights; }
};

/// Seconds and bytes of steps, whatever the views: by node, rows and what is read from afar.
class StepCosts {
 public:
  /// `finest`: workspaces are those of the finest slices of channels, as if memory is short, and measured rates are believed as they are; else
  /// workspaces are those of all channels, and what measured rates do not say of bands is added.
  explicit StepCosts(const Problem& problem, bool finest = true)
      : problem_(problem), whole_(problem.graph->nodes.size()), finest_(finest) {}

  /// Figures of the whole node with its weights in the finest slices: its time, and what it needs besides blocks.
  struct Whole {
    double seconds = 0;
    double flops = 0;
    double far = 0;  // seconds that are due to large tensors
    Need own;
    bool known = false;
  };
  const Whole& whole(NodeId id) {
    Whole& whole = whole_[id.index()];
    if (whole.known) return whole;
    const RowRange rows{0, row_extents(problem_.graph->tensor(problem_.graph->node(id).outputs[0]).shape).rows};
    profiler::StepWork work = work_of(id, rows);
    profiler::set_run(*problem_.profile, problem_.kernels.run(), work);
    whole = {seconds(id, {0, rows, 0}), static_cast<double>(work.cost.flops), far_seconds(id, work), own_need(id, rows), true};
    return whole;
  }

  /// Bytes of a weight in memory: whole, or its finest slice.
  std::uint64_t held_bytes(WeightId id, bool finest) const {
    const model::Weight& weight = problem_.graph->weight(id);
    if (weight.always_resident) return 0;
    return (finest ? Bytes(problem_.graph->stretches_of(weight).front().raw_size) : weight.bytes).count() + kBlockBytes;
  }

  double seconds(NodeId id, const BandStep& band) {
    const Key key{id.index(), band.rows.size(), band.far_bytes, round_that_counts(band.round_bytes), band.there_bytes};
    if (const auto known = seconds_.find(key); known != seconds_.end()) return known->second;
    StepSpec step{band.position, {0, model::step_channels(*problem_.graph, problem_.graph->node(id))}};
    step.rows = band.rows;
    step.far_bytes = band.far_bytes;
    step.round_bytes = band.round_bytes;
    step.there_bytes = band.there_bytes;
    const double rated = price_step(*problem_.graph, problem_.kernels, id, step, *problem_.profile, problem_.threads);
    if (seconds_.size() >= kMostKept) seconds_.clear();  // a long search would hold more than the run of a small net
    return seconds_[key] = rated + again(id, band, rated);
  }

  /// The same for all rounds that make no difference (see `price_step` and `seconds_to_come_back`).
  std::uint64_t round_that_counts(std::uint64_t bytes) const noexcept {
    if (bytes <= kOwnCache) return std::min<std::uint64_t>(bytes, 1);
    return std::min(std::max(bytes, profiler::kSharedCachesKeep), problem_.kernels.run().bytes);
  }

  /// `sliced`: its steps may take a part of the channels.
  std::uint64_t workspace(NodeId id, RowRange rows, bool sliced) const {
    constexpr std::int64_t kFinestChannels = 2 * model::kPanelLanes;
    const std::int64_t all = model::step_channels(*problem_.graph, problem_.graph->node(id));
    return problem_.kernels.workspace_bytes(id,
                                            {rows, {0, sliced && finest_ ? std::min(all, kFinestChannels) : all}, problem_.threads, false});
  }

 private:
  /// What rates do not say of a band, which takes `rated` seconds by them: what it reads whole comes again from a shared cache for each band.
  double again(NodeId id, const BandStep& band, double rated) {
    const RowRange rows = band.rows;
    const model::Node& node = problem_.graph->node(id);
    const std::int64_t all = row_extents(problem_.graph->tensor(node.outputs[0]).shape).rows;
    const bool measured = !problem_.profile->kernels.empty();
    if (rows.size() >= all || (measured && finest_)) return 0;
    // An attention turns its keys again, from a cache (64 KiB took 3.4 us on an AMD Zen 5), and reads its values no more often than whole.
    const double tensor_speed = node.op == model::OpKind::kAttention ? 4 : 1;
    double tensors = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const model::Tensor& in = problem_.graph->tensor(node.inputs[i]);
      if (!in.weight.valid() && !row_relation(*problem_.graph, node, i, Connected::kDeclared))
        tensors += static_cast<double>(in.bytes().count());
    }
    const double share = static_cast<double>(rows.size()) / static_cast<double>(all);
    const double bytes = (1 - share)  // the first band's reading is that of the whole node
                         * (tensors / tensor_speed + (measured ? 0 : weights_again(id)));
    const double slow = measured ? slower_than_promised(id, band, share, rated) : slow_to_start(rated);
    return slow + bytes / problem_.profile->memory_bytes_per_second * problem_.profile->compute_slowdown;
  }

  /// Assumed rates do not say that weights which a core's own cache does not keep come again: faster than memory gives them, but those that
  /// each band transforms, as Winograd's.
  double weights_again(NodeId id) const {
    constexpr double kOwn = 512u << 10;  // that stay near, beside rows
    double weights = 0;
    for (WeightId w : problem_.graph->node(id).weights) weights += static_cast<double>(problem_.graph->weight(w).bytes.count());
    return weights > kOwn ? weights / (problem_.kernels[id.index()]->row_granule > 1 ? 1.2 : 8 * ahead(id)) : 0;
  }

  /// How much less a dense layer waits for weights from a shared cache than others do: it walks through them once for all rows of a band, and the
  /// processor fetches them ahead.
  double ahead(NodeId id) const noexcept { return problem_.graph->node(id).op == model::OpKind::kDense ? 3 : 1; }

  /// Nor that steps which take little more than their dispatch do not come to speed. Set on an AMD Zen 5: with 0.4 of what is missing to it,
  /// DenseNet-121 took 7 % longer than without bands (1 % less was predicted), `cells` with 0.2 of it 7 % (2 % less); now 3 and 1 %.
  double slow_to_start(double rated) const noexcept {
    constexpr double kLeastDispatches = 10;
    return std::max(0.0, kLeastDispatches * problem_.profile->step_overhead_seconds - rated);
  }

  /// Measured rates promise savings, and a search picks what is promised most: in `bert` dense layers in three bands 10 % less, which took 4 %
  /// more. A band takes no less than its share of the whole node's work, and a dispatch of its own: without that 56 bands of a concatenation
  /// counted no more than the whole, and in DenseNet-121 they took twice as long.
  double slower_than_promised(NodeId id, const BandStep& band, double share, double rated) {
    constexpr double kStart = 0.8e-6;  // until a step's code is near and its branches are known
    const Whole& all = whole(id);
    const profiler::StepWork work = work_of(id, band.rows);
    // The kernel's own formula counts what each band does again: weights that Winograd transforms, tiles that its rows do not fill.
    const double to_do = share_to_do(*problem_.graph, problem_.graph->node(id), band.rows, band.there_bytes);
    const double done = (all.flops > 0 ? std::max(share, static_cast<double>(work.cost.flops) / all.flops) : share) * to_do;
    // What the fit says that tensors cost which a core's own cache does not hold, as far as the band has none of them.
    const double rows = to_do * static_cast<double>(work.cost.input_bytes + work.cost.output_bytes);
    const double saved =
        to_do * std::min(all.far, all.seconds) * std::max(0.0, 1 - static_cast<double>(band.far_bytes) / std::max(rows, 1.0));
    const double cold =
        problem_.profile->step_overhead_seconds + kStart * problem_.profile->compute_slowdown + seconds_to_come_back(id, band);
    return std::max(0.0, done * all.seconds - share * saved + (1 - share) * cold - rated);
  }

  /// Where all nodes of a chain touch more in a round than a core's own cache holds, a band finds its weights and workspace in a shared one.
  double seconds_to_come_back(NodeId id, const BandStep& band) const {
    constexpr double kShared = 8;  // times as fast as memory, as far as a step waits for it
    if (band.round_bytes <= kOwnCache) return 0;
    double bytes = static_cast<double>(workspace(id, band.rows, false));
    for (WeightId w : problem_.graph->node(id).weights) bytes += static_cast<double>(problem_.graph->weight(w).bytes.count()) / ahead(id);
    return bytes / (kShared * problem_.profile->memory_bytes_per_second) * problem_.profile->compute_slowdown;
  }

  /// What a node's large tensors cost, by the fit, but no more than bringing them from memory: a fit of few samples blames them for what has other
  /// causes (4.9 GB/s for direct convolutions in one profile of a Xeon, by which a U-Net's bands took 22 % longer than none).
  double far_seconds(NodeId id, const profiler::StepWork& work) const noexcept {
    const double from_memory =
        profiler::detail::bytes_beyond(work) / problem_.profile->memory_bytes_per_second * problem_.profile->compute_slowdown;
    return std::min(profiler::seconds_of_large_tensors(*problem_.profile, used(id), work), from_memory);
  }

  profiler::UsedKernel used(NodeId id) const { return {problem_.kernels[id.index()]->id, profiler::KernelUse::kRun}; }

  profiler::StepWork work_of(NodeId id, RowRange rows) const {
    const model::Node& node = problem_.graph->node(id);
    const kernels::StepExtent extent{rows, {0, model::step_channels(*problem_.graph, node)}, problem_.threads, false};
    return profiler::work_of(*problem_.kernels[id.index()], profiler::KernelUse::kRun, *problem_.graph, node, extent);
  }

  struct Key {
    std::size_t node;
    std::int64_t rows;
    std::uint64_t far_bytes, round_bytes, there_bytes;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const noexcept {
      return (k.node * 0x9e3779b97f4a7c15u) ^
             (static_cast<std::size_t>(k.rows) * 0xc2b2ae3d27d4eb4fu + k.far_bytes + k.round_bytes + k.there_bytes * 31);
    }
  };
  Need own_need(NodeId id, RowRange rows) const {
    const model::Node& node = problem_.graph->node(id);
    const kernels::KernelDescriptor& kernel = *problem_.kernels[id.index()];
    std::vector<WeightId> reads;
    model::weights_read_by(*problem_.graph, node, reads);
    const bool cut = cuts_channels(*problem_.graph, node, kernel);
    const std::size_t in_step = weight_turns(*problem_.graph, node, kernel) > 0 ? model::count_own_weights(*problem_.graph, node) : 0;
    Need need{workspace(id, rows, cut), problem_.kernels.body(id).window};
    for (std::size_t i = 0; i < in_step && node.subgraph_count == 0; ++i)
      need.weights = std::max(need.weights, model::least_piece(*problem_.graph, problem_.graph->weight(reads[i])).count());
    for (std::size_t i = in_step; i < reads.size(); ++i) need.weights += held_bytes(reads[i], cut && i == 0);
    return need;
  }

  static constexpr std::size_t kMostKept = 4096;
  static constexpr std::uint64_t kOwnCache = 1u << 20;

  const Problem& problem_;
  std::unordered_map<Key, double, Hash> seconds_;
  std::vector<Whole> whole_;  // by node
  const bool finest_;
};

}  // namespace sluice::planner
