// Pass: chains that lower the peak, for budgets that want it.
//
//     bytes |        ####                     the peak: two large maps beside each other
//           |   #### ####        =>           in bands:  the ends of the chain, rings between, and all its weights
//           +------------------ positions
//
// From the bottleneck outward: of all runs of neighbours round the position that needs most, each in a few numbers of bands, the one that
// lowers the peak most is taken, the fastest of those that lower it alike; then the next bottleneck, until one cannot be lowered or the
// overhead limit is reached. A chain keeps its weights while it runs, so where these weigh more than the maps nothing is gained.
// Invariant: what a position is said to need is what it takes at least: blocks that live, its weights in the finest slices, a workspace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/planner/partition.h"

namespace sluice::planner {

namespace detail {

class LeanPartition {
 public:
  /// `problem` has no chains yet; `chains` are those it would have.
  LeanPartition(const Problem& problem, const BandCutter& cutter, std::vector<Banded> chains)
      : problem_(problem), cutter_(cutter), prices_(problem), chains_(std::move(chains)) {
    for (std::size_t p = 0; p < positions(); ++p) {
      seconds_.push_back(prices_.seconds(p));
      needs_.push_back(live(p, p + 1, nullptr) + own_bytes(p, false));
    }
    whole_seconds_ = seconds_;
    whole_needs_ = needs_;
    for (double seconds : seconds_) left_ += kMostOverhead * seconds;
    for (const Banded& banded : chains_) take(banded);
  }

  /// Nothing where no chain lowers the peak.
  std::optional<std::vector<Banded>> find() {
    constexpr int kMostRounds = 64;
    bool found = false;
    for (int round = 0; round < kMostRounds; ++round) {
      const auto peak = static_cast<std::size_t>(std::max_element(needs_.begin(), needs_.end()) - needs_.begin());
      std::optional<Choice> best = lower(peak);
      if (!best && dissolve(peak)) {
        found = true;
        continue;
      }
      if (!best) break;
      left_ -= best->extra;
      std::erase_if(
          chains_, [&](const Banded& old) { return old.chain.first < best->banded.chain.end && best->banded.chain.first < old.chain.end; });
      found = true;
      take(best->banded);
      chains_.push_back(std::move(best->banded));
    }
    if (!found) return std::nullopt;
    std::sort(chains_.begin(), chains_.end(), [](const Banded& a, const Banded& b) { return a.chain.first < b.chain.first; });
    return std::move(chains_);
  }

 private:
  static constexpr double kMostOverhead = 0.05;
  static constexpr std::size_t kReach = 6;  // positions on either side of the peak
  static constexpr std::int64_t kBands[] = {2, 3, 4, 6, 8, 12, 16, 28};
  static constexpr double kWorthIt = 0.99;

  struct Choice {
    Banded banded;
    std::uint64_t peak = 0;  // of all positions
    double extra = 0;        // seconds
  };

  std::size_t positions() const noexcept { return problem_.views.order.size(); }
  const model::Node& node(std::size_t p) const noexcept { return problem_.graph->node(problem_.views.order[p]); }

  /// Bytes of the blocks that live somewhere in [first, end).
  std::uint64_t live(std::size_t first, std::size_t end, const Banded* banded) const {
    const auto from = static_cast<std::int64_t>(first), to = static_cast<std::int64_t>(end);
    std::uint64_t bytes = 0;
    for (const Block& block : problem_.views.blocks)
      if (block.whole_period || (block.first < to && (block.last >= from || block.to_end))) bytes += block.bytes;
    if (banded == nullptr) return bytes;
    for (std::size_t p = first; p < end; ++p)
      if (const std::int64_t ring = banded->ring_rows[p - first]; ring > 0)
        bytes -= cutter_.output_bytes(p) - static_cast<std::uint64_t>(ring) * cutter_.row_bytes(p);
    return bytes;
  }

