// A graph with regions in bands: its views, its chains, what each place of the order then needs of memory and time. What the search
// (planner/bands/memory_partition.h) compares.
//
//     bytes |  ..                     activations   blocks that live, and a workspace; all of a region's at each of its places
//           |  ##  ..  ##             weights       the finest slices; what a region holds, and of what it reads again the finest slice
//           +--------------- order
//
// Invariant: a place is said to need what it takes at least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/bands/band_chain.h"
#include "sluice/planner/bands/region.h"
#include "sluice/planner/bands/step_costs.h"
#include "sluice/planner/bands/under_output.h"
#include "sluice/planner/place/layout.h"
#include "sluice/planner/stream/problem.h"

namespace sluice::planner {

class Partitioned {
 public:
  /// `problem` is uncut: its views have no chains, and are those of `order` if no tensor is set apart. Regions come in order.
  Partitioned(const Problem& problem, const Uses& uses, const std::vector<NodeId>& order, bool keep_inputs, std::vector<Region> regions,
              StepCosts& costs)
      : problem_(problem), order_(order), costs_(costs), regions_(std::move(regions)) {
    std::vector<bool> apart(problem.graph->tensors.size(), false);
    for (const Region& region : regions_) {
      if (region.rings) uses.mark_inside(region, apart);
      in_place_.push_back(region.in_place && uses.keep_in_place(region, problem.views.tensors, apart));
    }
    views_ = assign_views(*problem.graph, problem.kernels, order, keep_inputs, apart);
    cutter_.emplace(*problem.graph, problem.kernels, views_, Connected::kDeclared);
    place_of_.assign(order.size(), kNoStep);
    std::vector<std::size_t> position(problem.graph->nodes.size(), kNoStep);
    for (std::size_t p = 0; p < views_.order.size(); ++p) position[views_.order[p].index()] = p;
    for (std::size_t i = 0; i < order.size(); ++i) place_of_[i] = position[order[i].index()];
    for (const Region& region : regions_) chains_.push_back(cut(region));
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  const std::vector<Region>& regions() const noexcept { return regions_; }
  bool valid() const noexcept {
    return std::all_of(chains_.begin(), chains_.end(), [](const auto& chain) { return chain.has_value(); });
  }

  /// Does something in it stay in the place of what it reads?
  bool works_in_place(std::size_t which) const noexcept { return in_place_[which]; }

  /// The same regions, with region `which` cut in another way.
  void set_bands(std::size_t which, std::int64_t bands) {
    regions_[which].bands = bands;
    chains_[which] = cut(regions_[which], chains_[which] ? std::move(chains_[which]->chain.steps) : std::vector<BandStep>());
  }
  /// And for what it reads again. False where that is the same weights.
  bool set_reread(std::size_t which, std::uint64_t above) {
    regions_[which].reread_above = above;
    if (!chains_[which]) return false;
    std::vector<bool> former = std::move(chains_[which]->chain.reads_again);
    mark_reread(*chains_[which], above);
    return former != chains_[which]->chain.reads_again;
  }

  /// The rows of the region's highest map: more bands than these change nothing.
  std::int64_t most_rows(std::size_t which) const {
    const auto [first, end] = positions_of(regions_[which]);
    std::int64_t most = 0;
    for (std::size_t p = first; p < end; ++p) most = std::max(most, cutter_->all_rows(p).end);
    return most;
  }

  /// Concatenations without a step (one buffer for all their parts) that are alive at a position of the order: regions around them, which
  /// set their parts apart, shorten their lives. Places of the order.
  std::vector<std::size_t> joins_living_at(std::size_t place) const {
    std::vector<std::size_t> joins;
    const auto at = static_cast<std::int64_t>(place_of_[place]);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const model::Node& join = problem_.graph->node(order_[i]);
      if (join.op != model::OpKind::kConcat || place_of_[i] != kNoStep) continue;
      const plan::TensorPlacement& whole = views_.tensors[join.outputs[0].index()];
      if (!whole.buffer.valid()) continue;
      const Block& block = views_.blocks[whole.buffer.index()];
      if (block.first <= at && at <= block.last) joins.push_back(i);
    }
    return joins;
  }

  /// Indexed by position of the order; nothing for a node without steps.
  std::vector<Need> needs() const {
    std::vector<Block> blocks = views_.blocks;
    for (const auto& banded : chains_) cutter_->apply(*banded, blocks);
    std::vector<Need> by_position = live(blocks);
    std::size_t p = 0;
    for (const auto& banded : chains_) {
      for (; p < banded->chain.first; ++p) add_own(p, by_position[p]);
      add_chain(*banded, by_position);
      p = banded->chain.end;
    }
    for (; p < views_.order.size(); ++p) add_own(p, by_position[p]);
    std::vector<Need> needs(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (place_of_[i] != kNoStep) needs[i] = by_position[place_of_[i]];
    return needs;
  }

  /// Of all steps.
  double seconds() const {
    double sum = 0;
    std::size_t p = 0;
    for (const auto& banded : chains_) {
      for (; p < banded->chain.first; ++p) sum += whole_seconds(p);
      for (const BandStep& step : banded->chain.steps) sum += costs_.seconds(views_.order[step.position], step);
      p = banded->chain.end;
    }
    for (; p < views_.order.size(); ++p) sum += whole_seconds(p);
    return sum;
  }

  /// By place: of whole nodes.
  std::vector<double> whole_seconds() const {
    std::vector<double> seconds(order_.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (place_of_[i] != kNoStep) seconds[i] = whole_seconds(place_of_[i]);
    return seconds;
  }

  std::size_t steps_of(std::size_t which) const noexcept { return chains_[which]->chain.steps.size(); }
  /// Of the steps of one region.
  double seconds_of(std::size_t which) const {
    double sum = 0;
    for (const BandStep& step : chains_[which]->chain.steps) sum += costs_.seconds(views_.order[step.position], step);
    return sum;
  }

  /// Bytes of weights that bands read again, beyond what one reading of each takes.
  std::uint64_t reread_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& banded : chains_) {
      if (banded->chain.reads_again.empty()) continue;
      std::vector<std::uint64_t> bands(banded->chain.end - banded->chain.first, 0);
      for (const BandStep& step : banded->chain.steps) ++bands[step.position - banded->chain.first];
      for (std::size_t p = banded->chain.first; p < banded->chain.end; ++p)
        if (!banded->chain.holds_weights(p)) bytes += (bands[p - banded->chain.first] - 1) * weight_bytes(p);
    }
    return bytes;
  }

  /// Tables of a plan that cuts no node by channels, beyond what is set aside for them: what bands cost there.
  std::uint64_t table_bytes() const {
    const TableCosts& cost = problem_.tables;
    if (cost.set_aside >= kUnlimitedBytes.count()) return 0;
    std::vector<std::uint64_t> steps(views_.order.size(), 1);
    for (const auto& banded : chains_) {
      for (std::size_t p = banded->chain.first; p < banded->chain.end; ++p) steps[p] = 0;
      for (const BandStep& step : banded->chain.steps) ++steps[step.position];
    }
    std::size_t buffers = views_.blocks.size();
    for (const auto& banded : chains_) buffers -= banded->blocks_saved();
    std::uint64_t bytes = cost.any_plan + cost.buffer * buffers;
    for (std::size_t p = 0; p < steps.size(); ++p) {
      const std::size_t operands = node(p).weights.size(), tensors = node(p).inputs.size() + node(p).outputs.size();
      const std::size_t passing = problem_.kernels.passing() == nullptr ? 0 : problem_.kernels.passing()->touched(views_.order[p]);
      bytes +=
          steps[p] * (cost.step + cost.buffer + (cost.operand + cost.weight) * operands + cost.tensor * tensors + cost.block * passing);
    }
    return bytes - std::min(bytes, cost.set_aside);
  }

  /// Bytes that a region needs less where its rows are placed one by one, as in `problem`.
  std::uint64_t saved_by_rows(std::size_t which) const {
    const Banded& banded = *chains_[which];
    const Banded placed = placed_by_rows(banded);
    const std::vector<Interval<std::uint64_t>>& inside = placed.chain.workspaces;
    if (inside.empty()) return 0;
    const auto live_with = [&](const Banded& chain) {
      std::vector<Block> blocks = views_.blocks;
      cutter_->apply(chain, blocks);
      return live(blocks)[chain.chain.first].activations;
    };
    std::uint64_t beside = 0;  // workspaces that do not lie among rings
    for (std::size_t s = 0; s < inside.size(); ++s) {
      const BandStep& step = placed.chain.steps[s];
      if (inside[s].empty())
        beside = std::max(beside, costs_.workspace(views_.order[step.position], step.rows, takes_slices(placed.chain, step.position)));
    }
    const std::uint64_t before = live_with(banded) + workspace_of(banded), after = live_with(placed) + beside;
    return before - std::min(before, after);
  }