  /// Weights and workspace: whole in a chain, in the finest slices elsewhere.
  std::uint64_t own_bytes(std::size_t p, bool whole) const {
    std::vector<WeightId> reads;
    model::weights_read_by(*problem_.graph, node(p), reads);
    const kernels::KernelDescriptor& kernel = *problem_.kernels[problem_.views.order[p].index()];
    const bool cut = !whole && cuts_channels(*problem_.graph, node(p), kernel);
    const std::size_t in_step = !whole && weight_turns(*problem_.graph, node(p), kernel) > 0 ? node(p).weights.size() : 0;
    std::uint64_t bytes = 0, window = 0;
    for (std::size_t i = 0; i < in_step; ++i)
      window = std::max(window, model::least_piece(*problem_.graph, problem_.graph->weight(reads[i])).count());
    for (std::size_t i = in_step; i < reads.size(); ++i) {
      const model::Weight& weight = problem_.graph->weight(reads[i]);
      if (!weight.always_resident)
        bytes += (cut && i == 0 ? Bytes(problem_.graph->stretches_of(weight).front().raw_size) : weight.bytes).count() + kBlockBytes;
    }
    bytes += window;
    return whole ? bytes : bytes + workspace(p, cutter_.all_rows(p), cut ? 2 * model::kPanelLanes : 0);
  }

  std::uint64_t workspace(std::size_t p, RowRange rows, std::int64_t most_channels) const {
    const std::int64_t all = model::step_channels(*problem_.graph, node(p));
    StepSpec step{p, {0, most_channels == 0 ? all : std::min(all, most_channels)}};
    step.rows = rows;
    return workspace_bytes(*problem_.graph, problem_.kernels, problem_.views.order[p], step, problem_.threads);
  }

  std::uint64_t need_of(const Banded& banded, std::uint64_t weights) const {
    std::uint64_t most = 0;
    std::int64_t largest = 0;
    for (const BandStep& step : banded.chain.steps) {  // bands of a position are alike: ask for the first ones
      if (step.rows.begin > 0 && step.rows.size() <= largest) continue;
      largest = std::max(largest, step.rows.size());
      most = std::max(most, workspace(step.position, step.rows, 0));
    }
    return live(banded.chain.first, banded.chain.end, &banded) + weights + most;
  }

  std::uint64_t weights_of(std::size_t first, std::size_t end) const {
    std::uint64_t bytes = 0;
    for (std::size_t p = first; p < end; ++p) bytes += own_bytes(p, true);
    return bytes;
  }

  void take(const Banded& banded) {
    const std::size_t first = banded.chain.first, end = banded.chain.end;
    const double seconds = prices_.seconds(banded.chain);
    double whole = 0;
    for (std::size_t p = first; p < end; ++p) whole += seconds_[p];
    for (std::size_t p = first; p < end; ++p) seconds_[p] = whole == 0 ? 0 : seconds_[p] * seconds / whole;
    const std::uint64_t need = need_of(banded, weights_of(first, end));
    std::fill(needs_.begin() + static_cast<std::ptrdiff_t>(first), needs_.begin() + static_cast<std::ptrdiff_t>(end), need);
  }

  /// Gives up a chain that needs more than its nodes do without it.
  bool dissolve(std::size_t peak) {
    const auto old =
        std::find_if(chains_.begin(), chains_.end(), [&](const Banded& b) { return b.chain.first <= peak && peak < b.chain.end; });
    if (old == chains_.end()) return false;
    const auto first = static_cast<std::ptrdiff_t>(old->chain.first), end = static_cast<std::ptrdiff_t>(old->chain.end);
    const std::uint64_t whole = *std::max_element(whole_needs_.begin() + first, whole_needs_.begin() + end);
    double extra = 0;
    for (auto p = old->chain.first; p < old->chain.end; ++p) extra += whole_seconds_[p] - seconds_[p];
    if (static_cast<double>(whole) >= kWorthIt * static_cast<double>(needs_[peak]) || extra > left_) return false;
    left_ -= extra;
    std::copy(whole_needs_.begin() + first, whole_needs_.begin() + end, needs_.begin() + first);
    std::copy(whole_seconds_.begin() + first, whole_seconds_.begin() + end, seconds_.begin() + first);
    chains_.erase(old);
    return true;
  }