  /// As a problem of its own.
  Problem problem() const {
    Problem banded = problem_;
    banded.shared = std::make_shared<SharedPrices>();
    banded.views = views_;
    for (const auto& chain : chains_) cutter_->apply(placed_by_rows(*chain), banded.views);
    drop_empty(banded.views);
    if (problem_.repeat)
      banded.options =
          derive_options(*problem_.graph, problem_.kernels, banded.views.order, *problem_.profile, problem_.threads, banded.views.chains);
    banded.pieces = cut_pieces(*problem_.graph, problem_.kernels, banded.views.order);
    return banded;
  }

 private:
  static constexpr std::size_t kNoStep = ~std::size_t{0};

  const model::Node& node(std::size_t p) const noexcept { return problem_.graph->node(views_.order[p]); }

  double whole_seconds(std::size_t p) const { return costs_.whole(views_.order[p]).seconds; }

  std::pair<std::size_t, std::size_t> positions_of(const Region& region) const {
    std::size_t first = kNoStep, end = 0;
    for (std::size_t i = region.first; i < region.end; ++i) {
      if (place_of_[i] == kNoStep) continue;
      first = std::min(first, place_of_[i]);
      end = place_of_[i] + 1;
    }
    return {first, end};
  }

  /// `storage`: of steps that nobody needs any more.
  std::optional<Banded> cut(const Region& region, std::vector<BandStep> storage = {}) const {
    const auto [first, end] = positions_of(region);
    if (first == kNoStep || first >= end) return std::nullopt;
    std::optional<Banded> banded =
        region.rings ? cutter_->cut_on_demand(first, end, region.bands, std::move(storage)) : cutter_->cut(first, end, region.bands);
    if (banded) mark_reread(*banded, region.reread_above);
    return banded;
  }

  void mark_reread(Banded& banded, std::uint64_t above) const {
    const std::size_t first = banded.chain.first;
    std::vector<bool> again(banded.chain.end - first, false);
    for (std::size_t p = first; p < banded.chain.end; ++p) again[p - first] = may_reread(p) && weight_bytes(p) > above;
    const bool any = std::find(again.begin(), again.end(), true) != again.end();
    banded.chain.reads_again = any ? std::move(again) : std::vector<bool>();
  }

  bool may_reread(std::size_t p) const {
    return !node(p).weights.empty() && !problem_.graph->weight(node(p).weights[0]).always_resident &&
           weight_turns(*problem_.graph, node(p), *problem_.kernels[views_.order[p].index()]) == 0;
  }

  /// Of weights outside the resident segment.
  std::uint64_t weight_bytes(std::size_t p) const {
    std::uint64_t bytes = 0;
    for (WeightId w : node(p).weights)
      if (const model::Weight& weight = problem_.graph->weight(w); !weight.always_resident) bytes += weight.bytes.count();
    return bytes;
  }

  /// With its rings placed row by row and its workspaces between them, if that needs less.
  Banded placed_by_rows(Banded banded) const {
    constexpr std::size_t kMostSlots = 400, kMostSteps = 8192;
    constexpr std::uint64_t kTail = kernels::kReadTail.count();
    std::size_t slots = 0;
    std::uint64_t apart = 0;
    for (std::size_t r = 0; r < banded.ring_rows.size(); ++r) {
      if (!banded.has_ring(r)) continue;
      slots += static_cast<std::size_t>(banded.ring_rows[r]);
      apart += buffer_bytes(static_cast<std::uint64_t>(banded.ring_rows[r]) * cutter_->row_bytes(banded.chain.first + r));
    }
    if (slots == 0 || slots > kMostSlots || banded.chain.steps.size() > kMostSteps) return banded;
    const std::vector<std::uint64_t> workspaces = workspaces_inside(banded);
    const std::uint64_t most = *std::max_element(workspaces.begin(), workspaces.end());
    const std::uint64_t before = (banded.shared ? buffer_bytes(banded.shared->bytes) : apart) + most;
    std::vector<SlotUse> rings = cutter_->slots_of(banded);
    const std::optional<UnderOutput> under = place_under_output(*problem_.graph, views_, *cutter_, banded, rings);
    PlacedRows best;
    for (const bool largest_first : {false, true}) {
      PlacedRows placed = place_rows(rings, workspaces, largest_first, kBufferAlignment, kTail);
      if (best.bytes == 0 || placed.bytes < best.bytes) best = std::move(placed);
    }
    if (buffer_bytes(best.bytes) >= before) return banded;
    banded.under = under;
    banded.shared = SharedRings{std::move(best.offsets), best.bytes};
    banded.chain.workspaces = std::move(best.workspaces);
    return banded;
  }

  /// By step, the bytes of a workspace whose size no slice of weights changes; else 0.
  std::vector<std::uint64_t> workspaces_inside(const Banded& banded) const {
    std::vector<std::uint64_t> bytes;
    const Passing* passing = problem_.kernels.passing();
    for (const BandStep& step : banded.chain.steps) {
      const NodeId id = views_.order[step.position];
      const kernels::KernelDescriptor& kernel = *problem_.kernels[id.index()];
      const bool reads_itself = weight_turns(*problem_.graph, node(step.position), kernel) > 0 || node(step.position).subgraph_count > 0;
      const bool passes = passing != nullptr && passing->touched(id) > 0;
      const bool fixed = banded.chain.holds_weights(step.position) && !reads_itself && !passes;
      const std::uint64_t own = fixed ? costs_.workspace(id, step.rows, false) : 0;
      bytes.push_back(own == 0 ? 0 : buffer_bytes(own));
    }
    return bytes;
  }

  std::vector<Need> live(const std::vector<Block>& blocks) const {
    const std::size_t positions = views_.order.size();
    std::vector<std::int64_t> delta(positions + 1, 0);
    for (const Block& block : blocks) {
      const std::size_t first = block.whole_period ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(block.first, 0));
      const std::size_t end =
          block.to_end || block.whole_period ? positions : static_cast<std::size_t>(std::max<std::int64_t>(block.last + 1, 0));
      if (first >= end) continue;
      delta[first] += static_cast<std::int64_t>(block.bytes);
      delta[end] -= static_cast<std::int64_t>(block.bytes);
    }
    std::vector<Need> needs(positions);
    std::int64_t bytes = 0;
    for (std::size_t p = 0; p < positions; ++p) needs[p].activations = static_cast<std::uint64_t>(bytes += delta[p]);
    return needs;
  }

  void add_own(std::size_t p, Need& need) const {
    const Need& own = costs_.whole(views_.order[p]).own;
    need.activations += own.activations;
    need.weights += own.weights;
  }

  void add_chain(const Banded& banded, std::vector<Need>& by_position) const {
    Need need;
    need.activations = by_position[banded.chain.first].activations;
    std::uint64_t slice = 0;
    std::vector<WeightId> reads;
    for (std::size_t p = banded.chain.first; p < banded.chain.end; ++p) {
      reads.clear();
      model::weights_read_by(*problem_.graph, node(p), reads);
      const bool held = banded.chain.holds_weights(p);
      const bool cut = cuts_channels(*problem_.graph, node(p), *problem_.kernels[views_.order[p].index()]);
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < reads.size(); ++i) bytes += costs_.held_bytes(reads[i], !held && cut && i == 0);
      (held ? need.weights : slice) = held ? need.weights + bytes : std::max(slice, bytes);
    }
    need.weights += slice;
    need.activations += workspace_of(banded);
    std::fill(by_position.begin() + static_cast<std::ptrdiff_t>(banded.chain.first),
              by_position.begin() + static_cast<std::ptrdiff_t>(banded.chain.end), need);
  }

  std::uint64_t workspace_of(const Banded& banded) const {
    std::uint64_t most = 0;
    std::vector<std::int64_t> largest(banded.chain.end - banded.chain.first, 0);
    for (const BandStep& step : banded.chain.steps) {  // bands of a position are mostly alike
      std::int64_t& seen = largest[step.position - banded.chain.first];
      if (step.rows.size() <= seen) continue;
      seen = step.rows.size();
      most = std::max(most, costs_.workspace(views_.order[step.position], step.rows, takes_slices(banded.chain, step.position)));
    }
    return most;
  }

  /// May steps of a position of a chain take a part of the channels?
  bool takes_slices(const Chain& chain, std::size_t p) const {
    return !chain.holds_weights(p) && cuts_channels(*problem_.graph, node(p), *problem_.kernels[views_.order[p].index()]);
  }

  const Problem& problem_;
  const std::vector<NodeId>& order_;
  StepCosts& costs_;
  std::vector<Region> regions_;
  Views views_;
  std::optional<BandCutter> cutter_;
  std::vector<std::size_t> place_of_;  // positions, by place of the order
  std::vector<std::optional<Banded>> chains_;
  std::vector<bool> in_place_;  // by region
};

}  // namespace sluice::planner