  /// The best chain round a position that needs most.
  std::optional<Choice> lower(std::size_t peak) const {
    std::optional<Choice> best;
    for (std::size_t first = peak - std::min(peak, kReach); first <= peak; ++first)
      for (std::size_t end = std::max(peak + 1, first + 2); end <= std::min(peak + kReach, positions()); ++end)
        if (may_run(first, end)) try_bands(first, end, peak, best);
    return best;
  }

  /// All of it can run in bands, and no other chain is cut in two.
  bool may_run(std::size_t first, std::size_t end) const {
    for (std::size_t p = first; p < end; ++p)
      if (!cutter_.takes_bands(p) || !weights_stay_small(*problem_.graph, node(p))) return false;
    return std::all_of(chains_.begin(), chains_.end(), [&](const Banded& old) {
      const bool apart = old.chain.end <= first || end <= old.chain.first;
      return apart || (first <= old.chain.first && old.chain.end <= end);
    });
  }

  void try_bands(std::size_t first, std::size_t end, std::size_t peak, std::optional<Choice>& best) const {
    const auto need = [&](std::size_t p) { return p < first || p >= end ? needs_[p] : 0; };
    std::uint64_t outside = 0;
    for (std::size_t p = 0; p < positions(); ++p) outside = std::max(outside, need(p));
    const std::uint64_t weights = weights_of(first, end);
    std::uint64_t inner = 0;
    for (std::size_t p = first; p + 1 < end; ++p) inner += cutter_.stays_inside(p, end) ? cutter_.output_bytes(p) : 0;
    const auto worth = static_cast<std::uint64_t>(kWorthIt * static_cast<double>(needs_[peak]));
    if (inner == 0 || live(first, end, nullptr) - inner + weights >= worth) return;
    double before = 0;
    for (std::size_t p = first; p < end; ++p) before += seconds_[p];
    for (const std::int64_t bands : kBands) {
      if (bands > cutter_.all_rows(end - 1).end) return;
      std::optional<Banded> banded = cutter_.cut(first, end, bands);
      if (!banded) return;
      const std::uint64_t here = need_of(*banded, weights);
      if (here >= worth) continue;
      const double extra = prices_.seconds(banded->chain) - before;
      if (extra > left_) return;
      const std::uint64_t score = std::max(here, outside);
      const bool lower = !best || static_cast<double>(score) < kWorthIt * static_cast<double>(best->peak);
      const bool alike = best && static_cast<double>(score) * kWorthIt <= static_cast<double>(best->peak);
      if (lower || (alike && extra < best->extra)) best = Choice{std::move(*banded), score, extra};
      if (here <= outside) return;
    }
  }

  const Problem& problem_;
  const BandCutter& cutter_;
  const StepPrices prices_;
  std::vector<Banded> chains_;
  std::vector<double> seconds_;        // by position; those of a chain share its time
  std::vector<std::uint64_t> needs_;   // by position
  std::vector<double> whole_seconds_;  // the same without chains
  std::vector<std::uint64_t> whole_needs_;
  double left_ = 0;  // seconds that chains may still cost
};

}  // namespace detail

/// `chains`, and in place of some of them or beside them those that lower the peak, if any do; `problem` has none yet.
inline std::optional<std::vector<Banded>> partition_for_memory(const Problem& problem, const BandCutter& cutter,
                                                               std::vector<Banded> chains) {
  return detail::LeanPartition(problem, cutter, std::move(chains)).find();
}

}  // namespace sluice::planner
